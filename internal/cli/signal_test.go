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
	w := newHost(t)
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
