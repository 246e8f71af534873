package activities

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/passbook-run/passbook/work"
)

// inspect is Inspect, bounded as what it inspects: a file, or a whole checkout.
func (a *Activities) inspect(ctx context.Context, in work.InspectInput) (work.InspectResult, error) {
	kind := a.kinds.projections
	if in.Tree != nil {
		kind = a.kinds.checkouts
	}
	return bounded(a, kind, unended(a, a.Inspect))(ctx, in)
}

// Inspect compares the artifact on disk, or the run's own checkout, with the one the run knows (requirement 002 §3.4). An edit is taken over; a missing file is put back.
func (a *Activities) Inspect(ctx context.Context, in work.InspectInput) (work.InspectResult, error) {
	defer a.alive(ctx)()
	if in.Tree != nil {
		return a.inspectTree(ctx, in)
	}
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return work.InspectResult{}, err
	}
	known, err := load(ctx, s, in.Digest)
	if err != nil {
		return work.InspectResult{}, err
	}
	d := a.cfg.Open(in.Dir)
	found, err := os.ReadFile(d.Path(in.File))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return work.InspectResult{Restored: true}, d.Disk.WriteFile(d.Path(in.File), known, 0o644)
	case err != nil || bytes.Equal(found, known):
		return work.InspectResult{}, err
	}
	b, err := keepData(ctx, s, found)
	return work.InspectResult{Edited: &b}, err
}
