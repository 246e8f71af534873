package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/build"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/operations"
)

// session is a connection to Temporal, with the local processes that it needs.
type session struct {
	operations.Operator
	link    func(page string) (string, error) // a one-time link to the Web UI; nil: unknown
	ensure  func(context.Context) error
	release func() error
}

func (s *session) Close() error { return s.release() }

// connect finds or starts a server, and with worker also a background worker. A server named by TEMPORAL_ADDRESS or a
// profile is used as it is; its operator starts the workers.
func (a *app) connect(ctx context.Context, worker bool) (*session, error) {
	s := &session{ensure: func(context.Context) error { return nil }}
	var err error
	s.Operator, s.release, err = host.Open(ctx, host.Target{
		Settings: &a.settings, Secrets: a.secrets, Logger: quietLog(a.err),
		Ensure: func(ctx context.Context) (host.Server, error) {
			srv, err := a.ensureServer(ctx)
			s.link = srv.LoginLink
			return srv, err
		},
		Unlisted: func(err error) { fmt.Fprintf(a.err, "Runs cannot be listed by status: %v\n", err) },
	})
	if err != nil {
		return nil, err
	}
	if !s.Embedded || !worker {
		return s, nil
	}
	s.ensure = func(ctx context.Context) error {
		srv, err := a.ensureServer(ctx)
		if err != nil {
			return err
		}
		busy := func() bool { return host.AnyCall(ctx, s.Client, s.Namespace) }
		if err := a.ensureWorker(ctx, srv, busy); err != nil {
			return err
		}
		a.warnNoKeeper(ctx, a.ensureKeeper(ctx, host.KeeperOptions{}))
		return nil
	}
	if err := s.ensure(ctx); err != nil {
		return s, err
	}
	a.warnNoKeeper(ctx, a.ownKeeper(ctx))
	return s, nil
}

func quietLog(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelError}))
}

func (a *app) progress(line string) { fmt.Fprintln(a.err, line) }

// ensureServer starts the embedded server if it does not run.
func (a *app) ensureServer(ctx context.Context) (host.Server, error) {
	return host.EnsureServer(ctx, host.EmbeddedServer(a.settings), a.progress)
}

// ensureWorker starts a background worker of this program if none runs. A worker of another build is replaced unless it
// has running calls, which are worth more than a new build.
func (a *app) ensureWorker(ctx context.Context, srv host.Server, busy func() bool) error {
	o, err := a.workerOptions(srv)
	if err != nil {
		return err
	}
	o.Keep = func(w host.Worker) bool { // a later starter replaces it
		return strings.HasPrefix(w.Key, srv.Address+" "+srv.Namespace+" ") && busy()
	}
	_, err = host.EnsureWorker(ctx, o, a.progress)
	return err
}

func (a *app) workerOptions(srv host.Server) (host.WorkerOptions, error) {
	self, err := os.Executable()
	key := srv.Address + " " + srv.Namespace + " " + settingsID(a.settings) + " " + build.ID(self)
	args := []string{"worker", "--background", "--key", key}
	return host.WorkerOptions{StateDir: a.settings.StateDir, Exec: self, Args: args, Key: key}, err
}

// settingsID identifies the settings that a worker reads only once: with other keys it could not read payloads, and
// with others on security, prices, budgets or calls at once it would not do what the terminal asks for.
func settingsID(s config.Settings) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v", []any{s.Redact, s.Codec, s.Sandbox, s.Prices, s.PerDay,
		s.AtOnce, s.Policy.Stores, s.Policy.Roots, s.Console.LinkKeyFile}))
	return hex.EncodeToString(sum[:4])
}
