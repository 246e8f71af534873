package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/activities"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func (a *app) check() *cobra.Command {
	var dir string
	var asJSON, deep bool
	cmd := a.target(&cobra.Command{
		Use: "check [RUN]", Short: "Whether a run's directory is sound",
		Long: `Compare what a run has recorded with what follows from it, and name each contradiction by its code (docs/run-state.md lists them). It only reads,
also beside a run at work, and also directories that another program wrote in this format. Temporal is asked if it can be reached; none is started.

Every file of the directory is compared with what the events or meta.json record of it. With --deep the run's store is read as well: every blob and tree
that the run refers to, its segments and its checkpoints.

` + exitCodesHelp,
	}, &dir)
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().BoolVar(&deep, "deep", false, "read everything that the run has in the store, too")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d, err := a.find(named(args, dir))
		if err != nil {
			return err
		}
		r, err := a.checked(cmd.Context(), d, deep)
		if err != nil {
			return err
		}
		if !asJSON {
			a.printCheck(d, r)
			return attention(r)
		}
		if err := a.json(r); err != nil {
			return err
		}
		return attention(r)
	}
	return cmd
}

// checked asks Temporal, then reads the directory. A workflow that is away is asked for once more: the run may have been resumed in between.
func (a *app) checked(ctx context.Context, d rundir.Dir, deep bool) (rundir.Report, error) {
	o := rundir.CheckOptions{Standing: a.alive(ctx, d), ReadTree: activities.ReadTree}
	if deep && !d.Foreign() {
		blobs := &runStore{dir: d}
		defer blobs.close()
		o.Deep = blobs
	}
	r, err := d.Check(ctx, o)
	if err != nil || !r.Has(rundir.RunningWithoutLiveWorkflow) {
		return r, err
	}
	o.Standing = a.alive(ctx, d)
	return d.Check(ctx, o)
}

// alive asks Temporal for a run's workflow, before its directory is read.
func (a *app) alive(ctx context.Context, d rundir.Dir) run.Standing {
	if d.Foreign() {
		return run.Stands("", run.LiveUnknown, "no workflow of ours: another program wrote the directory")
	}
	return a.standing(ctx, d, "")
}

func (a *app) printCheck(d rundir.Dir, r rundir.Report) {
	a.row("Directory", "%s", d.Root)
	a.row("Status", "%s", standingWords(r.Standing))
	a.row("Events", "%d", r.Snapshot.Seq)
	a.printProjects(r.CrossParent)
	for _, i := range r.Issues {
		fmt.Fprintf(a.out, "%-8s %s: %s → %s\n", i.Severity, i.Code, i.Message, typed(i.Hint))
	}
	switch {
	case len(r.Issues) == 0:
		fmt.Fprintln(a.out, "Everything fits together.")
	case r.OK:
		fmt.Fprintln(a.out, "Nothing is wrong; the above is for information.")
	}
}

// typed is a hint whose command can be typed as this program was called.
func typed(hint string) string {
	if rest, ok := strings.CutPrefix(hint, "starter "); ok {
		return program() + " " + rest
	}
	return hint
}
