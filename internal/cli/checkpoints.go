package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func (a *app) checkpoints() *cobra.Command {
	var all bool
	list := func(d rundir.Dir) ([]rundir.Listed, error) {
		if _, _, err := read(d); err != nil {
			return nil, err
		}
		return rundir.ListCheckpoints(d, all)
	}
	cmd := offline(a, "checkpoints", "List the checkpoints of a run with quality and cost", list, a.printCheckpoints)
	cmd.Flags().BoolVar(&all, "all", false, "also list the checkpoints after each step")
	return cmd
}

func (a *app) printCheckpoints(lines []rundir.Listed) {
	if len(lines) == 0 {
		fmt.Fprintln(a.out, "No named checkpoint yet: each set, round and pause ends with one. "+
			"To list those after each step, use --all")
		return
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tCREATED\tPASS\tROUND\tCOST\tSCORE\tFAILED VALIDATIONS\tEVENT\t")
	for _, l := range lines {
		score, note := "-", ""
		if l.Score != nil {
			score = fmt.Sprintf("%.1f", *l.Score)
		}
		if !l.InForce {
			note = "reverted"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t%d\t%d\t%s\n",
			l.ID, view.Minute(l.CreatedAt), l.AtPass, l.AtPACycle, run.ShortCost(l.CostUSD, l.Unknown), score,
			l.ValidationFailures, l.Seq, note)
	}
	w.Flush()
}

// read returns the records and the meta data of a run.
func read(d rundir.Dir) (rundir.PipelineState, rundir.Meta, error) {
	claim, err := d.Claim()
	if err != nil {
		return rundir.PipelineState{}, rundir.Meta{}, err
	}
	meta, err := d.Meta()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return rundir.PipelineState{}, meta,
			fmt.Errorf("run %s has no %s yet; a worker writes it, see: starter server status",
				claim.RunID, rundir.MetaFile)
	case err != nil:
		return rundir.PipelineState{}, meta, fmt.Errorf("%w; the next event of the run rebuilds it", err)
	}
	book, err := rundir.Records(d)
	return book, meta, err
}
