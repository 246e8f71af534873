package activities

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/run"
)

// checkoutRecord is what the run's checkout contains apart from edits. The journal may have another tree: a workflow
// ends between an update of the checkout and its event, and a reset abandons events. Without the record, the work of
// such a call would look like an edit, which changes the input of the call, and it would be paid again.
type checkoutRecord struct {
	Version int      `json:"version"`
	Trees   []string `json:"trees"` // more than one: an update was interrupted
	// Edited is the tree with the edits that were found after that. In it, older content is an edit, too.
	Edited string `json:"edited,omitempty"`
}

func readCheckout(d projector.Dir) (checkoutRecord, error) {
	var r checkoutRecord
	raw, err := d.ReadFile(layout.CheckoutFile)
	if errors.Is(err, fs.ErrNotExist) || err == nil && json.Unmarshal(raw, &r) != nil {
		return checkoutRecord{}, nil // nothing is known: all differences are edits
	}
	return r, err
}

func writeCheckout(d projector.Dir, r checkoutRecord) error {
	r.Version = 1
	raw, err := layout.Marshal(r)
	if err != nil {
		return err
	}
	return d.Inside().WriteFile(d.Path(layout.CheckoutFile), raw, layout.FilePerm)
}

// recordSync records that an update of the checkout begins.
func recordSync(d projector.Dir, to string) error {
	r, err := readCheckout(d)
	if err != nil {
		return err
	}
	if r.Edited != "" {
		r = checkoutRecord{Trees: []string{r.Edited}}
	}
	if slices.Contains(r.Trees, to) {
		return nil
	}
	r.Trees = append(r.Trees, to)
	return writeCheckout(d, r)
}

// recordContent records that the checkout contains a tree.
func recordContent(d projector.Dir, holds string) error {
	return writeCheckout(d, checkoutRecord{Trees: []string{holds}})
}

// recordEdits records that the checkout contains edits, which may never be journaled.
func recordEdits(d projector.Dir, holds string) error {
	r, err := readCheckout(d)
	if err != nil {
		return err
	}
	r.Edited = holds
	return writeCheckout(d, r)
}

// withEdits returns the journal's tree with the edits in what the checkout contains, and stores it.
func (a *Activities) withEdits(ctx context.Context, s *store.Store, in contract.InspectInput,
	found tree.Tree) (run.Blob, error) {
	r, err := readCheckout(a.open(in.Dir))
	if err != nil {
		return run.Blob{}, err
	}
	journaled, err := tree.Load(ctx, s, store.Digest(in.Tree.Tree.Digest))
	if err != nil {
		return run.Blob{}, err
	}
	var ours []tree.Tree
	for _, d := range r.Trees {
		if r.Edited == in.Tree.Tree.Digest || d == in.Tree.Tree.Digest {
			continue
		}
		t, err := tree.Load(ctx, s, store.Digest(d))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return run.Blob{}, err
		}
		if err == nil {
			ours = append(ours, t)
		}
	}
	edited := tree.WithEdits(journaled, found, ours)
	b := workspace.Blob(tree.Saved{Digest: edited.Digest(), Tree: edited})
	return b, tree.Put(ctx, s, edited)
}
