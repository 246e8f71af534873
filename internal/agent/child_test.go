package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/run"
)

// bound is how long a test waits for what must happen.
const bound = 20 * time.Second

func start(t *testing.T, c Command) *Child {
	t.Helper()
	child, err := begin(c)
	require.NoError(t, err)
	t.Cleanup(func() { child.Kill("end of test"); <-child.Done() })
	return child
}

func result(t *testing.T, child *Child) Exit {
	t.Helper()
	select {
	case <-child.Done():
	case <-time.After(bound):
		t.Fatal("the child did not end")
	}
	exit, err := child.Result()
	require.NoError(t, err)
	return exit
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// alive reports whether a process runs; a zombie does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, ok := strings.Cut(string(stat), ") ")
	return err != nil || !ok || !strings.HasPrefix(rest, "Z")
}

func requireGone(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool { return !alive(pid) }, bound, 5*time.Millisecond, "process %d is still there",
		pid)
}

// pids waits for the two numbers that an agent with a child prints.
func pids(t *testing.T, c Command) (self, child int) {
	t.Helper()
	require.Eventually(t, func() bool {
		data, err := os.ReadFile(c.Stdout)
		n, _ := fmt.Sscanf(string(data), "%d %d\n", &self, &child)
		return err == nil && n == 2 && strings.HasSuffix(string(data), "\n")
	}, bound, 5*time.Millisecond)
	return self, child
}

func TestLongRepliesAreComplete(t *testing.T) {
	for _, size := range []int{0, 1 << 20} {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			c := commandIn(t.TempDir(), fmt.Sprintf("say %d", size))
			exit := result(t, start(t, c))
			require.Zero(t, exit.Code)
			require.Equal(t, strings.Repeat("x", size), read(t, c.Stdout))
		})
	}
}

func TestPromptIsStandardInput(t *testing.T) {
	c := commandIn(t.TempDir(), "echo")
	require.NoError(t, os.WriteFile(c.Prompt, []byte("answer me\n"), 0o600))
	require.Zero(t, result(t, start(t, c)).Code)
	require.Equal(t, "answer me\n", read(t, c.Stdout))
}

func TestExitHasCodeTimesAndStderr(t *testing.T) {
	c := commandIn(t.TempDir(), "exit 3")
	before := time.Now()
	exit := result(t, start(t, c))
	require.Equal(t, 3, exit.Code)
	require.Empty(t, exit.Signal)
	require.False(t, exit.TimedOut || exit.Killed)
	require.WithinRange(t, exit.Started, before, time.Now())
	require.Positive(t, exit.Duration)
	require.Equal(t, "went wrong\n", read(t, c.Stderr))
}

func TestChildEnvironmentIsLimited(t *testing.T) {
	c := commandIn(t.TempDir(), "env")
	c.Env = []string{"EXTRA_ALLOWED"}
	c.Environment = []string{
		"PATH=/bin", "HOME=/h", "https_proxy=p", "SSL_CERT_FILE=s", "ANTHROPIC_API_KEY=k", "CLAUDE_CONFIG_DIR=d",
		"EXTRA_ALLOWED=e",
		"CLAUDECODE=1", "CLAUDE_CODE_ENTRYPOINT=cli", "AWS_SECRET_ACCESS_KEY=x", "PWD=/elsewhere",
		"DISABLE_TELEMETRY=0",
	}
	c.ExtraEnv["CLAUDECODE"] = "1"
	require.Zero(t, result(t, start(t, c)).Code)
	dir, err := filepath.EvalSymlinks(c.Dir)
	require.NoError(t, err)
	require.Equal(t, []string{
		"cwd=" + dir, playing + "=env", "ANTHROPIC_API_KEY=k", "CLAUDE_CONFIG_DIR=d", "DISABLE_AUTOUPDATER=1",
		"DISABLE_TELEMETRY=1",
		"EXTRA_ALLOWED=e", "HOME=/h", "PATH=/bin", "PWD=" + c.Dir, "SSL_CERT_FILE=s", "https_proxy=p",
	}, strings.Split(strings.TrimSpace(read(t, c.Stdout)), "\n"))
	require.NotContains(t, strings.Join(c.EnvNames(), " "), "=")
}

