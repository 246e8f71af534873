package api

import (
	"context"
	"errors"
	"io/fs"

	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Inspect reads a run: its directory, and the answer of Temporal if it can be reached. It changes nothing and needs no
// server.
func (h Host) Inspect(ctx context.Context, d rundir.Dir) (view.Run, error) {
	s := view.Run{Directory: d.Root, Worker: h.StartsWorker(), Clock: h.Clock()}
	var err error
	if s.Claim, err = d.Claim(); err != nil {
		return s, err
	}
	recorded, _, err := operations.Recorded(h.Settings.StateDir, d, s.Claim.RunID)
	if err != nil {
		return s, err
	}
	s.Received = !recorded
	begun := rundir.Begun(d) // before the events are read: they are written first
	if s.Now, s.Effective, err = h.Observe(ctx, d); err != nil {
		return s, err
	}
	if err := d.Known(); err != nil {
		s.Effective.Held = &run.Held{Cause: err.Error(), Waits: true}
	}
	s.Members = d.Projects(s.Now.State)
	if s.Lost = rundir.Lost(d, s.Now.State); s.Effective.Liveness == run.LiveOpen && !begun {
		s.Lost = nil // its worker writes the first events, or restores them
	}
	switch {
	case s.Lost != nil:
		s.Effective.ShownStatus = run.Unknown.Shown()
	case s.Now.Tail.Seq == 0:
		s.Effective.ShownStatus = run.Pending.Shown()
	}
	return s, nil
}

// StartsWorker returns the arguments of the starter that start a worker.
func (h Host) StartsWorker() []string {
	if conn, err := host.FindConnection(h.Settings); err == nil && conn.Explicit {
		return []string{"worker"}
	}
	return []string{"server", "start"}
}

// WorkerCommand returns the command that starts a worker.
func (h Host) WorkerCommand() string { return h.Program + " " + shell.Line(h.StartsWorker()...) }

// next returns what to do next about a run as commands of the starter, the most likely first.
func (h Host) next(s view.Run) []string {
	if h.IDs {
		s.Directory = s.Claim.RunID
	}
	return shell.Next(h.Program, s.Next())
}

// LastErrors returns the last rows of errors.jsonl.
func LastErrors(d rundir.Dir) ([]rundir.ErrorRecord, error) {
	const shown = 5
	rows, _, err := rundir.Rows[rundir.ErrorRow](d, rundir.ErrorsLog)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var last []rundir.ErrorRecord
	for _, r := range rows[max(0, len(rows)-shown):] {
		last = append(last, rundir.ErrorRecord(r))
	}
	return last, err
}
