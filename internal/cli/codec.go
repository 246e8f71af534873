package cli

import (
	"context"
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
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/keyfile"
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
			key, err := keyfile.New()
			if err != nil {
				return err
			}
			fmt.Fprintln(a.out, key)
			return nil
		},
	}
}

func (a *app) codecServe() *cobra.Command {
	var listen string
	var origins []string
	var remote, noToken bool
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve decrypted payloads to the Web UI and the temporal CLI", Args: cobra.NoArgs,
		Long: `Serve the codec endpoint in the foreground: the Web UI and the temporal CLI send encrypted payloads, and show
the answer. Its clients can read everything that the keys in the settings open. It listens on the loopback interface,
answers pages of other Web UIs only if --origin names them, and requires a token: that of codec.token, or one that it
makes in the state directory.

The embedded server's Web UI uses the setting codec.endpoint, read when the server starts, and sends the token for
browsers that are logged in. The temporal CLI uses --codec-endpoint, and the token that starter server env exports.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			e, token, err := a.endpoint(origins, noToken || remote)
			if err != nil {
				return err
			}
			return a.serveCodec(ctx, e, listen, remote, token)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8234", "address")
	cmd.Flags().StringArrayVar(&origins, "origin", nil,
		"URL of a Web UI whose pages may ask, such as https://temporal.example.org (may be repeated)")
	cmd.Flags().BoolVar(&remote, "allow-remote", false,
		"allow a --listen address that other machines can reach: in a container, behind authentication, or with "+
			"codec.token")
	cmd.Flags().BoolVar(&noToken, "no-token", false,
		"answer without a token, for a Web UI that sends none: every user of this machine can then decrypt")
	return cmd
}

// endpoint creates the endpoint from the settings, and names its token. It fails without a key.
func (a *app) endpoint(origins []string, open bool) (e codec.Endpoint, where string, err error) {
	c, err := codec.Load(a.settings.Codec, os.Getenv)
	if err != nil {
		return e, "", asUsage(err)
	}
	if len(a.settings.Codec.Keys) == 0 {
		return e, "", asUsage(errors.New("there is no key: set codec.keys"))
	}
	e = codec.Endpoint{Codec: c, Origins: origins}
	if a.settings.Codec.Token == "" && open {
		return e, "none: every client that reaches the address can decrypt", nil
	}
	e.Token, where, err = a.codecToken()
	return e, where, err
}

// codecToken returns the token of the codec endpoint, and where it is: that of the settings, or one in the state
// directory.
func (a *app) codecToken() (token, where string, err error) {
	if where = a.settings.Codec.Token; where != "" {
		if token, err = codec.Secret(where, os.Getenv); err != nil {
			return "", "", asUsage(fmt.Errorf("settings: codec.token: %w", err))
		}
		return token, where, nil
	}
	file, err := host.CodecToken(a.settings.StateDir)
	if err != nil {
		return "", "", err
	}
	where = "file:" + file
	token, err = codec.Secret(where, os.Getenv)
	return token, where, err
}

func (a *app) serveCodec(ctx context.Context, e codec.Endpoint, listen string, remote bool, token string) error {
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
	fmt.Fprintf(a.out, "Codec endpoint  http://%s\nAnswers         %s, and programs other than browsers\n"+
		"Token           %s\n", l.Addr(), from, token)
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