func TestTimeoutKillsStubbornAgentAndChild(t *testing.T) {
	c := commandIn(t.TempDir(), "stubborn")
	c.Timeout, c.Grace = 2*time.Second, 100*time.Millisecond
	child := start(t, c)
	self, grandchild := pids(t, c)
	exit := result(t, child)
	require.True(t, exit.TimedOut)
	require.False(t, exit.Killed)
	require.Equal(t, "killed", exit.Signal, "SIGTERM was not enough")
	require.GreaterOrEqual(t, exit.Duration, c.Timeout+c.Grace)
	requireGone(t, self)
	requireGone(t, grandchild)
}

func TestKillEndsGroupAndKeepsFirstCause(t *testing.T) {
	c := commandIn(t.TempDir(), "stubborn")
	c.Grace = 50 * time.Millisecond
	child := start(t, c)
	self, grandchild := pids(t, c)
	child.Kill("run cancelled")
	child.Kill("something else")
	exit := result(t, child)
	require.True(t, exit.Killed)
	require.Equal(t, "run cancelled", exit.KillCause)
	require.Equal(t, -1, exit.Code)
	requireGone(t, self)
	requireGone(t, grandchild)
}

func TestKillStartsWithSIGTERM(t *testing.T) {
	c := commandIn(t.TempDir(), "wait")
	child := start(t, c)
	child.Kill("pause now")
	require.Equal(t, "terminated", result(t, child).Signal)
}

func TestChildSurvivesWorker(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	worker := exec.Command(self)
	worker.Env = append(os.Environ(), playing+"=worker "+dir)
	require.NoError(t, worker.Start())
	c := commandIn(dir, "await")
	agent, _ := pids(t, c)
	require.NoError(t, worker.Process.Kill())
	_ = worker.Wait()
	rec, ok, err := supervisor.ReadRecord(dir)
	require.NoError(t, err)
	require.True(t, ok)
	joined := Join(dir, rec.Process)
	require.True(t, alive(agent))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	require.Zero(t, result(t, joined).Code)
	require.Contains(t, read(t, c.Stdout), "answered")
}

func TestChildDiesWithItsSupervisor(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no parent-death signal here")
	}
	c := commandIn(t.TempDir(), "await")
	child, err := begin(c)
	require.NoError(t, err)
	agent, _ := pids(t, c)
	require.NoError(t, child.p.Identity().Signal(syscall.SIGKILL))
	requireGone(t, agent)
	_, err = child.Result()
	require.ErrorIs(t, err, ErrLost)
}

func TestKillAfterExitIsNoop(t *testing.T) {
	child := start(t, commandIn(t.TempDir(), "say 1"))
	exit := result(t, child)
	child.Kill("late")
	require.Equal(t, exit, result(t, child))
	require.False(t, exit.Killed)
}

func TestExitLeavesNoProcesses(t *testing.T) {
	c := commandIn(t.TempDir(), "leave")
	exit := result(t, start(t, c))
	require.Zero(t, exit.Code)
	_, grandchild := pids(t, c)
	requireGone(t, grandchild)
}

func TestChildHasOwnProcessGroup(t *testing.T) {
	c := commandIn(t.TempDir(), "await")
	child := start(t, c)
	agent, _ := pids(t, c)
	group, err := syscall.Getpgid(agent)
	require.NoError(t, err)
	require.Equal(t, agent, group, "a terminal's Ctrl+C must not reach it")
	session, err := syscall.Getpgid(child.p.Identity().PID)
	require.NoError(t, err)
	require.Equal(t, child.p.Identity().PID, session, "nor its supervisor")
}

