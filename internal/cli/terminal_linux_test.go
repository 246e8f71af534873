package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// seat is a terminal with the starter running on it.
type seat struct {
	t     *testing.T
	keys  *os.File // input of the terminal
	tty   *os.File
	found unix.Termios // modes of the terminal before the start
	cmd   *exec.Cmd
	mu    sync.Mutex
	shown bytes.Buffer
}

// sit starts the starter on a terminal of 80 by 24.
func sit(t *testing.T, env []string, args ...string) *seat {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	require.NoError(t, unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { tty.Close(); master.Close() })

	s := &seat{t: t, keys: master, tty: tty}
	s.found = s.modes()
	s.cmd = &exec.Cmd{Path: os.Args[0], Args: append([]string{"starter"}, args...), Env: env, Stdin: tty, Stdout: tty,
		Stderr:      tty,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Setctty: true}}
	require.NoError(t, s.cmd.Start())
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			if err != nil {
				return
			}
			s.mu.Lock()
			s.shown.Write(buf[:n])
			s.mu.Unlock()
		}
	}()
	return s
}

func (s *seat) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.String()
}

func (s *seat) sees(text string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return strings.Contains(s.all(), text) }, 20*time.Second, 20*time.Millisecond,
		"never shown: %q", text)
}

func (s *seat) types(keys string) {
	_, err := io.WriteString(s.keys, keys)
	require.NoError(s.t, err)
}

// modes returns the line settings of the terminal: echo, signals and so on.
func (s *seat) modes() unix.Termios {
	m, err := unix.IoctlGetTermios(int(s.tty.Fd()), unix.TCGETS)
	require.NoError(s.t, err)
	return *m
}

// pausedExample returns a paused run of the example, and the environment to watch it.
func pausedExample(t *testing.T) (dir string, env []string) {
	t.Helper()
	home := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(home, "corpus"), subOf(t, "corpus")))
	dir = filepath.Join(home, "run")
	pausedRun(func(err error) { require.NoError(t, err) }, filepath.Join(home, "corpus", "pipeline.yaml"), dir,
		filepath.Join(home, "state"), "11112222-3333", "user-requested")
	own := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"TERM", "COLORTERM", "NO_COLOR", "TMUX"}, name)
	})
	return dir, append(own, "TERM=xterm-256color", "PASSBOOK_STATE_DIR="+filepath.Join(home, "state"),
		"XDG_CONFIG_HOME="+home, "TEMPORAL_ADDRESS=")
}

// TestTerminalIsRestored leaves the screen in each way and checks modes, screen and cursor.
func TestTerminalIsRestored(t *testing.T) {
	dir, env := pausedExample(t)
	for name, leave := range map[string]func(s *seat){
		"q":       func(s *seat) { s.types("q") },
		"Ctrl+C":  func(s *seat) { s.types("\x03") },
		"SIGTERM": func(s *seat) { require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM)) },
		"resized, then q": func(s *seat) {
			require.NoError(t, unix.IoctlSetWinsize(int(s.keys.Fd()), unix.TIOCSWINSZ,
				&unix.Winsize{Row: 40, Col: 160}))
			require.NoError(t, s.cmd.Process.Signal(syscall.SIGWINCH))
			s.sees("┌─")
			s.types("q")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := sit(t, env, "watch", dir)
			s.sees("\x1b[?1049h") // the alternate screen
			s.sees("Press r to resume")
			require.NotEqual(t, s.found, s.modes(), "keys are read one by one")
			leave(s)
			require.NoError(t, s.cmd.Wait())
			s.sees("Pipeline paused by user. Resume with:")
			require.Equal(t, s.found, s.modes())
			all := s.all()
			require.Greater(t, strings.LastIndex(all, "\x1b[?25h"), strings.LastIndex(all, "\x1b[?25l"),
				"the cursor is shown")
			require.Contains(t, all[strings.LastIndex(all, "\x1b[?1049l"):], "Pipeline paused by user. Resume with:")
		})
	}
}

var colours = regexp.MustCompile("\x1b\\[[0-9;]*\\b(3[0-7]|9[0-7]|38;[25])[0-9;]*m")

func TestNoColorDisablesColours(t *testing.T) {
	dir, env := pausedExample(t)
	for _, plain := range []bool{false, true} {
		with := env
		if plain {
			with = append(with[:len(with):len(with)], "NO_COLOR=1")
		}
		s := sit(t, with, "watch", dir)
		s.sees("Press r to resume")
		s.types("q")
		require.NoError(t, s.cmd.Wait())
		require.Equal(t, plain, !colours.MatchString(s.all()), "NO_COLOR: %v", plain)
	}
}

// TestActionWithoutServerReportsIt watches from the directory alone, and fails to resume.
func TestActionWithoutServerReportsIt(t *testing.T) {
	dir, env := pausedExample(t)
	s := sit(t, env, "watch", dir)
	s.sees("Press r to resume")
	s.types("r")
	s.sees("Resume?")
	s.types("y")
	s.sees("this needs a server")
	s.types("q")
	require.NoError(t, s.cmd.Wait())
}

// TestDumbTerminalGetsLines sends no escape codes to a dumb terminal. Script watch reads a pipe.
func TestDumbTerminalGetsLines(t *testing.T) {
	dir, env := pausedExample(t)
	s := sit(t, append(env, "TERM=dumb"), "watch", dir)
	require.NoError(t, s.cmd.Wait())
	s.sees("Pipeline paused by user.")
	require.NotContains(t, s.all(), "\x1b")
}
