package activities

import (
	"bytes"
	"context"
	"errors"
	"io/fs"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/workflows/contract"
)

// inspect runs Inspect with a slot of its kind: file or checkout.
func (a *Activities) inspect(ctx context.Context, in contract.InspectInput) (contract.InspectResult, error) {
	kind := a.slots.projections
	if in.Tree != nil {
		kind = a.slots.checkouts
	}
	return withSlot(a, kind, requireCurrent(a, a.Inspect))(ctx, in)
}

// Inspect compares the artifact or the checkout with the one in the journal (requirement 002 §3.4). An edit is
// taken over; a missing file is restored.
func (a *Activities) Inspect(ctx context.Context, in contract.InspectInput) (contract.InspectResult, error) {
	defer a.keepAlive(ctx)()
	if in.Tree != nil {
		return a.inspectTree(ctx, in)
	}
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return contract.InspectResult{}, err
	}
	known, err := blobs.Get(ctx, s, in.Digest)
	if err != nil {
		return contract.InspectResult{}, err
	}
	d := a.open(in.Dir)
	found, err := d.ReadFile(in.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return contract.InspectResult{Restored: true}, d.RestoreFile(in.File, known)
	case err != nil || bytes.Equal(found, known):
		return contract.InspectResult{}, err
	}
	b, err := blobs.Put(ctx, s, found)
	return contract.InspectResult{Edited: &b}, err
}
