package rundir

import (
	"context"
	"os"
	"slices"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
)

// Moving says which directory of a run is thought to have been moved, and how far the run's journal goes.
type Moving struct {
	RunID     string
	From      string // where it was; empty: on another host
	Epoch     int
	Execution string // Temporal's id of the first execution of the epoch
	Tail      run.Tail
	Truth     Truth // what the journal holds: asked for where the directory ends before Tail
}

// MayMoveHere checks that the directory is the one of a run that was somewhere else: it has the run's claim, is no copy of what is still there, no later
// start owns it, this process may write to it, and its journal is the run's, as far as both go. Anything else is a [*TargetError]. It writes nothing.
func (d Dir) MayMoveHere(ctx context.Context, m Moving) error {
	t, err := look(d.Root)
	if err != nil {
		return err
	}
	const next = "Name the directory that the run was moved to"
	claim, err := d.Claim()
	switch {
	case err != nil:
		return t.refused(err, next, "%v", err)
	case claim.RunID != m.RunID:
		return t.refused(nil, next, "it belongs to run %s (%s)", claim.RunID, claim.Pipeline)
	case d.copies(m):
		return t.refused(nil, "Move that away first, if this is the one to go on with", "it is a copy: run %s has its directory in %s", m.RunID, m.From)
	}
	if err := t.writable(); err != nil {
		return err
	}
	o, err := d.owner()
	if err != nil {
		return err
	}
	if o.Epoch > m.Epoch || o.Epoch == m.Epoch && o.Execution != m.Execution {
		return t.refused(nil, next, "a later start of the run owns it (epoch %d)", o.Epoch)
	}
	same, err := d.agrees(ctx, m)
	if err != nil {
		return err
	}
	if !same {
		return t.refused(nil, "Compare it with the run: starter check "+shell.Quote(d.Root), "its %s is not the journal of run %s", EventsFile, m.RunID)
	}
	return nil
}

// copies says that the run's directory is still where it was.
func (d Dir) copies(m Moving) bool {
	if m.From == "" {
		return false
	}
	was, err := At(m.From).Claim()
	if err != nil || was.RunID != m.RunID {
		return false
	}
	here, err := os.Stat(d.Root)
	if err != nil {
		return false
	}
	there, err := os.Stat(m.From)
	return err == nil && !os.SameFile(here, there)
}

// agrees compares the lines of the directory with the run's journal: one may be shorter than the other.
func (d Dir) agrees(ctx context.Context, m Moving) (bool, error) {
	s, err := d.readStream(0)
	if err != nil {
		return false, err
	}
	if n := int64(len(s.lines)); n >= m.Tail.Seq {
		return run.Chain("").Over(s.lines[:m.Tail.Seq]) == m.Tail.Chain, nil
	}
	lines, err := m.Truth(ctx)
	if err != nil {
		return false, err
	}
	return len(lines) >= len(s.lines) && slices.Equal(lines[:len(s.lines)], s.lines), nil
}
