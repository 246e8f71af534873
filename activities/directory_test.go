package activities

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/volume"
	"github.com/passbook-run/passbook/work"
)

// startsAs is a projection of the first event of a run.
func (h *house) startsAs(dir string) work.ProjectInput {
	raw, err := run.Payload(run.RunStart{RunID: "run-1", ThreadID: "run-1", Epoch: 1, Definition: h.put("x").Digest, Plan: h.plan, Inputs: h.in.At.Inputs})
	require.NoError(h.t, err)
	line, err := run.Event{Seq: 1, TS: "2026-01-02T03:04:05.000Z", Kind: run.KindRunStart, Payload: raw}.Line()
	require.NoError(h.t, err)
	return work.ProjectInput{Target: work.Target{RunID: "run-1", Dir: dir, Store: h.s.URL()}, Epoch: 1, First: 1, Lines: []string{line}}
}

// project executes Project as an attempt to which an earlier one has left these heartbeats.
func (h *house) project(in work.ProjectInput, beat *work.Heartbeat) (res work.ProjectResult, beats []work.Heartbeat, err error) {
	e := env(h.t.Context())
	e.RegisterActivity(h.acts.Project)
	if beat != nil {
		e.SetHeartbeatDetails(*beat)
	}
	e.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
		var b work.Heartbeat
		require.NoError(h.t, details.Get(&b))
		beats = append(beats, b)
	})
	got, err := e.ExecuteActivity(h.acts.Project, in)
	if err == nil {
		require.NoError(h.t, got.Get(&res))
	}
	return res, beats, err
}

// TestAProjectionTellsWhatItGotOver: what one attempt failed with travels in its heartbeats, and the attempt that succeeds reports it, in whatever worker.
func TestAProjectionTellsWhatItGotOver(t *testing.T) {
	h := newHouse(t, "")
	in := h.startsAs(filepath.Join(h.dir, "run"))
	require.NoError(t, os.WriteFile(in.Dir, []byte("a file is in the way"), 0o600))
	_, beats, err := h.project(in, nil)
	require.Error(t, err)
	last := beats[len(beats)-1].Trouble
	require.Equal(t, "file-io", last.Category)
	require.Contains(t, last.Message, "not a directory")

	require.NoError(t, os.Remove(in.Dir))
	res, _, err := h.project(in, &work.Heartbeat{Trouble: last})
	require.NoError(t, err)
	require.Equal(t, []work.Trouble{{Category: "file-io", Message: last.Message, Attempt: 1}}, res.Troubles)

	res, _, err = h.project(in, &work.Heartbeat{Host: "here"})
	require.NoError(t, err)
	require.Empty(t, res.Troubles, "nothing had failed")
}

// TestAProjectionLeavesOtherFilesAlone: a directory that holds another journal and no claim, is not written to.
func TestAProjectionLeavesOtherFilesAlone(t *testing.T) {
	h := newHouse(t, "")
	in := h.startsAs(filepath.Join(h.dir, "run"))
	name := filepath.Join(in.Dir, rundir.EventsFile)
	require.NoError(t, os.MkdirAll(in.Dir, 0o755))
	require.NoError(t, os.WriteFile(name, []byte("{\"mine\":1}\n"), 0o600))
	_, _, err := h.project(in, nil)
	require.ErrorContains(t, err, "it is not empty (in the way: events.jsonl)")
	raw, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "{\"mine\":1}\n", string(raw))
	entries, err := os.ReadDir(in.Dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

// TestAProjectionTellsWhatItHealed: damaged files that follow from the events are made again, and named.
func TestAProjectionTellsWhatItHealed(t *testing.T) {
	tests := []struct {
		name, file string
		hurt       func(raw string) string
		says       string
	}{
		{"state that is no JSON", rundir.StateFile, func(string) string { return "x" }, "state.json is damaged"},
		{"state of another schema", rundir.StateFile, func(raw string) string { return replaced(t, raw, `"schemaVersion": 3`, `"schemaVersion": 99`) }, "schema version 99"},
		{"no state", rundir.StateFile, nil, "state.json"},
		{"meta that is no JSON", rundir.MetaFile, func(string) string { return "x" }, "meta.json is damaged"},
		{"a log that was cut", rundir.TextLog, func(raw string) string { return raw[:10] }, "a log is shorter"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouse(t, "")
			in := h.startsAs(filepath.Join(h.dir, "run"))
			res, _, err := h.project(in, nil)
			require.NoError(t, err)
			require.Empty(t, res.Troubles)
			path := filepath.Join(in.Dir, filepath.FromSlash(tt.file))
			raw, err := os.ReadFile(path)
			require.NoError(t, err)
			if tt.hurt == nil {
				require.NoError(t, os.Remove(path))
			} else {
				require.NoError(t, os.WriteFile(path, []byte(tt.hurt(string(raw))), 0o600))
			}
			res, _, err = h.project(in, nil)
			require.NoError(t, err)
			require.Len(t, res.Troubles, 1)
			require.Equal(t, "state-corruption", res.Troubles[0].Category)
			require.Contains(t, res.Troubles[0].Message, tt.says)
			require.Contains(t, res.Troubles[0].Message, "made again from events.jsonl")
			healed, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(raw), string(healed))
		})
	}
}

func replaced(t *testing.T, text, old, by string) string {
	t.Helper()
	require.Contains(t, text, old)
	return strings.Replace(text, old, by, 1)
}

func TestTroublesAreClassified(t *testing.T) {
	require.Equal(t, "file-io", troubleOf(&fs.PathError{Op: "open", Path: "x", Err: syscall.EROFS}).Category)
	require.Equal(t, "unknown", troubleOf(rundir.ErrNoRun).Category)
}

// TestAnErrorNamesTheFileSystem: which one is full, and which errors pause the run instead of being tried again.
func TestAnErrorNamesTheFileSystem(t *testing.T) {
	h := newHouse(t, "")
	path := filepath.Join(h.dir, "events.jsonl")
	on, err := volume.Of(h.dir)
	require.NoError(t, err)
	for _, row := range []struct {
		errno  syscall.Errno
		pauses bool
		says   string
	}{
		{syscall.ENOSPC, true, "no space left on device (file system " + on.Mount + ": "},
		{syscall.EDQUOT, true, "disk quota exceeded (file system " + on.Mount + ": "},
		{syscall.EROFS, false, "read-only file system (file system " + on.Mount + ": "},
		{syscall.EACCES, false, "open " + path + ": permission denied"},
	} {
		t.Run(row.errno.Error(), func(t *testing.T) {
			f := telling(h.acts, func(context.Context, struct{}) (struct{}, error) {
				return struct{}{}, fmt.Errorf("append events 4 to 6: %w", &fs.PathError{Op: "open", Path: path, Err: row.errno})
			})
			_, err := f(t.Context(), struct{}{})
			require.ErrorContains(t, err, row.says)
			var app *temporal.ApplicationError
			require.Equal(t, row.pauses, errors.As(err, &app) && app.Type() == work.ErrDiskFull)
			if row.pauses {
				require.Contains(t, app.Message(), row.says)
			}
		})
	}
}
