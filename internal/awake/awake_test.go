package awake

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const bound = 20 * time.Second

// fake puts a script in place of this system's inhibitor. The last argument is the command that it runs.
func fake(t *testing.T, script string) (started, ended func() int) {
	t.Helper()
	if Program() == "" {
		t.Skip("this system has no inhibitor")
	}
	dir := t.TempDir()
	path, log := filepath.Join(dir, Program()), filepath.Join(dir, "log")
	text := "#!/bin/sh\nfor last; do :; done\necho started >>'" + log + "'\n" + script + "\necho ended >>'" + log + "'\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o700))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	count := func(what string) func() int {
		return func() int {
			raw, err := os.ReadFile(log)
			if err != nil {
				return 0
			}
			return strings.Count(string(raw), what)
		}
	}
	return count("started"), count("ended")
}

func eventually(t *testing.T, want int, got func() int) {
	t.Helper()
	require.Eventually(t, func() bool { return got() == want }, bound, 5*time.Millisecond)
}

func TestOneInhibitorForParallelCalls(t *testing.T) {
	started, ended := fake(t, "$last")
	i := New(func(err error) { t.Error(err) }, time.Millisecond)
	file, first := i.Hold()
	_, second := i.Hold()
	eventually(t, 1, started)
	first()
	first() // a second release is ignored
	again, third := i.Hold()
	require.Same(t, file, again, "the inhibitor of the call that runs")
	third()
	second()
	eventually(t, 1, ended)
	require.Equal(t, 1, started())

	_, fourth := i.Hold()
	eventually(t, 2, started)
	fourth()
	eventually(t, 2, ended)
}

// A process that inherited the file replaces the worker: the call outlives it.
func TestInhibitorLivesAsLongAsCall(t *testing.T) {
	started, ended := fake(t, "$last")
	i := New(func(err error) { t.Error(err) }, time.Millisecond)
	file, release := i.Hold()
	call := exec.Command("cat")
	call.ExtraFiles = []*os.File{file}
	stdin, err := call.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, call.Start())
	eventually(t, 1, started)
	release()
	require.Never(t, func() bool { return ended() > 0 }, 100*time.Millisecond, 5*time.Millisecond)
	require.NoError(t, stdin.Close())
	require.NoError(t, call.Wait())
	eventually(t, 1, ended)
}

// Each call begins after the one before it has ended.
func TestOneInhibitorForSuccessiveCalls(t *testing.T) {
	started, ended := fake(t, "$last")
	i := New(func(err error) { t.Error(err) }, time.Hour)
	for range 5 {
		_, release := i.Hold()
		eventually(t, 1, started)
		release()
	}
	require.Equal(t, 1, started())
	require.Zero(t, ended())
	i.mu.Lock()
	i.close()
	i.mu.Unlock()
	eventually(t, 1, ended)
}

// An inhibitor that cannot run is not started again for each call, but a minute later.
func TestOneWarning(t *testing.T) {
	for _, row := range []struct{ name, script, want string }{
		{"no logind", "echo Failed to inhibit: no bus >&2; exit 1", ": Failed to inhibit: no bus (exit status 1)"},
		{"ends early", "", " ended before the calls"},
	} {
		t.Run(row.name, func(t *testing.T) {
			started, _ := fake(t, row.script)
			warnings := make(chan error, 3)
			i := New(func(err error) { warnings <- err }, time.Millisecond)
			_, release := i.Hold()
			require.EqualError(t, <-warnings, Program()+row.want)
			release()
			file, release := i.Hold()
			require.Nil(t, file, "an inhibitor was started again at once")
			release()
			i.failed = i.failed.Add(-2 * retry)
			_, release = i.Hold()
			eventually(t, 2, started)
			release()
			require.Empty(t, warnings)
		})
	}
}

func TestMissingProgramIsOneWarning(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	warnings := 0
	i := New(func(error) { warnings++ }, time.Millisecond)
	for range 2 {
		file, release := i.Hold()
		require.Nil(t, file)
		release()
	}
	require.Equal(t, 1, warnings)
	require.Error(t, Probe(t.Context()))
}

func TestProbe(t *testing.T) {
	started, ended := fake(t, "$last || exit; ")
	require.NoError(t, Probe(t.Context()))
	require.Equal(t, 1, started())
	require.Equal(t, 1, ended())
	fake(t, "echo Access denied >&2; exit 1")
	require.EqualError(t, Probe(t.Context()), Program()+": Access denied (exit status 1)")
}
