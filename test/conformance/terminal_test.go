package conformance

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// screen is a starter in a terminal.
type screen struct {
	cmd  *exec.Cmd
	keys *os.File
	mu   sync.Mutex
	out  bytes.Buffer
	end  chan struct{}
}

// The size of every terminal.
const screenRows, screenColumns = 50, 100

// open runs the starter in a terminal. It is killed if it does not end in time.
func (e *env) open(t *testing.T, args ...string) *screen {
	t.Helper()
	ours, theirs := openTerminal(t)
	ctx, cancel := context.WithTimeout(context.Background(), runLimit)
	cmd := e.command(ctx, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = theirs, theirs, theirs, inTerminal()
	cmd.Env = append(cmd.Env, "TERM=xterm")
	s := &screen{cmd: cmd, keys: ours, end: make(chan struct{})}
	require.NoError(t, cmd.Start())
	require.NoError(t, theirs.Close())
	go func() {
		defer cancel()
		defer close(s.end)
		s.read() // until the other end is closed
		_ = cmd.Wait()
	}()
	return s
}

func (s *screen) read() {
	buf := make([]byte, 4096)
	for {
		n, err := s.keys.Read(buf)
		s.mu.Lock()
		s.out.Write(buf[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// text returns everything drawn so far.
func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

var colorCode = regexp.MustCompile("\x1b\\[[0-9;]*m")

// color returns the escape code before a text.
func (s *screen) color(text string) string {
	before, _, _ := strings.Cut(s.text(), text)
	codes := colorCode.FindAllString(before, -1)
	return codes[len(codes)-1]
}

// shows waits until a text has been drawn.
func (s *screen) shows(t *testing.T, text string) {
	t.Helper()
	until(t, "the screen shows "+text+" in\n"+s.text(), func() bool { return strings.Contains(s.text(), text) })
}

func (s *screen) interrupt(t *testing.T) { t.Helper(); s.press(t, "\x03") }

func (s *screen) press(t *testing.T, keys string) {
	t.Helper()
	_, err := s.keys.Write([]byte(keys))
	require.NoError(t, err)
}

// ends waits for the end and returns the exit code.
func (s *screen) ends(t *testing.T) int {
	t.Helper()
	select {
	case <-s.end:
	case <-time.After(waitLimit):
		require.FailNow(t, "the starter does not end", s.text())
	}
	require.NoError(t, s.keys.Close())
	return s.cmd.ProcessState.ExitCode()
}
