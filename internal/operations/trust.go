package operations

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Stores decides which stores a run may name: the configured one, those of policy.stores, and those of runs that this
// machine has recorded. A received directory can name any other, with credentials of this user.
type Stores struct {
	Settings config.Settings
	Trust    bool // the user trusts what the directory names
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
	return openStoreOn(ctx, disk.Disk{}, url)
}

func openStoreOn(ctx context.Context, disk disk.Disk, url string) (*store.Store, error) {
	if s, set := ctx.Value(storesKey{}).(Stores); set && !s.Allow(url) {
		return nil, &StoreError{URL: url}
	}
	return store.OpenOn(ctx, disk, url)
}

// Allow reads the claims of the recorded runs only if the settings do not name the store.
func (s Stores) Allow(url string) bool {
	return s.Trust || slices.Contains(s.configured(), url) || slices.Contains(s.recorded(), url)
}

// Known lists the stores of the settings and of the recorded runs.
func (s Stores) Known() []string {
	all := slices.Sorted(slices.Values(append(s.configured(), s.recorded()...)))
	return slices.Compact(all)
}

func (s Stores) configured() []string {
	return append([]string{s.Settings.Store}, s.Settings.Policy.Stores...)
}

func (s Stores) recorded() (urls []string) {
	runs, err := indexed(s.Settings.StateDir)
	if err != nil {
		return nil
	}
	for id, dir := range runs {
		if c, err := rundir.At(dir).Claim(); err == nil && c.RunID == id {
			urls = append(urls, c.Store)
		}
	}
	return urls
}

// UnknownRunError refuses to execute what a run directory plans. Nothing was changed.
type UnknownRunError struct {
	RunID, Dir string
	Place      string // where this machine has recorded a run of that id; empty: nowhere
}

func (e *UnknownRunError) Error() string {
	if e.Place != "" {
		return fmt.Sprintf("use %s: this machine has recorded run %s in %s, so this directory is a copy, or comes from "+
			"elsewhere; name the other one, or if you trust this one, add --trust", e.Dir, e.RunID, e.Place)
	}
	return fmt.Sprintf("execute the plan in %s: this machine has recorded no run %s, so directory and commands may "+
		"come from elsewhere; if you trust them, add --trust. To see the commands: %s", e.Dir, e.RunID,
		shell.Line("cat", filepath.Join(e.Dir, rundir.PlanFile)))
}

// MayExecute checks that the commands in a run directory may be executed: this machine has recorded its run, or the user
// trusts the directory. Programs that use the Go API decide themselves.
func MayExecute(ctx context.Context, dir rundir.Dir, claim run.Claim) error {
	s, set := ctx.Value(storesKey{}).(Stores)
	if !set || s.Trust {
		return nil
	}
	known, place, err := Recorded(s.Settings.StateDir, dir, claim.RunID)
	if err == nil && !known {
		err = &UnknownRunError{RunID: claim.RunID, Dir: dir.Root, Place: place}
	}
	return err
}

// Recorded reports whether this machine has recorded the run of a directory: it was started or resumed here, and the
// directory was not copied. A moved one is still recorded. Otherwise another directory of the run may be recorded: place.
func Recorded(stateDir string, dir rundir.Dir, runID string) (known bool, place string, err error) {
	root := run.RootOf(runID)
	raw, err := os.ReadFile(indexEntry(stateDir, root))
	if errors.Is(err, fs.ErrNotExist) {
		return false, "", nil
	}
	if err != nil {
		return false, "", err
	}
	place = strings.TrimSpace(string(raw))
	if c, err := rundir.At(place).Claim(); err != nil || c.RunID != root {
		return true, place, nil // it was moved
	}
	for at := dir.Root; ; at = filepath.Dir(at) { // that of a lane is in it
		if same(at, place) {
			return true, place, nil
		}
		if runID == root || at == filepath.Dir(at) {
			return false, place, nil
		}
	}
}

// same reports whether two paths lead to one folder.
func same(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
