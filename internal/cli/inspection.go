package cli

import (
	"context"
	"encoding/json"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// inspection is a run as a reading verb sees it: its directory, and the answer of Temporal if it can be reached.
type inspection struct {
	view.Run
	dir rundir.Dir
}

// inspect reads the status of a run. It changes nothing and needs no server.
func (a *app) inspect(ctx context.Context, d rundir.Dir) (inspection, error) {
	r, err := a.host().Inspect(ctx, d)
	return inspection{dir: d, Run: r}, err
}

// statusReport is the output of `status --json`.
type statusReport struct {
	RunID           string              `json:"run_id"`
	Directory       string              `json:"directory"`
	Received        bool                `json:"received"` // this machine has not recorded the run
	EffectiveStatus run.EffectiveStatus `json:"standing"`
	Snapshot        run.Snapshot        `json:"snapshot"` // that the events fold into
	State           run.State           `json:"state"`
	Lag             int64               `json:"lag"` // events that meta.json does not include yet
	Next            []string            `json:"next"`

	AvailableActions []run.Operation `json:"available_actions"` // that the status allows, as every client lists them

	Damage []run.JournalDamage `json:"damage"` // that the journal records, and whether it was repaired

	Means  string               `json:"means"`  // what the status means
	Why    []string             `json:"why"`    // its causes
	Errors []rundir.ErrorRecord `json:"errors"` // the last five
}

func (s inspection) report() statusReport {
	return statusReport{
		AvailableActions: s.Available(),
		RunID:            s.Claim.RunID, Directory: s.dir.Root, Received: s.Received, EffectiveStatus: s.Effective,
		Snapshot: s.Now.Snapshot, State: s.Now.State,
		Lag: s.Now.Lag, Next: shell.Next(program(), s.Next()), Damage: append([]run.JournalDamage{}, s.Now.Damage...),
		Means: s.Means(), Why: append([]string{}, s.Causes()...), Errors: append([]rundir.ErrorRecord{}, s.Errors...),
	}
}

func (a *app) json(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
