package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func (a *app) diagnose() *cobra.Command {
	cmd := &cobra.Command{
		Use: "diagnose [RUN]", Short: "Explain the state of a run and show the next command",
		Long: `Explain the state of a run, its cause and the next command, from its directory and from Temporal if it can be
reached. Nothing is changed. To find damage in the directory itself, run: starter check`,
	}
	asJSON := jsonFlag(cmd)
	return a.onRun(cmd, func(ctx context.Context, d rundir.Dir) error {
		s, err := a.inspect(ctx, d)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.jsonDiagnosis(s)
		}
		return a.printDiagnosis(s)
	})
}

func (a *app) printDiagnosis(s inspection) error {
	a.row("Run", "%s in %s", s.Claim.RunID, s.dir.Root)
	a.row("Status", "%s", s.Described())
	a.row("Means", "%s", s.Means())
	for _, why := range s.Causes() {
		a.row("Why", "%s", why)
	}
	if text := s.Advice(); text != "" {
		a.row("Advice", "%s", text)
	}
	if err := a.printMore(s); err != nil {
		return err
	}
	a.printNext(afterDiagnosis(s))
	return s.urgency()
}

// afterDiagnosis returns the next commands.
func afterDiagnosis(s inspection) []string {
	return slices.DeleteFunc(nextCommands(s), func(c string) bool { return strings.Contains(c, " diagnose ") })
}

// urgency returns the exit code of a diagnosis.
func (s inspection) urgency() error {
	if err := s.attention(); err != nil {
		return err
	}
	if s.Effective.Status == run.Interrupted {
		return silentExit(exitAttention)
	}
	if s.Effective.Status.Class() == run.Live {
		if s.Effective.NoWorker != nil || s.Effective.Held != nil {
			return silentExit(exitAttention)
		}
		return nil
	}
	return outcome(s.Now.State)
}

// diagnosis is `diagnose --json`.
type diagnosis struct {
	RunID           string               `json:"run_id"`
	Directory       string               `json:"directory"`
	EffectiveStatus run.EffectiveStatus  `json:"standing"`
	Means           string               `json:"means"`
	Why             []string             `json:"why"`
	Errors          []rundir.ErrorRecord `json:"errors"` // the last five
	Next            []string             `json:"next"`   // commands, the most likely first
}

func (a *app) jsonDiagnosis(s inspection) error {
	last, err := api.LastErrors(s.dir)
	if err != nil {
		return err
	}
	d := diagnosis{
		RunID: s.Claim.RunID, Directory: s.dir.Root, EffectiveStatus: s.Effective,
		Means: s.Means(), Why: append([]string{}, s.Causes()...),
		Errors: append([]rundir.ErrorRecord{}, last...), Next: append([]string{}, afterDiagnosis(s)...),
	}
	if err := a.json(d); err != nil {
		return err
	}
	return s.urgency()
}

// printMore prints what -v adds: journal, running calls, locations and last errors.
func (a *app) printMore(s inspection) error {
	var err error
	s.Cluster = s.dir.CurrentClaim(s.Claim).Cluster
	s.Errors, err = api.LastErrors(s.dir)
	fmt.Fprintln(a.out)
	a.printRows(s.Details())
	for _, line := range s.LastErrors() {
		fmt.Fprintf(a.out, "  %s\n", line)
	}
	return err
}
