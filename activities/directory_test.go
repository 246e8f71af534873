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
// TestADamagedFileOfTheRunIsNamedAndWaitedFor: what says whose directory it is cannot be made again by the run, so an operator has to, and is told how.
func TestADamagedFileOfTheRunIsNamedAndWaitedFor(t *testing.T) {
	for _, row := range []struct {
		file, text, cause, next string
	}{
		{rundir.ClaimFile, `{"version":1,"run_id"`, "unexpected end of JSON input", "&& starter rebuild run-1 --output-dir $DIR"},
		{rundir.OwnerFile, `{"epoch":`, "unexpected end of JSON input", "mv $FILE $FILE.damaged"},
	} {
		t.Run(row.file, func(t *testing.T) {
			h := newHouse(t, "")
			in := h.startsAs(filepath.Join(h.dir, "run"))
			d := rundir.At(in.Dir)
			require.NoError(t, d.Take(run.Claim{Version: 1, RunID: "run-1", Pipeline: "small", CreatedAt: "2026-01-02T03:04:05.000Z"}))
			if row.file == rundir.OwnerFile {
				require.NoError(t, d.TakeOver(t.Context(), rundir.Owner{Epoch: 1, RunID: "run-1"}, run.Tail{}))
			}
			_, _, err := h.project(in, nil)
			require.NoError(t, err)
			file := d.Path(row.file)
			whole, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, []byte(row.text), 0o600))

			e := env(t.Context())
			e.RegisterActivityWithOptions(telling(h.acts, h.acts.Project), activity.RegisterOptions{Name: work.Project})
			_, err = e.ExecuteActivity(work.Project, in)
			app := (*temporal.ApplicationError)(nil)
			require.ErrorAs(t, err, &app)
			require.False(t, app.NonRetryable(), "%v", err)
			places := strings.NewReplacer("$FILE", file, "$DIR", in.Dir)
			require.ErrorContains(t, err, "read "+file+": "+row.cause+"; nothing was written. The run continues once the file can be read")
			require.ErrorContains(t, err, places.Replace(row.next))
			require.NotContains(t, err.Error(), "Name a missing or empty directory")

			require.NoError(t, os.WriteFile(file, whole, 0o600))
			_, err = e.ExecuteActivity(work.Project, in)
			require.NoError(t, err)
			if row.file == rundir.ClaimFile {
				return
			}
			require.NoError(t, os.Remove(file))
			_, err = e.ExecuteActivity(work.Project, in)
			require.NoError(t, err, "what was advised helps too")
		})
	}
}

// TestAnUnknownKindOfStoreIsRefusedOnce: no later try could open it, and nothing is written for it.
func TestAnUnknownKindOfStoreIsRefusedOnce(t *testing.T) {
	h := newHouse(t, "")
	in := work.OpenInput{Target: work.Target{RunID: "run-1", Dir: filepath.Join(h.dir, "run"), Store: "gopher://bucket"}, Claim: run.Claim{Version: 1, RunID: "run-1"}, Epoch: 1}
	e := env(t.Context())
	e.RegisterActivity(h.acts.Open)
	_, err := e.ExecuteActivity(h.acts.Open, in)
	app := (*temporal.ApplicationError)(nil)
	require.ErrorAs(t, err, &app)
	require.True(t, app.NonRetryable())
	require.Equal(t, work.ErrBadInput, app.Type())
	require.Equal(t, `open the store gopher://bucket: this program has no store of kind "gopher": use file:///path, s3://, gs:// or azblob://`, app.Message())
	require.NoDirExists(t, in.Dir)
}

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
