package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/local"
	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/serve"
)

// session is a connection to Temporal, with everything on this machine that it needs.
type session struct {
	operate.Operator
	ui      string // address of the Web UI, where it is known
	ensure  func(context.Context) error
	release func() error
}

func (s *session) Close() error {
	s.Client.Close()
	return s.release()
}

// connect finds or starts a server. With worker, a background worker is found or started too. A server that was named (TEMPORAL_ADDRESS, a
// profile) is used as it is, and workers for it are started by whoever runs it.
func (a *app) connect(ctx context.Context, worker bool) (*session, error) {
	conn, err := serve.FindConnection(a.settings)
	if err != nil {
		return nil, err
	}
	host, err := local.HostID(a.settings.StateDir)
	if err != nil {
		return nil, err
	}
	s := &session{release: func() error { return nil }, ensure: func(context.Context) error { return nil }}
	address := ""
	if !conn.Explicit {
		if s.release, err = local.Attach(ctx, a.settings.StateDir); err != nil {
			return nil, err
		}
		srv, err := a.ensureServer(ctx)
		if err != nil {
			return nil, err
		}
		address, s.ui = srv.Address, srv.UI
	}
	cl, err := conn.Dial(ctx, address, quietLog(a.err))
	if err != nil {
		return nil, err
	}
	s.Operator = operate.Operator{
		Client: cl, Address: cmp.Or(address, conn.Options.HostPort), Namespace: conn.Options.Namespace, Settings: a.settings, Host: host, Build: version(), By: who(), Environ: os.Environ(), Embedded: !conn.Explicit, Redact: a.secrets,
		Converter: conn.Options.DataConverter,
	}
	if err := serve.EnsureAttributes(ctx, cl, conn.Options.Namespace); err != nil {
		fmt.Fprintf(a.err, "Runs cannot be listed by status: %v\n", err)
	} else {
		s.Attributes = true
	}
	if conn.Explicit || !worker {
		return s, nil
	}
	s.ensure = func(ctx context.Context) error {
		srv, err := a.ensureServer(ctx)
		if err != nil {
			return err
		}
		if err := a.ensureWorker(ctx, srv, func() bool { return serve.AnyCall(ctx, cl, conn.Options.Namespace) }); err != nil {
			return err
		}
		a.warnUnkept(ctx, a.ensureKeeper(ctx, local.KeeperOptions{}))
		return nil
	}
	if err := s.ensure(ctx); err != nil {
		return s, err
	}
	a.warnUnkept(ctx, a.ownKeeper(ctx))
	return s, nil
}

func quietLog(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelError}))
}

func (a *app) progress(line string) { fmt.Fprintln(a.err, line) }

// ensureServer starts the embedded server if it does not run.
func (a *app) ensureServer(ctx context.Context) (local.Server, error) {
	return local.Ensure(ctx, a.serverOptions(), a.progress)
}

func (a *app) serverOptions() local.Options {
	return local.Options{StateDir: a.settings.StateDir, Binary: a.settings.Server, Namespace: client.DefaultNamespace, SearchAttributes: attributes(), Codec: a.settings.Codec.Endpoint}
}

// ensureWorker starts a background worker of this very program if none runs. One of another build is replaced when it makes no call; a running
// call is worth more than a new build.
func (a *app) ensureWorker(ctx context.Context, srv local.Server, busy func() bool) error {
	o, err := a.workerOptions(srv)
	if err != nil {
		return err
	}
	_, err = local.EnsureWorker(ctx, o, a.progress)
	var other *local.ErrOtherWorker
	if !errors.As(err, &other) {
		return err
	}
	if strings.HasPrefix(other.Running.Key, srv.Address+" "+srv.Namespace+" ") && busy() {
		return nil // used on: a later starter replaces it
	}
	if _, err := local.StopWorker(ctx, a.settings.StateDir, 20*time.Second); err != nil {
		return err
	}
	_, err = local.EnsureWorker(ctx, o, a.progress)
	return err
}

func (a *app) workerOptions(srv local.Server) (local.WorkerOptions, error) {
	self, err := os.Executable()
	key := srv.Address + " " + srv.Namespace + " " + settingsID(a.settings) + " " + buildID(self)
	return local.WorkerOptions{StateDir: a.settings.StateDir, Exec: self, Args: []string{"worker", "--background", "--key", key}, Key: key}, err
}

// settingsID tells settings apart that a worker reads once: one with other keys could not read what this starter sends.
func settingsID(s config.Settings) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", s.Redact, s.Codec))
	return hex.EncodeToString(sum[:4])
}

// buildID tells one build of this program from another.
func buildID(exe string) string {
	fi, err := os.Stat(exe)
	if err != nil {
		return version()
	}
	return fmt.Sprintf("%s-%d-%d", version(), fi.Size(), fi.ModTime().UnixNano())
}
