package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/rundir"
)

func (a *app) checkpoints() *cobra.Command {
	var all bool
	cmd := offline(a, "checkpoints", "The checkpoints of a run, with quality and cost", func(d rundir.Dir) ([]rundir.Listed, error) {
		if _, _, err := read(d); err != nil {
			return nil, err
		}
		return d.ListCheckpoints(all)
	}, a.printCheckpoints)
	cmd.Flags().BoolVar(&all, "all", false, "those behind every step too, not only the named ones")
	return cmd
}

func (a *app) printCheckpoints(lines []rundir.Listed) {
	if len(lines) == 0 {
		fmt.Fprintln(a.out, "No named checkpoint yet: one is made at the end of each set and cycle, and at a pause. There is one behind every step: --all")
		return
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tCREATED\tPASS\tCYCLE\tCOST\tSCORE\tFAILED VALIDATIONS\tEVENT\t")
	for _, l := range lines {
		score, note := "-", ""
		if l.Score != nil {
			score = fmt.Sprintf("%.1f", *l.Score)
		}
		if !l.InForce {
			note = "left behind by a revert"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t%d\t%d\t%s\n", l.ID, minute(l.CreatedAt), l.AtPass, l.AtPACycle, usd(l.CostUSD), score, l.ValidationFailures, l.Seq, note)
	}
	w.Flush()
}

// read gives the records and the header of a run.
func read(d rundir.Dir) (rundir.PipelineState, rundir.Meta, error) {
	claim, err := d.Claim()
	if err != nil {
		return rundir.PipelineState{}, rundir.Meta{}, err
	}
	meta, err := d.Meta()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return rundir.PipelineState{}, meta, fmt.Errorf("run %s has not written anything yet: %s is not there; a worker writes it (starter server status)", claim.RunID, rundir.MetaFile)
	case err != nil:
		return rundir.PipelineState{}, meta, fmt.Errorf("%w; the run's next event writes it again", err)
	}
	book, err := d.State()
	return book, meta, err
}
