package simulation_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// directory is a world with an empty run directory that nothing executes.
func directory(t *testing.T) *world {
	return &world{dir: projector.At(t.TempDir()), settled: map[string]settled{}}
}

// writes writes a file of the directory.
func (w *world) writes(t *testing.T, name, text string) {
	path := w.dir.Path(name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// journals writes the journal of a run, and the meta.json and state.json that follow from it.
func (w *world) journals(t *testing.T, events ...run.Event) (text string) {
	all, book := newReading(), rundir.NewState()
	for n, e := range events {
		line, err := e.At(int64(n) + 1).Line()
		require.NoError(t, err)
		text += line + "\n"
		if e.Kind == run.KindCheckpointCreated {
			book.Checkpoints = append(book.Checkpoints, rundir.CheckpointRecord{ID: "stage-1", CreatedAt: e.TS,
				CheckpointDir: layout.CheckpointDir("stage-1")})
		}
	}
	var meta rundir.Meta
	meta.Events.Seq = int64(len(events))
	_ = all.add([]byte(text), meta) // its error is that meta has no chain yet
	meta.Events.Chain, meta.State = all.chain, all.state
	for name, v := range map[string]any{layout.MetaFile: meta, layout.StateFile: book} {
		raw, err := json.Marshal(v)
		require.NoError(t, err)
		w.writes(t, name, string(raw))
	}
	w.writes(t, layout.EventsFile, text)
	return text
}

// event is one of a second.
func event(t *testing.T, second string, kind run.Kind, payload any) run.Event {
	raw, err := json.Marshal(payload)
	require.NoError(t, err)
	return run.Event{TS: "2000-01-01T00:00:" + second + ".000Z", Kind: kind, Payload: raw}
}

// A call of before a reset ends while another worker is at its next line: only what it writes in the end is an event.
func TestTornEndIsNoEvent(t *testing.T) {
	w := directory(t)
	start, next := event(t, "01", run.KindRunStart, run.RunStart{}), event(t, "02", run.KindPhaseStart, run.PhaseStart{})
	one := w.journals(t, start)
	both := w.journals(t, start, next)
	w.journals(t, start)
	w.writes(t, layout.EventsFile, both[:len(one)+20])
	w.projected()
	require.NoError(t, w.failure())
	w.journals(t, start, next)
	w.projected()
	require.NoError(t, w.failure())
	require.Equal(t, int64(2), w.read.seq)

	w.writes(t, layout.EventsFile, both+both[len(one):])
	w.projected()
	require.ErrorContains(t, w.failure(), "invariant 3: line 3 has seq 2")
}

func TestCommittedCheckpointsStay(t *testing.T) {
	start := event(t, "01", run.KindRunStart, run.RunStart{})
	created := func(at string) run.Event {
		return event(t, at, run.KindCheckpointCreated, run.CheckpointCreated{ID: "stage-1"})
	}
	back := func(to int64) run.Event {
		return event(t, "03", run.KindRunReverted, run.RunReverted{To: to, Cause: "reset"})
	}
	const other = "is another file now"
	page := layout.CheckpointDir("stage-1") + "/artifact.html"
	for name, row := range map[string]struct {
		later  []run.Event // after the checkpoint
		change func(w *world)
		want   string
	}{
		"unchanged": {nil, func(*world) {}, ""},
		"changed":   {nil, func(w *world) { w.writes(t, page, "two") }, other},
		"removed": {nil, func(w *world) { require.NoError(t, os.Remove(w.dir.Path(page))) },
			"was committed at a crash: open "},
		"changed before another crash": {nil, func(w *world) { w.writes(t, page, "two"); w.keep() }, other},
		"created again":                {[]run.Event{created("04")}, func(w *world) { w.writes(t, page, "two") }, ""},
		"changed after it was created again": {[]run.Event{created("04")}, func(w *world) {
			w.writes(t, page, "two")
			w.keep()
			w.writes(t, page, "three")
		}, other},
		"abandoned":     {[]run.Event{back(1)}, func(w *world) { w.writes(t, page, "two") }, ""},
		"not abandoned": {[]run.Event{back(2)}, func(w *world) { w.writes(t, page, "two") }, other},
	} {
		t.Run(name, func(t *testing.T) {
			w := directory(t)
			w.journals(t, start, created("02"))
			w.writes(t, page, "one")
			w.keep()
			events := append([]run.Event{start, created("02")}, row.later...)
			w.journals(t, events...)
			row.change(w)
			for n := range events {
				events[n] = events[n].At(int64(n) + 1)
			}
			require.NoError(t, w.failure())
			if err := w.unchanged(events); row.want != "" {
				require.ErrorContains(t, err, row.want)
			} else {
				require.NoError(t, err)
			}
		})
	}
}
