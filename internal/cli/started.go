package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Started is the JSON of the verbs that start or resume a run.
type Started struct {
	RunID           string `json:"run_id"`
	Directory       string `json:"directory"`
	New             bool   `json:"new"` // the command started it
	run.ShownStatus        // when the command ends

	Amended *operations.Amended `json:"amended"` // by run --amend; nil: the run has the definition already
}

// startedFlag adds --json to a verb that starts or resumes a run.
func startedFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("json", false, "print the run as JSON at the end, and progress to standard error")
}

// asJSON runs a verb that starts or resumes a run. With on, its progress goes to standard error and the run is printed
// as JSON at the end.
func (a *app) asJSON(on bool, do func() error) error {
	if !on {
		return do()
	}
	out := a.out
	a.out = a.err
	err := do()
	a.out = out
	if a.started == nil {
		return err
	}
	a.started.ShownStatus = api.RecordedStatus(rundir.At(a.started.Directory)).Shown()
	return errors.Join(err, a.json(a.started))
}
