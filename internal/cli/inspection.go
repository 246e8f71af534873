package cli

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/passbook-run/passbook/internal/connect"
	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// inspection is a run as a reading verb sees it: its directory, and the answer of Temporal if it can be reached.
type inspection struct {
	dir       rundir.Dir
	claim     run.Claim // zero: the directory of another program
	now       rundir.Now
	effective run.EffectiveStatus
	starts    []string // arguments of this program that start a worker
	lost      error    // no event can be read of a run that has written some

	projects *run.CrossParent // of a run across projects
}

// foreignDetail explains why the liveness of a foreign run is unknown.
const foreignDetail = "no Passbook workflow: another program wrote the directory"

// inspect reads the status of a run. It changes nothing and needs no server.
func (a *app) inspect(ctx context.Context, d rundir.Dir) (inspection, error) {
	s := inspection{dir: d, starts: a.startsWorker()}
	var err error
	if s.claim, err = d.Claim(); err != nil && !(errors.Is(err, rundir.ErrNoRun) && d.Foreign()) {
		return s, err
	}
	if s.now, err = d.Now(); err != nil {
		return s, err
	}
	if d.Foreign() {
		s.effective = run.NewEffectiveStatus(s.now.State.Status, run.LiveUnknown, foreignDetail)
		s.projects, err = fsck.CrossParent(ctx, d)
		return s, err
	}
	s.effective = a.effectiveStatus(ctx, d, s.now.State.Status)
	if s.effective.Liveness != run.LiveOpen { // an open run rebuilds its directory
		s.lost = projector.Lost(d, s.now.State)
	}
	if s.now.Tail.Seq == 0 && s.lost == nil {
		s.effective.Status = run.Pending
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
		RunID: s.claim.RunID, Directory: s.dir.Root, EffectiveStatus: s.effective,
		Snapshot: s.now.Snapshot, State: s.now.State,
		Lag: s.now.Lag, Next: append([]string{}, nextCommands(s)...),
		Damage: append([]run.JournalDamage{}, s.now.Damage...), CrossParent: s.projects,
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
	next := s.next()
	texts := shell.Next(program(), next)
	if _, asks := run.Offers(next, run.Decide); asks {
		for _, c := range shell.Temporal(shell.Signal, s.claim.RunID, next) {
			texts = append(texts, connect.UseServer(program())+" && "+c)
		}
	}
	return texts
}

func (s inspection) next() []run.Command {
	if s.claim.RunID == "" {
		return nil
	}
	st := s.now.State
	st.RunID = s.claim.RunID
	return run.NextCommands(st, run.Situation{
		EffectiveStatus: s.effective, Dir: s.dir.Root, Worker: s.starts, Unread: s.lost != nil,
		Damaged: unrepaired(s.now.Damage),
	})
}
