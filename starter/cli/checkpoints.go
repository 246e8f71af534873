package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/rundir"
)

// CheckpointLine is one named checkpoint with what the work was like then (requirement 002 §5.5).
type CheckpointLine struct {
	ID                 string   `json:"id"`
	CreatedAt          string   `json:"createdAt"`
	AtPass             int      `json:"atPass"`
	AtPACycle          int      `json:"atPACycle"`
	CostUSD            float64  `json:"cost"`
	Score              *float64 `json:"paScore"`
	ValidationFailures int      `json:"validationFailures"`
}

func (a *app) checkpoints() *cobra.Command {
	return offline(a, "checkpoints", "The named checkpoints of a run, with quality and cost", readCheckpoints, a.printCheckpoints)
}

func readCheckpoints(d rundir.Dir) ([]CheckpointLine, error) {
	b, _, err := read(d)
	lines := []CheckpointLine{}
	for _, c := range b.Checkpoints {
		lines = append(lines, CheckpointLine{
			ID: c.ID, CreatedAt: c.CreatedAt, AtPass: c.AtPassNumber, AtPACycle: c.AtPACycle, CostUSD: c.CostAtCheckpoint,
			Score: c.QualitySnapshot.LastPAScore, ValidationFailures: c.QualitySnapshot.ValidationFailureCount,
		})
	}
	return lines, err
}

func (a *app) printCheckpoints(lines []CheckpointLine) {
	if len(lines) == 0 {
		fmt.Fprintln(a.out, "No checkpoint yet: one is made at the end of each set and cycle, and at a pause.")
		return
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tCREATED\tPASS\tCYCLE\tCOST\tSCORE\tFAILED VALIDATIONS")
	for _, l := range lines {
		score := "-"
		if l.Score != nil {
			score = fmt.Sprintf("%.1f", *l.Score)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t%d\n", l.ID, minute(l.CreatedAt), l.AtPass, l.AtPACycle, usd(l.CostUSD), score, l.ValidationFailures)
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
