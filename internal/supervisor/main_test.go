package supervisor_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/supervisor"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == supervisor.Verb {
		os.Exit(supervisor.Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

const bound = 20 * time.Second

// waiting is a supervisor of a delivery that is not claimed yet.
func waiting(t testing.TB, argv ...string) *supervisor.Process {
	t.Helper()
	if len(argv) == 0 {
		self, err := os.Executable()
		require.NoError(t, err)
		argv = []string{self, supervisor.Verb}
	}
	if mutant, ok := os.LookupEnv("PASSBOOK_MUTANT"); ok { // a supervisor inherits no environment
		argv = append([]string{"env", "PASSBOOK_MUTANT=" + mutant, "PASSBOOK_MUTANT_REACHED=" +
			os.Getenv("PASSBOOK_MUTANT_REACHED")}, argv...)
	}
	p, err := supervisor.Start(argv, t.TempDir(), nil)
	require.NoError(t, err)
	return p
}

// begin lets a shell command be the agent.
func begin(t testing.TB, p *supervisor.Process, script string) { beginWithin(t, p, script, 0) }

// beginWithin lets a shell command be the agent, with a bound of its output.
func beginWithin(t testing.TB, p *supervisor.Process, script string, output int64) {
	t.Helper()
	c := supervisor.Call{
		Path: "/bin/sh", Argv: []string{"sh", "-c", script}, Dir: p.Dir(), Stdin: os.DevNull, Grace: 2 * time.Second,
		Timeout: time.Minute, Output: output,
	}
	c.Stdout, c.Stderr = filepath.Join(p.Dir(), "stdout"), filepath.Join(p.Dir(), "stderr")
	for _, path := range []string{c.Stdout, c.Stderr} {
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	require.NoError(t, p.StartAgent(c, []string{"PATH=" + os.Getenv("PATH"), "SECRET=open-sesame"}))
}

func ended(t testing.TB, p *supervisor.Process) supervisor.Exit {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(bound):
		t.Fatal("the supervisor does not end")
	}
	exit, err := supervisor.ReadExit(p.Dir())
	require.NoError(t, err)
	return exit
}

func TestUnclaimedSupervisorStartsNothing(t *testing.T) {
	p := waiting(t)
	require.True(t, p.Identity().Alive())
	require.NoError(t, p.Abandon())
	left, err := os.ReadDir(p.Dir())
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestDeliveryFiles(t *testing.T) {
	p := waiting(t)
	begin(t, p, "cat supervisor.json; while [ ! -e go ]; do sleep 0.01; done; exit 3")
	stdout := filepath.Join(p.Dir(), "stdout")
	require.Eventually(t, func() bool { fi, err := os.Stat(stdout); return err == nil && fi.Size() > 0 }, bound,
		5*time.Millisecond)
	rec, ok, err := supervisor.ReadRecord(p.Dir())
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, p.Identity(), rec.Process)
	require.Equal(t, p.Dir(), rec.Delivery)
	require.WithinDuration(t, time.Now().Add(time.Minute), rec.Deadline, time.Minute)
	_, err = supervisor.ReadExit(p.Dir())
	require.ErrorIs(t, err, supervisor.ErrNoExit)
	require.NoError(t, os.WriteFile(filepath.Join(p.Dir(), "go"), nil, 0o600))
	require.Equal(t, 3, ended(t, p).Code)
	for _, name := range []string{
		supervisor.CallFile, supervisor.EnvironFile, supervisor.RecordFile, supervisor.ExitFile,
	} {
		fi, err := os.Stat(filepath.Join(p.Dir(), name))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), fi.Mode(), name)
	}
}

