package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/rundir"
)

func (a *app) repairState() *cobra.Command {
	var apply bool
	cmd := &cobra.Command{
		Use: "repair-state [RUN]", Short: "Repair derived files of a run directory",
		Long: `Show which files of a run directory differ from its events, and with --apply make them again. What is replaced is
kept in _orchestrator/torn. Damaged lines of events.jsonl are restored from the store. An artifact that was edited stays.
A run that is paused or waits is repaired; one that works is refused.`,
	}
	asJSON := jsonFlag(cmd)
	cmd.Flags().BoolVar(&apply, "apply", false, "write the repair; without it nothing is changed")
	return a.onRun(cmd, func(ctx context.Context, d rundir.Dir) error {
		stored := &runStore{dir: d}
		effective := a.alive(ctx, d)
		res, err := rundir.Repair(ctx, d, rundir.RepairOptions{
			Apply: apply, EffectiveStatus: effective, Blobs: stored, ReadTree: blobs.ReadTree,
		})
		if err != nil {
			return err
		}
		left, err := rundir.Check(ctx, d, rundir.CheckOptions{EffectiveStatus: effective, ReadTree: blobs.ReadTree})
		if err != nil {
			return err
		}
		err = show(a, *asJSON, res, func(res rundir.RepairResult) { a.printRepair(d, res, left) })
		if err != nil {
			return err
		}
		return repaired(res, left)
	})
}

func (a *app) printRepair(d rundir.Dir, res rundir.RepairResult, left rundir.Report) {
	for _, c := range res.Changes {
		fmt.Fprintf(a.out, "%s (%s): %s\n", c.File, c.Code, c.Found)
	}
	if res.RepairHint != "" {
		fmt.Fprintln(a.out, "Not repaired:", res.RepairHint+".")
	}
	switch {
	case res.Applied:
		fmt.Fprintf(a.out, "Repaired. What differed was made again from the events: %d\n", len(res.Changes))
		for _, name := range res.Kept {
			fmt.Fprintln(a.out, "  what was replaced is kept in", name)
		}
	case len(res.Changes) > 0:
		fmt.Fprintf(a.out, "Nothing was written. To repair: %s repair-state %s --apply\n", program(),
			shell.Quote(d.Root))
	case left.OK:
		fmt.Fprintln(a.out, "There is nothing to repair.")
	}
	if !left.OK && (res.Applied || len(res.Changes) == 0) {
		fmt.Fprintf(a.out, "Findings are left: %s check %s\n", program(), shell.Quote(d.Root))
	}
}

// runBlobs is the part of a store that a check or repair of a run directory uses.
type runBlobs interface {
	rundir.Blobs
	rundir.Names
}

// runStore is the store of a run's claim, opened on first use.
type runStore struct {
	dir  rundir.Dir
	open *store.Store
}

// with calls f with the opened store.
func with[T any](ctx context.Context, r *runStore, f func(runBlobs) (T, error)) (none T, err error) {
	if r.open == nil {
		claim, err := r.dir.Claim()
		if err != nil {
			return none, err
		}
		if r.open, err = operations.OpenStore(ctx, claim.Store); err != nil {
			return none, err
		}
	}
	return f(blobs.Of(r.open))
}

// do is with for calls that return only an error.
func (r *runStore) do(ctx context.Context, f func(runBlobs) error) error {
	_, err := with(ctx, r, func(b runBlobs) (struct{}, error) { return struct{}{}, f(b) })
	return err
}

// Get returns the bytes of a blob.
func (r *runStore) Get(ctx context.Context, digest string) ([]byte, error) {
	return with(ctx, r, func(b runBlobs) ([]byte, error) { return b.Get(ctx, digest) })
}

// Put stores a blob and returns its digest.
func (r *runStore) Put(ctx context.Context, data []byte) (string, error) {
	return with(ctx, r, func(b runBlobs) (string, error) { return b.Put(ctx, data) })
}

// Name stores data under a name, once.
func (r *runStore) Name(ctx context.Context, name string, data []byte) error {
	return r.do(ctx, func(b runBlobs) error { return b.Name(ctx, name, data) })
}

// ReadName returns the data under a name.
func (r *runStore) ReadName(ctx context.Context, name string) ([]byte, error) {
	return with(ctx, r, func(b runBlobs) ([]byte, error) { return b.ReadName(ctx, name) })
}

// ListNames lists the names below a folder.
func (r *runStore) ListNames(ctx context.Context, prefix string) ([]string, error) {
	return with(ctx, r, func(b runBlobs) ([]string, error) { return b.ListNames(ctx, prefix) })
}

// Manifest returns the manifest of a tree.
func (r *runStore) Manifest(ctx context.Context, tree string) ([]byte, error) {
	return with(ctx, r, func(b runBlobs) ([]byte, error) { return b.Manifest(ctx, tree) })
}

// PutTree stores the files that a manifest lists.
func (r *runStore) PutTree(ctx context.Context, manifest []byte) error {
	return r.do(ctx, func(b runBlobs) error { return b.PutTree(ctx, manifest) })
}

// LayDown writes a tree to a folder.
func (r *runStore) LayDown(ctx context.Context, tree, dir string) error {
	return r.do(ctx, func(b runBlobs) error { return b.LayDown(ctx, tree, dir) })
}
