package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/activities"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/store"
)

func (a *app) repairState() *cobra.Command {
	var dir string
	var asJSON, apply bool
	cmd := a.target(&cobra.Command{
		Use: "repair-state [RUN]", Short: "Bring meta.json and what else is derived back in line with the events",
		Long: `Show what would bring a run's directory back in line with its events, and with --apply do it: a copy of what is replaced is kept under
run_state_repairs/, with an audit file. Only what check finds and has one right answer is changed. Damaged
lines of events.jsonl are restored where the store has them. A run at work is refused.

` + exitCodesHelp,
	}, &dir)
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().BoolVar(&apply, "apply", false, "write; without it nothing is")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d, err := a.find(named(args, dir))
		if err != nil {
			return err
		}
		blobs := &runStore{dir: d}
		defer blobs.close()
		stands := a.alive(cmd.Context(), d)
		res, err := d.Repair(cmd.Context(), rundir.RepairOptions{Apply: apply, Standing: stands, Blobs: blobs, Now: time.Now(), By: who(), ReadTree: activities.ReadTree})
		if err != nil {
			return err
		}
		left, err := d.Check(cmd.Context(), rundir.CheckOptions{Standing: stands, ReadTree: activities.ReadTree})
		if err != nil {
			return err
		}
		if !asJSON {
			a.printRepair(d, res, left)
			return repaired(res, left)
		}
		if err := a.json(res); err != nil {
			return err
		}
		return repaired(res, left)
	}
	return cmd
}

func (a *app) printRepair(d rundir.Dir, res rundir.RepairResult, left rundir.Report) {
	for _, c := range res.Changes {
		fmt.Fprintf(a.out, "%s: %s → %s (%s)\n", c.Field, brief(c.Before), brief(c.After), c.Code)
	}
	if res.RepairHint != "" {
		fmt.Fprintln(a.out, "Not repaired:", res.RepairHint+".")
	}
	switch {
	case res.Applied:
		fmt.Fprintf(a.out, "Repaired. What was there: %s; what was done: %s\n", orNothing(res.BackupPath), res.AuditPath)
	case len(res.Changes) > 0:
		fmt.Fprintf(a.out, "Nothing was written. To do it: %s repair-state %s --apply\n", program(), shell.Quote(d.Root))
	case left.OK:
		fmt.Fprintln(a.out, "There is nothing to repair.")
	}
	if !left.OK && (res.Applied || len(res.Changes) == 0) {
		fmt.Fprintf(a.out, "Findings are left: %s check %s\n", program(), shell.Quote(d.Root))
	}
}

// brief is a value, cut to what fits into a line.
func brief(v json.RawMessage) string {
	const most = 60
	text := []rune(string(v))
	switch {
	case len(text) == 0:
		return "(not there)"
	case len(text) > most:
		return string(text[:most]) + "…"
	}
	return string(text)
}

func orNothing(path string) string {
	if path == "" {
		return "nothing"
	}
	return path
}

// runStore is the store that a run's claim names, opened when it is needed for the first time.
type runStore struct {
	dir  rundir.Dir
	open *store.Store
}

func (r *runStore) blobs(ctx context.Context) (interface {
	rundir.Blobs
	rundir.Names
}, error) {
	if r.open == nil {
		claim, err := r.dir.Claim()
		if err != nil {
			return nil, err
		}
		if r.open, err = store.Open(ctx, claim.Store); err != nil {
			return nil, err
		}
	}
	return activities.Blobs(r.open), nil
}

// Get gives a blob's bytes.
func (r *runStore) Get(ctx context.Context, digest string) ([]byte, error) {
	b, err := r.blobs(ctx)
	if err != nil {
		return nil, err
	}
	return b.Get(ctx, digest)
}

// Put stores a blob.
func (r *runStore) Put(ctx context.Context, data []byte) (string, error) {
	b, err := r.blobs(ctx)
	if err != nil {
		return "", err
	}
	return b.Put(ctx, data)
}

// Name puts data under a name, once.
func (r *runStore) Name(ctx context.Context, name string, data []byte) error {
	b, err := r.blobs(ctx)
	if err != nil {
		return err
	}
	return b.Name(ctx, name, data)
}

// ReadName gives what is under a name.
func (r *runStore) ReadName(ctx context.Context, name string) ([]byte, error) {
	b, err := r.blobs(ctx)
	if err != nil {
		return nil, err
	}
	return b.ReadName(ctx, name)
}

// ListNames lists the names below a folder.
func (r *runStore) ListNames(ctx context.Context, prefix string) ([]string, error) {
	b, err := r.blobs(ctx)
	if err != nil {
		return nil, err
	}
	return b.ListNames(ctx, prefix)
}

// Manifest lists a tree.
func (r *runStore) Manifest(ctx context.Context, tree string) ([]byte, error) {
	b, err := r.blobs(ctx)
	if err != nil {
		return nil, err
	}
	return b.Manifest(ctx, tree)
}

// PutTree stores what a manifest lists.
func (r *runStore) PutTree(ctx context.Context, manifest []byte) error {
	b, err := r.blobs(ctx)
	if err != nil {
		return err
	}
	return b.PutTree(ctx, manifest)
}

// LayDown lays a tree down.
func (r *runStore) LayDown(ctx context.Context, tree, dir string) error {
	b, err := r.blobs(ctx)
	if err != nil {
		return err
	}
	return b.LayDown(ctx, tree, dir)
}

func (r *runStore) close() {
	if r.open != nil {
		_ = r.open.Close()
	}
}
