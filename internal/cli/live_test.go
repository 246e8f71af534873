package cli

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/live"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestOutputOfRunningCallIsShown shows what an agent prints in status and, as it grows, in the log that is followed.
func TestOutputOfRunningCallIsShown(t *testing.T) {
	w := newHost(t)
	const call = "talks/g0.001.1.-.1"
	d := w.journaledRun(t, "talks", "", event{run.KindPassStart, run.PassStart{Pass: writing, Call: call, Attempt: 2,
		Attempts: 3}})
	file := filepath.Join(w.state, "scratch", calls.FolderName(call)+".abc", "1", calls.StdoutFile)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	const key = "sk-ant-api03-" + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	write := func(text string) {
		f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		_, err = f.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	write("I read the page.\nThe key is " + key + "\nI wri")
	m, err := d.Meta()
	require.NoError(t, err)
	var out strings.Builder
	a := &app{out: &out, settings: config.Settings{StateDir: w.state}}
	a.printRows(a.callRows(inspection{dir: d, Run: view.Run{Now: rundir.Now{State: m.State},
		Effective: run.EffectiveStatus{ShownStatus: run.Running.Shown()}}}, time.Date(2026, 1, 2, 3, 5, 0, 0, time.UTC)))
	require.Regexp(t, `^Running:   writer for \S+ \(attempt 2\)\n           I wri\n$`, out.String())

	tail := tailCalls{a: a, calls: live.Calls{
		File: func(string) (string, error) { return file, nil },
		Hide: func(text string) string { return strings.ReplaceAll(text, key, "<hidden>") },
	}}
	now := time.Unix(1000, 0)
	step := func() string {
		out.Reset()
		now = now.Add(tailEvery)
		tail.print(d, m.State, now)
		return out.String()
	}
	require.Equal(t, "  writer │ I read the page.\n  writer │ The key is <hidden>\n", step())
	require.Empty(t, step())
	write("te it.\n")
	require.Equal(t, "  writer │ I write it.\n", step())
	write(strings.Repeat("x\n", 100))
	require.Equal(t, "  writer │ … 60 lines more\n"+strings.Repeat("  writer │ x\n", maxTail), step())
	write("soon\n")
	tail.print(d, m.State, now)
	require.Equal(t, maxTail+1, strings.Count(out.String(), "\n"), "printed once a second")
}

// TestMissingLogIsAwaited: a run that has just been started has no log for a moment.
func TestMissingLogIsAwaited(t *testing.T) {
	w := newHost(t)
	d := w.journaledRun(t, "starts", "", event{run.KindPassStart, run.PassStart{Pass: writing, Attempt: 1, Attempts: 3}})
	log := d.Path(rundir.TextLog)
	require.NoError(t, os.Rename(log, log+".later"))
	a := &app{}
	_, err := a.openLog(t.Context(), d, false)
	require.ErrorIs(t, err, fs.ErrNotExist)
	interrupted, stop := context.WithCancel(t.Context())
	stop()
	f, err := a.openLog(interrupted, d, true)
	require.NoError(t, err)
	require.Nil(t, f, "it waits until it is interrupted")
	go func() { _ = os.Rename(log+".later", log) }()
	f, err = a.openLog(t.Context(), d, true)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}