func TestStartRefuses(t *testing.T) {
	for name, row := range map[string]struct {
		change   func(*Command)
		is       error // nil: any
		message  string
		category run.Category
	}{
		"a program not in PATH": {
			func(c *Command) { c.Argv, c.Environment = []string{"no-such-agent"}, []string{"PATH=/nowhere:/bin"} },
			ErrNotFound, "no-such-agent: program not found in PATH (/nowhere:/bin)", run.CategorySpawnFailed,
		},
		"a path without a file": {func(c *Command) { c.Argv = []string{"./agent.sh"} }, ErrNotFound, "agent.sh",
			run.CategorySpawnFailed},
		"a program of a run": {func(c *Command) { c.Argv, c.Run = []string{"./agent.sh"}, "run 1" }, ErrNotFound,
			"starter amend 'run 1' --config FILE", run.CategorySpawnFailed},
		"a file that is not a program": {func(c *Command) { c.Argv = []string{c.Prompt} }, fs.ErrPermission,
			"not an executable file", run.CategorySpawnFailed},
		"a prompt that is not there": {func(c *Command) { c.Prompt += "x" }, fs.ErrNotExist, "open prompt",
			run.CategoryFileIO},
		"a prompt that is a folder": {func(c *Command) { c.Prompt = c.Dir }, nil, "not a regular file",
			run.CategorySpawnFailed},
		"an answer already there": {func(c *Command) { c.Stdout = c.Prompt }, fs.ErrExist, "create output file",
			run.CategoryFileIO},
		"a scratch that is not there": {func(c *Command) { c.Dir += "x" }, fs.ErrNotExist, "scratch directory",
			run.CategoryFileIO},
		"a relative path": {func(c *Command) { c.Stdout = "out" }, nil, "stdout must be absolute",
			run.CategorySpawnFailed},
		"no program": {func(c *Command) { c.Argv = nil }, nil, "agent.run", run.CategorySpawnFailed},
	} {
		t.Run(name, func(t *testing.T) {
			c := commandIn(t.TempDir(), "wait")
			row.change(&c)
			child, err := begin(c)
			require.Nil(t, child)
			require.ErrorContains(t, err, row.message)
			if row.is != nil {
				require.ErrorIs(t, err, row.is)
			}
			failure := SpawnFailure(err)
			require.Equal(t, row.category, failure.Category)
			require.Equal(t, row.category == run.CategorySpawnFailed, failure.Permanent, "files may be there later")
		})
	}
}

func TestBrokenProgramIsPermanent(t *testing.T) {
	c := commandIn(t.TempDir(), "wait")
	path := filepath.Join(c.Dir, "broken")
	require.NoError(t, os.WriteFile(path, []byte("\x7fELF nothing"), 0o700))
	c.Argv = []string{path}
	child, err := begin(c)
	require.NoError(t, err)
	_, err = child.Result() // the system refuses it, not this package
	require.Error(t, err)
	failure := SpawnFailure(err)
	require.Equal(t, run.CategorySpawnFailed, failure.Category)
	require.True(t, failure.Permanent)
}

func TestOutputLimitsEndAgent(t *testing.T) {
	for name, row := range map[string]struct {
		play     string
		change   func(*Command)
		category run.Category
		message  string
		size     int64
	}{
		"too much": {
			"flood", func(c *Command) { c.Output = 1 << 20 }, run.CategoryOutputTruncated, "printed more than", 1 << 20,
		},
		"silence": {
			"wait", func(c *Command) { c.Idle = 100 * time.Millisecond }, run.CategoryAgentTimeout,
			"printed nothing for too long", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := commandIn(t.TempDir(), row.play)
			row.change(&c)
			exit := result(t, start(t, c))
			fi, err := os.Stat(c.Stdout)
			require.NoError(t, err)
			require.Equal(t, row.size, fi.Size())
			for _, kind := range []string{adapter.Text, adapter.ClaudeJSON} {
				_, failure := ReadReply(kind, []byte(read(t, c.Stdout)), exit, "", Prices{}, 0)
				require.NotNil(t, failure)
				require.Equal(t, row.category, failure.Category)
				require.Contains(t, failure.Message, row.message)
			}
		})
	}
}

func TestProcessLimitIsTransient(t *testing.T) {
	err := fmt.Errorf("start agent claude: %w", &fs.PathError{Op: "fork/exec", Path: "/bin/claude",
		Err: syscall.EAGAIN})
	require.False(t, SpawnFailure(err).Permanent)
	require.Equal(t, run.CategorySpawnFailed, SpawnFailure(err).Category)
	require.False(t, errors.Is(err, ErrNotFound))
}