// The supervisor holds the file open until it ends; its agent does not have it.
func TestHeldFile(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	p, err := supervisor.Start([]string{self, supervisor.Verb}, t.TempDir(), w)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	begin(t, p, "if (: >&3) 2>stderr; then echo inherited; fi; sleep 600 >stdout-of-sleep 2>&1 & echo $! >sleeping; wait")
	require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(p.Dir(), "sleeping")); return err == nil }, bound,
		5*time.Millisecond)
	require.NoError(t, r.SetReadDeadline(time.Now()))
	_, err = r.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "it is still open")
	require.NoError(t, p.Stop("the test ends"))
	ended(t, p)
	require.NoError(t, r.SetReadDeadline(time.Now().Add(bound)))
	_, err = r.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	printed, err := os.ReadFile(filepath.Join(p.Dir(), "stdout"))
	require.NoError(t, err)
	require.Empty(t, string(printed))
	require.NoError(t, r.Close())
}

// A folder that the terminal of the worker had open would lead out of a sandbox.
func TestAgentInheritsNoFile(t *testing.T) {
	fd, err := syscall.Open(t.TempDir(), syscall.O_RDONLY|syscall.O_DIRECTORY, 0) // without close-on-exec
	require.NoError(t, err)
	p := waiting(t)
	require.NoError(t, syscall.Close(fd))
	begin(t, p, fmt.Sprintf("if ls /dev/fd/%d/ 2>stderr; then echo inherited; fi", fd))
	require.Zero(t, ended(t, p).Code)
	printed, err := os.ReadFile(filepath.Join(p.Dir(), "stdout"))
	require.NoError(t, err)
	require.Empty(t, string(printed))
}

func TestStopAll(t *testing.T) {
	folder := t.TempDir()
	dir := filepath.Join(folder, "call", "1")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	self, err := os.Executable()
	require.NoError(t, err)
	p, err := supervisor.Start([]string{self, supervisor.Verb}, dir, nil)
	require.NoError(t, err)
	begin(t, p, "sleep 600")
	require.Eventually(t, func() bool { all, err := supervisor.Running(folder); return err == nil && len(all) == 1 },
		bound, 5*time.Millisecond)
	n, err := supervisor.StopAll(t.Context(), folder, "the test ends")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	exit := ended(t, p)
	require.True(t, exit.Killed)
	require.Equal(t, "the test ends", exit.KillCause)
	n, err = supervisor.StopAll(t.Context(), folder, "again")
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestDaemonsSurviveCall(t *testing.T) {
	p := waiting(t)
	begin(
		t, p, supervisor.DaemonEnv+"=1 setsid sleep 600 & echo $!; until grep -q "+supervisor.DaemonEnv+
			" /proc/$!/environ; do sleep 0.01; done; setsid sleep 600 & echo $!",
	)
	require.Zero(t, ended(t, p).Code)
	raw, err := os.ReadFile(filepath.Join(p.Dir(), "stdout"))
	require.NoError(t, err)
	pids := strings.Fields(string(raw))
	require.Len(t, pids, 2)
	daemon, other := named(t, pids[0]), named(t, pids[1])
	require.True(t, daemon.Alive())
	require.False(t, other.Alive())
	require.NoError(t, exec.Command("kill", pids[0]).Run())
	require.NoError(t, daemon.AwaitEnd(t.Context()))
}

func TestArgvWritesTheProgramThatItCarries(t *testing.T) {
	state := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	argv, err := supervisor.Argv(state)
	require.NoError(t, err)
	require.Equal(t, []string{self, supervisor.Verb}, argv, "it carries none")

	supervisor.Carry(t, []byte("#!/bin/sh\n"))
	argv, err = supervisor.Argv(state)
	require.NoError(t, err)
	require.Len(t, argv, 1)
	require.NoError(t, exec.Command(argv[0]).Run())
	require.NoError(t, os.WriteFile(argv[0], nil, 0o700)) // a start that was interrupted
	again, err := supervisor.Argv(state)
	require.NoError(t, err)
	require.Equal(t, argv, again)
	require.NoError(t, exec.Command(argv[0]).Run())
	supervisor.Carry(t, []byte("#!/bin/sh\nexit 1\n"))
	other, err := supervisor.Argv(state)
	require.NoError(t, err)
	require.NotEqual(t, argv, other, "a worker of another version may run")
}

func named(t *testing.T, pid string) process.Identity {
	t.Helper()
	n := 0
	for _, c := range pid {
		n = n*10 + int(c-'0')
	}
	id, err := process.Of(n)
	if err != nil {
		require.ErrorIs(t, err, process.ErrGone)
	}
	return id
}

func TestExitRecordIsWrittenOverObstacles(t *testing.T) {
	for name, script := range map[string]string{
		"a directory in its way":    "mkdir -p exit.json/a",
		"no output":                 "rm stdout",
		"the output is a pipe":      "rm stdout; mkfifo stdout",
		"the output is a symlink":   "rm stdout; ln -s nowhere stdout",
		"the output is a directory": "rm stdout; mkdir stdout",
		"no directory":              `rm -rf "$PWD"`,
		"a pipe as its directory":   `rm -rf "$PWD"; mkfifo "$PWD"`,
		"a pipe above it":           `d=$(dirname "$PWD"); cd /; rm -rf "$d"; mkfifo "$d"`,
	} {
		t.Run(name, func(t *testing.T) {
			p := waiting(t)
			begin(t, p, script+"; exit 3")
			require.Equal(t, 3, ended(t, p).Code)
		})
	}
}

func TestInvalidExitRecord(t *testing.T) {
	for name, row := range map[string]struct{ record, message string }{
		"half of it":         {`{"version":1,"co`, "without a record"},
		"of another release": {`{"version":2,"code":0}`, "version 2 is unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, supervisor.ExitFile), []byte(row.record), 0o600))
			_, err := supervisor.ReadExit(dir)
			require.ErrorContains(t, err, row.message)
			require.Equal(t, name == "half of it", errors.Is(err, supervisor.ErrNoExit))
		})
	}
	t.Run("a directory", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(dir, supervisor.ExitFile), 0o700))
		_, err := supervisor.ReadExit(dir)
		require.ErrorIs(t, err, supervisor.ErrNoExit)
	})
}

