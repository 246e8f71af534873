package cli

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/passbook-run/passbook/internal/connect"
	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/projector"
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

// foreignDetail explains why the liveness of a foreign run is unknown.
const foreignDetail = "no Passbook workflow: another program wrote the directory"

// inspect reads the status of a run. It changes nothing and needs no server.
func (a *app) inspect(ctx context.Context, d rundir.Dir) (inspection, error) {
	s := inspection{dir: d, Run: view.Run{Directory: d.Root, Worker: a.startsWorker(), Clock: clock(time.Now())}}
	var err error
	if s.Claim, err = d.Claim(); err != nil && !(errors.Is(err, rundir.ErrNoRun) && d.Foreign()) {
		return s, err
	}
	if s.Now, err = d.Now(); err != nil {
		return s, err
	}
	if d.Foreign() {
		s.Effective = run.NewEffectiveStatus(s.Now.State.Status, run.LiveUnknown, foreignDetail)
		s.Projects, err = fsck.CrossParent(ctx, d)
		return s, err
	}
	s.Effective = a.effectiveStatus(ctx, d, s.Now.State.Status)
	if s.Effective.Liveness != run.LiveOpen { // an open run rebuilds its directory
		s.Lost = projector.Lost(d, s.Now.State)
	}
	if s.Now.Tail.Seq == 0 && s.Lost == nil {
		s.Effective.Status = run.Pending
	}
	return s, nil
}

// statusReport is the output of `status --json`.
type statusReport struct {
	RunID           string              `json:"run_id"`
	Directory       string              `json:"directory"`
	EffectiveStatus run.EffectiveStatus `json:"standing"`
	Snapshot        run.Snapshot        `json:"snapshot"` // that the events fold into
	State           run.State           `json:"state"`
	Lag             int64               `json:"lag"` // events that meta.json does not include yet
	Next            []string            `json:"next"`

	Damage []run.JournalDamage `json:"damage"` // that the journal records, and whether it was repaired

	CrossParent *run.CrossParent `json:"cross_parent"` // of a run across projects; nil: of one project
}

func (s inspection) report() statusReport {
	return statusReport{
		RunID: s.Claim.RunID, Directory: s.dir.Root, EffectiveStatus: s.Effective,
		Snapshot: s.Now.Snapshot, State: s.Now.State,
		Lag: s.Now.Lag, Next: append([]string{}, nextCommands(s)...),
		Damage: append([]run.JournalDamage{}, s.Now.Damage...), CrossParent: s.Projects,
	}
}

func (a *app) json(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// nextCommands returns the next commands, the most likely first; none for a run that another program records.
func nextCommands(s inspection) []string {
	next := s.Next()
	texts := shell.Next(program(), next)
	if _, asks := run.Offers(next, run.Decide); asks {
		for _, c := range shell.Temporal(shell.Signal, s.Claim.RunID, next) {
			texts = append(texts, connect.UseServer(program())+" && "+c)
		}
	}
	return texts
}
