package fsck_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestMayMoveHere names every directory that a run is not moved to, and leaves it as it is.
func TestMayMoveHere(t *testing.T) {
	s := failed(t)
	var lines []string
	for _, b := range s.batches {
		lines = append(lines, b.Lines...)
	}
	tail := run.Tail{Seq: int64(len(lines)), Chain: run.Chain("").Over(lines)}
	truth := func(context.Context) ([]string, error) { return lines, nil }
	empty := func(t *testing.T) projector.Dir { return projector.At(t.TempDir()) }
	its := func(change func(*testing.T, projector.Dir)) func(*testing.T) projector.Dir {
		return func(t *testing.T) projector.Dir {
			d := written(t, s)
			change(t, d)
			return d
		}
	}
	events := func(change func(string) string) func(*testing.T, projector.Dir) {
		return func(t *testing.T, d projector.Dir) {
			raw, err := os.ReadFile(d.Path(layout.EventsFile))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(d.Path(layout.EventsFile), []byte(change(string(raw))), 0o600))
		}
	}
	intact := its(func(*testing.T, projector.Dir) {})
	for name, r := range map[string]struct {
		at      func(*testing.T) projector.Dir
		ask     projector.Moving
		message string // empty: it may
	}{
		"its own": {at: intact},
		"ahead of the journal": {at: intact, ask: projector.Moving{Tail: run.Tail{Seq: 2,
			Chain: run.Chain("").Over(lines[:2])}}},
		"behind the journal": {at: its(events(func(all string) string { return all[:len(lines[0])+1] }))},
		"missing": {at: func(t *testing.T) projector.Dir {
			return projector.At(filepath.Join(t.TempDir(),
				"none"))
		}, message: "no run here"},
		"empty": {at: empty, message: "no run here"},
		"other files": {at: func(t *testing.T) projector.Dir {
			d := empty(t)
			lays(t, d.Root,
				"precious.txt")
			return d
		}, message: "no run here"},
		"another run": {at: intact, ask: projector.Moving{RunID: "run-2"},
			message: "it belongs to run run-1 (page)"},
		"a copy": {at: intact, ask: projector.Moving{From: written(t, s).Root},
			message: "it is a copy: run run-1 has its directory in "},
		"another journal": {at: its(events(func(string) string { return lines[1] + "\n" })),
			message: "is not the journal of run run-1"},
		"a changed line": {at: intact, ask: projector.Moving{Tail: run.Tail{Seq: 2, Chain: "other"}},
			message: "is not the journal of run run-1"},
		"a later start owns it": {at: its(func(t *testing.T, d projector.Dir) { takeOver(t, d, 2, tail) }),
			message: "a later start of the run owns it (epoch 2)"},
		"a directory within its": {at: func(t *testing.T) projector.Dir {
			return projector.At(intact(t).Path("_orchestrator"))
		}, message: "no run here"},
	} {
		t.Run(name, func(t *testing.T) {
			d := r.at(t)
			m := projector.Moving{RunID: "run-1", Epoch: 1, Execution: "first", Tail: tail, Truth: truth,
				From: r.ask.From}
			if r.ask.RunID != "" {
				m.RunID = r.ask.RunID
			}
			if r.ask.Tail.Seq > 0 {
				m.Tail = r.ask.Tail
			}
			var before map[string]string
			if _, err := os.Stat(d.Root); err == nil {
				before = look(t, d)
			}
			err := projector.MayMoveHere(t.Context(), d.Dir, m)
			if r.message == "" {
				require.NoError(t, err)
			} else {
				require.ErrorAs(t, err, new(*projector.TargetError))
				require.ErrorContains(t, err, r.message)
			}
			if before != nil {
				require.Equal(t, before, look(t, d))
			}
		})
	}
}

func takeOver(t *testing.T, d projector.Dir, epoch int, tail run.Tail) {
	t.Helper()
	require.NoError(t, fsck.TakeOver(t.Context(), d, rundir.Owner{Epoch: epoch, RunID: "run-1", Execution: "other"},
		tail))
}