func TestOutputIsTruncated(t *testing.T) {
	const most = 1 << 10
	for name, row := range map[string]struct {
		script         string
		overflow       bool
		stdout, stderr int64
	}{
		"a long answer":     {"head -c 5000 /dev/zero", true, most, 0},
		"long error output": {"head -c 5000 /dev/zero >&2; echo Done.", false, 6, most},
		"error output without end": {
			"head -c 5000 /dev/zero >&2; until [ $(wc -c <stderr) -le 1024 ]; do sleep 0.01; done; head -c 5000 " +
				"/dev/zero " +
				">&2; echo Done.", false, 6, most,
		},
		"a symlink in its place": {"head -c 5000 /dev/zero >mine; rm stderr; ln -s mine stderr; echo Done.", false, 6,
			5000},
		"an answer of exactly the limit, checked while the agent runs": {
			"head -c 1024 /dev/zero; head -c 5000 /dev/zero >&2; until [ $(wc -c <stderr) -le 1024 ]; do sleep 0.01; done",
			false, most, most,
		},
		"another answer in its place": {"echo first; rm stdout; echo Done. >stdout", false, 6, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := waiting(t)
			beginWithin(t, p, row.script, most)
			exit := ended(t, p)
			require.Equal(t, row.overflow, exit.Overflow)
			require.Equal(t, name == "another answer in its place", exit.Replaced)
			require.Equal(t, map[bool]int64{true: most}[row.overflow], exit.Limit)
			require.Zero(t, exit.Code)
			for file, size := range map[string]int64{"stdout": row.stdout, "stderr": row.stderr} {
				fi, err := os.Stat(filepath.Join(p.Dir(), file))
				require.NoError(t, err)
				require.Equal(t, size, fi.Size(), file)
			}
		})
	}
}
