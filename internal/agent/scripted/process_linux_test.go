package scripted

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/supervisor"
)

const bound = 20 * time.Second

func TestHangIgnoresSIGTERMAndHasAChild(t *testing.T) {
	c := commandIn(t.TempDir(), faultFile(t, "- {at: 1, do: hang}\n")[FaultsEnv])
	c.Grace = 50 * time.Millisecond
	child, err := begin(c)
	require.NoError(t, err)
	var grandchild int
	require.Eventually(t, func() bool {
		rec, ok, err := supervisor.ReadRecord(c.Dir)
		if err != nil || !ok {
			return false
		}
		grandchild = childOf(childOf(rec.Process.PID))
		return grandchild > 0
	}, bound, 5*time.Millisecond)
	child.Kill("test")
	exit, err := child.Result()
	require.NoError(t, err)
	require.Equal(t, "killed", exit.Signal)
	require.Eventually(t, func() bool { return gone(grandchild) }, bound, 5*time.Millisecond)
	require.Equal(t, []string{"start"}, events(t, c.Dir))
}

// childOf asks every thread of a process for its children: any of them may have forked. 0 is none.
func childOf(pid int) (child int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		data, _ := os.ReadFile(list)
		if n, _ := fmt.Sscan(string(data), &child); n == 1 {
			return child
		}
	}
	return 0
}

func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(stat), ") ")
	return err != nil || strings.HasPrefix(state, "Z")
}

func TestKillEngineBeforeAndAfterTheReply(t *testing.T) {
	for when, answered := range map[string]bool{"before": false, "after": true} {
		t.Run(when, func(t *testing.T) {
			dir := t.TempDir()
			self, err := os.Executable()
			require.NoError(t, err)
			env := faultFile(t, "- {at: 1, do: kill_engine, when: "+when+"}\n")
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), playing+"=engine", "SCRIPTED_TEST_DIR="+dir, FaultsEnv+"="+env[FaultsEnv])
			var exited *exec.ExitError
			require.ErrorAs(t, cmd.Run(), &exited)
			require.Equal(t, syscall.SIGKILL, exited.Sys().(syscall.WaitStatus).Signal())
			stdout, err := os.ReadFile(filepath.Join(dir, "stdout"))
			require.NoError(t, err)
			require.Equal(t, answered, agent.Complete(adapter.ClaudeJSON, stdout))
			require.Equal(t, answered, len(events(t, dir)) == 2)
		})
	}
}

// events are those of the call log in dir.
func events(t *testing.T, dir string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "calls.jsonl"))
	require.NoError(t, err)
	var all []string
	for line := range strings.Lines(string(data)) {
		_, rest, _ := strings.Cut(line, `"event":"`)
		event, _, _ := strings.Cut(rest, `"`)
		all = append(all, event)
	}
	return all
}
