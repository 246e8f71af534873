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

	"github.com/passbook-run/passbook/internal/volume"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// startsAs is a projection of the first event of a run.
func (h *harness) startsAs(dir string) contract.ProjectInput {
	return contract.ProjectInput{
		Target: contract.Target{RunID: "run-1", Dir: dir, Store: h.s.URL(), Epoch: 1}, First: 1,
		Lines: []string{h.line(1, run.KindRunStart, run.RunStart{
			RunID: "run-1", ThreadID: "run-1", Epoch: 1, Definition: h.put("x").Digest, Plan: h.plan,
			Inputs: h.in.At.Inputs,
		})},
	}
}

// line is the line of an event.
func (h *harness) line(seq int64, kind run.Kind, payload any) string {
	h.t.Helper()
	raw := must(run.Payload(payload))(h.t)
	line := must(run.Event{Seq: seq, TS: "2026-01-02T03:04:05.000Z", Kind: kind, Payload: raw}.Line())(h.t)
	return line
}

// projected executes Project, which returns no error.
func (h *harness) projected(in contract.ProjectInput) contract.ProjectResult {
	h.t.Helper()
	res, _, err := h.project(in, nil)
	require.NoError(h.t, err)
	return res
}

// project executes Project as an attempt to which an earlier one has left these heartbeats.
func (h *harness) project(in contract.ProjectInput,
	beat *contract.Heartbeat) (res contract.ProjectResult, beats []contract.Heartbeat, err error) {
	e := env(h.t.Context())
	e.RegisterActivity(h.acts.Project)
	if beat != nil {
		e.SetHeartbeatDetails(*beat)
	}
	e.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
		var b contract.Heartbeat
		require.NoError(h.t, details.Get(&b))
		beats = append(beats, b)
	})
	got, err := e.ExecuteActivity(h.acts.Project, in)
	if err == nil {
		require.NoError(h.t, got.Get(&res))
	}
	return res, beats, err
}

func TestProjectReportsRecoveredError(t *testing.T) {
	h := newHarness(t, "")
	in := h.startsAs(filepath.Join(h.dir, "run"))
	require.NoError(t, os.WriteFile(in.Dir, []byte("a file is in the way"), 0o600))
	_, beats, err := h.project(in, nil)
	require.Error(t, err)
	last := beats[len(beats)-1].LastError
	require.Equal(t, run.CategoryFileIO, last.Category)
	require.Contains(t, last.Message, "not a directory")

	require.NoError(t, os.Remove(in.Dir))
	res, _, err := h.project(in, &contract.Heartbeat{LastError: last})
	require.NoError(t, err)
	require.Equal(t, []contract.RecoveredError{{Category: "file-io", Message: last.Message, Attempt: 1}}, res.Recovered)

	res, _, err = h.project(in, &contract.Heartbeat{Host: "here"})
	require.NoError(t, err)
	require.Empty(t, res.Recovered, "nothing had failed")
}

// TestProjectReportsDamagedFile: Temporal retries until an operator has fixed the file; the error has the command.
func TestProjectReportsDamagedFile(t *testing.T) {
	for file, advice := range map[string]string{
		rundir.ClaimFile: "&& starter rebuild run-1 --output-dir $DIR", rundir.OwnerFile: "mv $FILE $FILE.damaged",
	} {
		t.Run(file, func(t *testing.T) {
			h := newHarness(t, "")
			in := h.startsAs(filepath.Join(h.dir, "run"))
			d := rundir.At(in.Dir)
			require.NoError(t, d.Take(run.Claim{Version: 1, RunID: "run-1", Pipeline: "small",
				CreatedAt: "2026-01-02T03:04:05.000Z"}))
			require.NoError(t, rundir.TakeOver(t.Context(), d, rundir.Owner{Epoch: 1, RunID: "run-1"}, run.Tail{}))
			h.projected(in)
			path := d.Path(file)
			whole := read(t, path)
			write(path, `{"version":`)

			e := env(t.Context())
			e.RegisterActivityWithOptions(redactingInterceptor(h.acts, h.acts.Project), activity.RegisterOptions{
				Name: contract.Project,
			})
			_, err := e.ExecuteActivity(contract.Project, in)
			var app *temporal.ApplicationError
			require.ErrorAs(t, err, &app)
			require.False(t, app.NonRetryable(), "%v", err)
			require.ErrorContains(t, err, "read "+path+": ")
			require.ErrorContains(t, err, strings.NewReplacer("$FILE", path, "$DIR", in.Dir).Replace(advice))

			write(path, whole)
			must(e.ExecuteActivity(contract.Project, in))(t)
			if file == rundir.OwnerFile {
				require.NoError(t, os.Remove(path))
				_, err = e.ExecuteActivity(contract.Project, in)
				require.NoError(t, err, "as the command does")
			}
		})
	}
}

