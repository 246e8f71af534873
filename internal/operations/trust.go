package operations

import (
	"context"
	"fmt"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/internal/store"
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
