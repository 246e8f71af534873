package operations

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/rundir"
)

// Contents reads files of a run's workspace from its store. Without the store every read is the same error.
type Contents struct {
	ctx   context.Context
	end   context.CancelFunc
	store *store.Store
	err   error
}

// contentsWithin limits how long a page waits for a store that responds slowly or not at all.
const contentsWithin = 30 * time.Second

// OpenContents opens the store of a run. Unlike [store.Open], it creates nothing.
func OpenContents(ctx context.Context, d rundir.Dir) *Contents {
	c := &Contents{}
	c.ctx, c.end = context.WithTimeout(ctx, contentsWithin)
	claim, err := d.Claim()
	if err == nil {
		err = presentStore(claim.Store)
	}
	if err == nil {
		c.store, err = OpenStore(c.ctx, claim.Store)
	}
	c.err = err
	return c
}

// presentStore returns an error if the folder of a store is missing, as on another machine.
func presentStore(at string) error {
	if !HostBound(at) {
		return nil
	}
	u, err := url.Parse(at)
	if err != nil {
		return err
	}
	if _, err := os.Stat(u.Path); err != nil {
		return fmt.Errorf("open the store: %w", err)
	}
	return nil
}

// Copy writes the content of a file, named by its digest.
func (c *Contents) Copy(digest string, to io.Writer) error {
	if c.err != nil {
		return c.err
	}
	err := c.store.Copy(c.ctx, store.Digest(digest), to)
	switch {
	case c.ctx.Err() != nil:
		c.err = fmt.Errorf("read the store for %s: %w", contentsWithin, c.ctx.Err())
	case errors.Is(err, store.ErrUnreachable):
		c.err = err
	}
	return err
}

// Close ends the time limit.
func (c *Contents) Close() { c.end() }
