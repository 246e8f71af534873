package cli

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func (a *app) check() *cobra.Command {
	var deep bool
	cmd := &cobra.Command{
		Use: "check [RUN]", Short: "Verify a run directory",
		Long: `Verify a run directory: compare every file with the events and meta.json, and report each contradiction by
its code (docs/run-state.md lists the codes). Nothing is changed, and the run can be open. Temporal is asked if it
can be reached; no server is started. The check finds damage. It cannot find a forgery: the events have no signature.

With --deep, also read the store: every blob and tree that the run refers to, its segments and its checkpoints.`,
	}
	asJSON := jsonFlag(cmd)
	cmd.Flags().BoolVar(&deep, "deep", false, "also read the data of the run in the store")
	return a.onRun(cmd, func(ctx context.Context, d rundir.Dir) error {
		r, err := a.checked(ctx, d, deep)
		if err != nil {
			return err
		}
		claim, err := d.Claim()
		if err != nil {
			return err
		}
		recorded, _, err := operations.Recorded(a.settings.StateDir, d, claim.RunID)
		if err != nil {
			return err
		}
		all := checkReport{r, !recorded}
		if err := show(a, *asJSON, all, func(r checkReport) { a.printCheck(d, r) }); err != nil {
			return err
		}
		return attention(r)
	})
}

// checkReport is the output of `check --json`.
type checkReport struct {
	rundir.Report
	Received bool `json:"received"` // this machine has not recorded the run: the files prove no author
}

// checked asks Temporal, then reads the directory. If the workflow is missing it asks again: the run may have been
// resumed in between.
func (a *app) checked(ctx context.Context, d rundir.Dir, deep bool) (rundir.Report, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(50)) // a third less memory, for a twentieth of the time
	o := rundir.CheckOptions{EffectiveStatus: a.alive(ctx, d), ReadTree: blobs.ReadTree}
	if deep {
		o.Deep = &runStore{dir: d}
	}
	r, err := rundir.Check(ctx, d, o)
	if err != nil || !r.Has(rundir.RunningWithoutLiveWorkflow) {
		return r, err
	}
	o.EffectiveStatus = a.alive(ctx, d)
	return rundir.Check(ctx, d, o)
}

// alive asks Temporal for a run's workflow, before its directory is read.
func (a *app) alive(ctx context.Context, d rundir.Dir) run.EffectiveStatus {
	return a.host().EffectiveStatus(ctx, d, "")
}

func (a *app) printCheck(d rundir.Dir, r checkReport) {
	a.row("Directory", "%s", d.Root)
	if r.Received {
		a.row("Origin", view.Received)
	}
	a.row("Status", "%s", view.Describe(r.EffectiveStatus))
	a.row("Events", "%d", r.Snapshot.Seq)
	a.printRows(view.Projects(r.CrossParent))
	for _, i := range r.Issues {
		fmt.Fprintf(a.out, "%-8s %s: %s → %s\n", i.Severity, i.Code, i.Message, i.Hint)
	}
	switch {
	case len(r.Issues) == 0:
		fmt.Fprintln(a.out, "The files agree with the events.")
	case r.OK:
		fmt.Fprintln(a.out, "The files agree with the events; the findings are for information.")
	}
}
