package operations

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/internal/grants"
	"github.com/passbook-run/passbook/internal/history"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Stores decides which stores a run directory may name: the configured one, and those of runs that this machine has
// recorded. A received directory can name any other, with credentials of this user.
type Stores struct {
	Configured string // URL in the settings
	StateDir   string
	Trust      bool // the user trusts what the directory names
}

// StoreError refuses a store that a run directory names.
type StoreError struct{ URL string }

func (e *StoreError) Error() string {
	return fmt.Sprintf("open the store %s, which the run directory names: it is not the store of the settings, and this "+
		"machine has recorded no run that uses it; if you trust the directory, add --trust, or name the store: --store %s",
		config.Masked(e.URL), shell.Quote(config.Masked(e.URL)))
}

type storesKey struct{}

// WithStores returns a context in which only these stores are opened.
func WithStores(ctx context.Context, s Stores) context.Context {
	return context.WithValue(ctx, storesKey{}, s)
}

// OpenStore opens a store that a run directory names, if the context allows it.
func OpenStore(ctx context.Context, url string) (*store.Store, error) {
	return openStoreOn(ctx, durable.Disk{}, url)
}

func openStoreOn(ctx context.Context, disk durable.Disk, url string) (*store.Store, error) {
	if s, set := ctx.Value(storesKey{}).(Stores); set && !s.allow(url) {
		return nil, &StoreError{URL: url}
	}
	return store.OpenOn(ctx, disk, url)
}

// allow reads the claims of the recorded runs only if the store is another one than configured.
func (s Stores) allow(url string) bool {
	if s.Trust || url == s.Configured {
		return true
	}
	runs, err := indexed(s.StateDir)
	if err != nil {
		return false
	}
	for id, dir := range runs {
		if c, err := rundir.At(dir).Claim(); err == nil && c.RunID == id && c.Store == url {
			return true
		}
	}
	return false
}

// UnknownRunError refuses to execute what a run directory plans. Nothing was changed.
type UnknownRunError struct{ RunID, Dir string }

func (e *UnknownRunError) Error() string {
	return fmt.Sprintf("execute the plan in %s: this machine has recorded no run %s, so directory and commands may "+
		"come from elsewhere; if you trust them, add --trust. To see the commands: %s", e.Dir, e.RunID,
		shell.Line("cat", filepath.Join(e.Dir, layout.PlanFile)))
}

// MayExecute checks that a run may be continued by what a directory records, which executes its plan: it is recorded
// on this machine, or the server has its workflow with a grant of this key, or the user trusts the directory. Programs
// that use the Go API decide themselves.
func (o Operator) MayExecute(ctx context.Context, dir projector.Dir, claim run.Claim) error {
	s, set := ctx.Value(storesKey{}).(Stores)
	if !set || s.Trust {
		return nil
	}
	runs, err := indexed(s.StateDir)
	if err != nil {
		return err
	}
	if _, known := runs[claim.RunID]; known || o.hasGranted(ctx, claim.RunID) {
		return nil
	}
	return &UnknownRunError{RunID: claim.RunID, Dir: dir.Root}
}

// hasGranted reports whether the server has a workflow of the run that was started with the key of this operator.
func (o Operator) hasGranted(ctx context.Context, runID string) bool {
	key, err := grants.Load(o.Settings)
	if err != nil {
		return false
	}
	t, err := history.Reader{Client: o.Client, Converter: o.Converter}.Target(ctx, runID)
	return err == nil && t.RunID == runID && key.Check(t) == nil
}
