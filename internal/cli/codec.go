package cli

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/codec"
	"github.com/passbook-run/passbook/internal/local"
)

func (a *app) codec() *cobra.Command {
	cmd := within(&cobra.Command{
		Use: "codec", Short: "Encrypt payloads in Temporal: create keys, serve the Web UI",
		Long: `Temporal stores the inputs and results of every step. With the settings codec.key and codec.keys they are
encrypted first. docs/security.md explains how to enable encryption and how to change keys.`,
	})
	cmd.AddCommand(a.codecKey(), a.codecServe())
	return cmd
}

func (a *app) codecKey() *cobra.Command {
	return &cobra.Command{
		Use: "key", Short: "Print a new key", Args: cobra.NoArgs,
		Long: `Print a new random key in base64. Put it into a file that only you can read, or into a variable, and name
that in codec.keys: id=file:PATH or id=env:NAME.`,
		RunE: func(*cobra.Command, []string) error {
			key := make([]byte, codec.KeySize)
			if _, err := rand.Read(key); err != nil {
				return err
			}
			fmt.Fprintln(a.out, base64.StdEncoding.EncodeToString(key))
			return nil
		},
	}
}

func (a *app) codecServe() *cobra.Command {
	var listen string
	var origins []string
	var remote bool
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve decrypted payloads to the Web UI and the temporal CLI", Args: cobra.NoArgs,
		Long: `Serve the codec endpoint in the foreground: the Web UI and the temporal CLI send encrypted payloads, and show
the answer. Its clients can read everything that the keys in the settings open. By default it listens on the loopback
interface, answers browsers only on pages of the Web UI (--origin), and requires a token if codec.token is set.

The embedded server's Web UI uses the setting codec.endpoint, read when the server starts; the temporal CLI uses
--codec-endpoint.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			e, err := a.endpoint(origins)
			if err != nil {
				return err
			}
			return a.serveCodec(ctx, e, listen, remote)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8234", "address")
	cmd.Flags().StringArrayVar(&origins, "origin", nil,
		"URL of a Web UI that may ask, such as https://temporal.example.org (may be repeated; default: the embedded "+
			"one)")
	cmd.Flags().BoolVar(&remote, "allow-remote", false,
		"allow a --listen address that other machines can reach: in a container, behind authentication, or with "+
			"codec.token")
	return cmd
}

// endpoint creates the endpoint from the settings. It fails without a key.
func (a *app) endpoint(origins []string) (codec.Endpoint, error) {
	c, err := codec.Load(a.settings.Codec, os.Getenv)
	if err != nil {
		return codec.Endpoint{}, asUsage(err)
	}
	if len(a.settings.Codec.Keys) == 0 {
		return codec.Endpoint{}, asUsage(errors.New("there is no key: set codec.keys"))
	}
	e := codec.Endpoint{Codec: c, Origins: origins}
	if a.settings.Codec.Token != "" {
		if e.Token, err = codec.Secret(a.settings.Codec.Token, os.Getenv); err != nil {
			return e, asUsage(fmt.Errorf("settings: codec.token: %w", err))
		}
	}
	if len(origins) > 0 {
		return e, nil
	}
	st, err := local.Read(a.settings.StateDir)
	if err == nil && st.Server != nil {
		e.Origins = []string{st.Server.UI, strings.Replace(st.Server.UI, "127.0.0.1", "localhost", 1)}
	}
	return e, err
}

func (a *app) serveCodec(ctx context.Context, e codec.Endpoint, listen string, remote bool) error {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	defer l.Close()
	e.Local = l.Addr().(*net.TCPAddr).IP.IsLoopback()
	if !e.Local && !remote {
		return asUsage(fmt.Errorf("other machines could reach %s, and read everything: listen on 127.0.0.1, "+
			"or use --allow-remote, preferably with a codec.token", listen))
	}
	from := "no page"
	if len(e.Origins) > 0 {
		from = strings.Join(e.Origins, ", ")
	}
	fmt.Fprintf(a.out, "Codec endpoint  http://%s\nAnswers         %s, and programs other than browsers\n", l.Addr(),
		from)
	srv := &http.Server{Handler: e, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		_ = srv.Close() // ends Serve, which is waited for
	}()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
