package rundir

import (
	"context"
	"os"
	"slices"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
)

// Moving describes a directory that may have been moved, and the end of the run's journal.
type Moving struct {
	RunID     string
	From      string // previous path; empty: on another host
	Epoch     int
	Execution string // Temporal's run ID of the epoch's first execution
	Tail      run.Tail
	Truth     Truth // the journal's lines; read if the directory ends before Tail
}

// MayMoveHere checks that the directory is that of a moved run: it has the run's claim, is not a copy of a directory
// that still exists, is not owned by a later start, is writable, and its journal agrees with the run's, as far as both
// go. Any other case is a [*TargetError]. It writes nothing.
func MayMoveHere(ctx context.Context, d Dir, m Moving) error {
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
	case copies(d, m):
		return t.refused(nil, "To continue with this directory, move the other one away first",
			"it is a copy: run %s has its directory in %s", m.RunID, m.From)
	}
	if err := t.writable(); err != nil {
		return err
	}
	o, err := d.Owner()
	if err != nil {
		return err
	}
	if o.Epoch > m.Epoch || o.Epoch == m.Epoch && o.Execution != m.Execution {
		return t.refused(nil, next, "a later start of the run owns it (epoch %d)", o.Epoch)
	}
	same, err := agrees(ctx, d, m)
	if err != nil {
		return err
	}
	if !same {
		return t.refused(nil, "Compare it with the run: starter check "+shell.Quote(d.Root),
			"its %s is not the journal of run %s", EventsFile, m.RunID)
	}
	return nil
}

// copies reports whether the run's directory still exists at its previous path.
func copies(d Dir, m Moving) bool {
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

// agrees compares the lines of the directory with the run's journal. One may be shorter than the other.
func agrees(ctx context.Context, d Dir, m Moving) (bool, error) {
	s, err := ReadStream(d, EventsFile, 0)
	if err != nil {
		return false, err
	}
	if n := int64(len(s.Lines)); n >= m.Tail.Seq {
		return run.Chain("").Over(s.Lines[:m.Tail.Seq]) == m.Tail.Chain, nil
	}
	lines, err := m.Truth(ctx)
	if err != nil {
		return false, err
	}
	return len(lines) >= len(s.Lines) && slices.Equal(lines[:len(s.Lines)], s.Lines), nil
}
