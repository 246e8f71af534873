package cli

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
)

// output is what a command has printed so far.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// awaits waits until a text was printed.
func (o *output) awaits(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(o.String(), text) }, 20*time.Second, 10*time.Millisecond,
		"never printed: %q", text)
}

// TestRunEndedBySignalPrintsOneLine ends an attached `run` with a signal. The run itself continues.
func TestRunEndedBySignalPrintsOneLine(t *testing.T) {
	w := newTargetWorld(t)
	program, err := exec.LookPath("starter")
	require.NoError(t, err)
	for signal, row := range map[syscall.Signal]struct {
		word string
		code int
	}{syscall.SIGTERM: {"terminated", 143}, syscall.SIGHUP: {"hangup", 129}} {
		t.Run(row.word, func(t *testing.T) {
			dir := filepath.Join(w.root, row.word)
			var out, errs output
			cmd := exec.CommandContext(t.Context(), program, "run", "small.yaml", "--output-dir", dir)
			cmd.Stdout, cmd.Stderr = &out, &errs
			require.NoError(t, cmd.Start())
			out.awaits(t, "Started run")
			w.begin(t, dir)
			out.awaits(t, "The first stage") // it is attached
			require.NoError(t, cmd.Process.Signal(signal))
			require.Error(t, cmd.Wait())
			require.Equal(t, row.code, cmd.ProcessState.ExitCode(), errs.String())
			_, last, _ := strings.Cut(out.String(), "The first stage\n")
			require.Equal(t, "Ended by a signal ("+row.word+"). The run continues. To watch it: starter watch "+dir+"\n",
				last)
			require.NotContains(t, errs.String(), "signal")
		})
	}
}

// begin projects the first events of a run that was started.
func (w *targetWorld) begin(t *testing.T, dir string) {
	t.Helper()
	d := projector.At(dir)
	claim, err := d.Claim()
	require.NoError(t, err)
	start, err := line(1, run.KindRunStart, w.temporal.input().Start)
	require.NoError(t, err)
	stage, err := line(2, run.KindPhaseStart, run.PhaseStart{Title: "The first stage"})
	require.NoError(t, err)
	s, err := store.Open(t.Context(), claim.Store)
	require.NoError(t, err)
	defer s.Close()
	_, err = d.Project(t.Context(), blobs.Of(s), projector.Batch{Epoch: 1, First: 1, Lines: []string{start, stage}})
	require.NoError(t, err)
}
