package conformance

import (
	"bytes"
	"context"
	"image/color"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/charmbracelet/x/vt"
	"github.com/stretchr/testify/require"
)

// screen is a starter that somebody watches in a terminal.
type screen struct {
	cmd     *exec.Cmd
	columns int
	keys    *os.File
	mu      sync.Mutex
	out     bytes.Buffer
	end     chan struct{}
}

// screenRows is the height of every terminal.
const screenRows = 50

// open runs the starter in a terminal of 100 columns. It is killed if it does not end in time.
func open(t *testing.T, args ...string) *screen { t.Helper(); return rowsEnv.open(t, 100, args...) }

// open runs the starter in a terminal. It is killed if it does not end in time.
func (e *env) open(t *testing.T, columns int, args ...string) *screen {
	t.Helper()
	ours, theirs := openTerminal(t, columns)
	ctx, cancel := context.WithTimeout(context.Background(), runLimit)
	cmd := e.command(ctx, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = theirs, theirs, theirs, inTerminal()
	cmd.Env = append(cmd.Env, "TERM=xterm")
	s := &screen{cmd: cmd, columns: columns, keys: ours, end: make(chan struct{})}
	require.NoError(t, cmd.Start())
	require.NoError(t, theirs.Close())
	go func() {
		defer cancel()
		defer close(s.end)
		s.read() // until nobody has the other end any more
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

// emulate returns the terminal as it is.
func (s *screen) emulate() *vt.Emulator {
	emulator := vt.NewEmulator(s.columns, screenRows)
	go func() { _, _ = io.Copy(io.Discard, emulator) }() // what it answers, such as its colours
	_, _ = emulator.WriteString(s.text())
	_ = emulator.Close()
	return emulator
}

// lines returns the rows of the screen as they are, without spaces at their ends.
func (s *screen) lines() []string {
	rows := strings.Split(s.emulate().String(), "\n")
	for i, row := range rows {
		rows[i] = strings.TrimRight(row, " ")
	}
	return rows
}

// ink returns the colour of a text on the screen; nil: the text is not there, or has the terminal's own colour.
func (s *screen) ink(text string) color.Color {
	emulator := s.emulate()
	for y, row := range s.lines() {
		before, _, found := strings.Cut(row, text)
		if found {
			return emulator.CellAt(len([]rune(before)), y).Style.Fg
		}
	}
	return nil
}

// shows waits until a text has been drawn.
func (s *screen) shows(t *testing.T, text string) {
	t.Helper()
	until(t, "the screen shows "+text+" in\n"+s.text(), func() bool { return strings.Contains(s.text(), text) })
}

// interrupt presses Ctrl+C.
func (s *screen) interrupt(t *testing.T) {
	t.Helper()
	s.press(t, "\x03")
}

func (s *screen) press(t *testing.T, keys string) {
	t.Helper()
	_, err := s.keys.Write([]byte(keys))
	require.NoError(t, err)
}

// ends waits for the end and gives the exit code.
func (s *screen) ends(t *testing.T) int {
	t.Helper()
	until(t, "the starter ends", func() bool {
		select {
		case <-s.end:
			return true
		default:
			return false
		}
	})
	require.NoError(t, s.keys.Close())
	return s.cmd.ProcessState.ExitCode()
}