func TestUnknownStoreSchemeIsNonRetryable(t *testing.T) {
	h := newHarness(t, "")
	in := contract.OpenInput{
		Target: contract.Target{RunID: "run-1", Dir: filepath.Join(h.dir, "run"), Store: "gopher://bucket"},
		Claim:  run.Claim{Version: 1, RunID: "run-1"}, Epoch: 1,
	}
	_, err := do(t, h.acts.Open, in)
	app := failed(t, err, contract.ErrBadInput)
	require.True(t, app.NonRetryable())
	require.Contains(t, app.Message(), "gopher://bucket")
	require.NoDirExists(t, in.Dir)
}

// TestProjectReportsRepairs: rundir has all repairs.
func TestProjectReportsRepairs(t *testing.T) {
	h := newHarness(t, "")
	in := h.startsAs(filepath.Join(h.dir, "run"))
	res := h.projected(in)
	require.Empty(t, res.Recovered)
	path := filepath.Join(in.Dir, rundir.StateFile)
	whole := read(t, path)
	write(path, "x")
	res = h.projected(in)
	require.Len(t, res.Recovered, 1)
	require.Equal(t, run.CategoryStateCorruption, res.Recovered[0].Category)
	require.Contains(t, res.Recovered[0].Message, rundir.StateFile)
	require.Equal(t, whole, read(t, path))
}

func TestClassifyError(t *testing.T) {
	require.Equal(t, run.CategoryFileIO, classifyError(&fs.PathError{Op: "open", Path: "x",
		Err: syscall.EROFS}).Category)
	require.Equal(t, run.CategoryUnknown, classifyError(rundir.ErrNoRun).Category)
}

func TestErrorContainsFileSystem(t *testing.T) {
	h := newHarness(t, "")
	path := filepath.Join(h.dir, "events.jsonl")
	on := must(volume.Of(h.dir))(t)
	for _, row := range []struct {
		errno   syscall.Errno
		pauses  bool
		message string
	}{
		{syscall.ENOSPC, true, "no space left on device (file system " + on.Mount + ": "},
		{syscall.EDQUOT, true, "disk quota exceeded (file system " + on.Mount + ": "},
		{syscall.EROFS, false, "read-only file system (file system " + on.Mount + ": "},
		{syscall.EACCES, false, "open " + path + ": permission denied"},
	} {
		t.Run(row.errno.Error(), func(t *testing.T) {
			f := redactingInterceptor(h.acts, func(context.Context, contract.Target) (struct{}, error) {
				return struct{}{}, fmt.Errorf("append events 4 to 6: %w",
					&fs.PathError{Op: "open", Path: path, Err: row.errno})
			})
			_, err := f(t.Context(), contract.Target{})
			require.ErrorContains(t, err, row.message)
			var app *temporal.ApplicationError
			require.Equal(t, row.pauses, errors.As(err, &app) && app.Type() == contract.ErrDiskFull)
			if row.pauses {
				require.Contains(t, app.Message(), row.message)
			}
		})
	}
}
