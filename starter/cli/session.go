package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"go.temporal.io/sdk/client"

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
	conn, err := serve.FindConnection()
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
		s.ensure = func(ctx context.Context) error {
			srv, err := a.ensureLocal(ctx, worker)
			address, s.ui = srv.Address, srv.UI
			return err
		}
		if err := s.ensure(ctx); err != nil {
			return nil, err
		}
	}
	cl, err := conn.Dial(ctx, address, quietLog(a.err))
	if err != nil {
		return nil, err
	}
	s.Operator = operate.Operator{
		Client: cl, Namespace: conn.Options.Namespace, Settings: a.settings, Host: host, Build: version(), By: who(),
	}
	return s, nil
}

func quietLog(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelError}))
}

// ensureLocal starts what is missing on this machine: the embedded server, and a worker.
func (a *app) ensureLocal(ctx context.Context, worker bool) (local.Server, error) {
	say := func(line string) { fmt.Fprintln(a.err, line) }
	srv, err := local.Ensure(ctx, local.Options{StateDir: a.settings.StateDir, Binary: a.settings.Server, Namespace: client.DefaultNamespace}, say)
	if err != nil || !worker {
		return srv, err
	}
	self, err := os.Executable()
	if err != nil {
		return srv, err
	}
	key := srv.Address + " " + srv.Namespace + " " + filepath.Base(self)
	_, err = local.EnsureWorker(ctx, local.WorkerOptions{
		StateDir: a.settings.StateDir, Exec: self, Args: []string{"worker", "--background", "--key", key}, Key: key,
	}, say)
	return srv, err
}
