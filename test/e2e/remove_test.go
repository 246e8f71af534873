package e2e_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
)

// TestRemove removes runs on git repositories with the real programs.
func TestRemove(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.starter("server", "start")
	t.Run("whole", func(t *testing.T) { testRemoveWhole(t, h.within(t)) })
	t.Run("interrupted", func(t *testing.T) { testRemoveInterrupted(t, h.within(t)) })
}

// removable runs a trial to its end and returns its id.
func (tr *trial) removable() string {
	tr.t.Helper()
	tr.begin()
	tr.over(run.Done)
	id := metaOf(tr.t, tr.dir).RunID
	require.NoError(tr.t, tr.dial().GetWorkflow(tr.t.Context(), id, "").Get(tr.t.Context(), nil))
	require.Contains(tr.t, tr.git("branch", "--list", "passbook/*"), id[:8])
	return id
}

// removed wants nothing of a run to be left but its delivery, nor anything in the store that no other run needs.
func (tr *trial) removed(id string) {
	tr.t.Helper()
	require.NoDirExists(tr.t, tr.dir)
	require.NotContains(tr.t, tr.git("branch", "--list", "--all"), "passbook/")
	require.Len(tr.t, strings.Split(tr.git("worktree", "list"), "\n"), 1)
	until(tr.t, "the run is no longer listed", func() bool { return !strings.Contains(tr.starter("list", "--json"), id) })
	_, err := tr.dial().DescribeWorkflowExecution(tr.t.Context(), id, "")
	var gone *serviceerror.NotFound
	require.ErrorAs(tr.t, err, &gone)
	for range 2 {
		tr.starter("store", "gc", "--older-than", "0s", "--delete")
	}
	require.NoError(tr.t, filepath.WalkDir(filepath.Join(tr.state(), "store"),
		func(path string, e os.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				require.NotContains(tr.t, path, id)
			}
			return err
		}))
	var left operations.Collected
	require.NoError(tr.t, json.Unmarshal([]byte(tr.starter("store", "gc", "--older-than", "0s", "--json")), &left))
	require.Zero(tr.t, left.Garbage)
}

// testRemoveWhole lists what is removed, is killed before the branch, and continues.
func testRemoveWhole(t *testing.T, h *environment) {
	tr := h.trial(t)
	id := tr.removable()
	var listed struct {
		Applied bool
		Runs    []struct{ Parts []struct{ What string } }
		Freed   []struct{ Objects int }
	}
	require.NoError(t, json.Unmarshal([]byte(tr.starter("remove", tr.dir, "--json")), &listed))
	require.False(t, listed.Applied)
	var parts []string
	for _, p := range listed.Runs[0].Parts {
		parts = append(parts, p.What)
	}
	require.Subset(t, parts, []string{"workflow", "branch", "store", "directory", "registry"})
	require.Positive(t, listed.Freed[0].Objects)
	require.DirExists(t, tr.dir)

	bin := filepath.Join(tr.folder, "bin")
	git, err := exec.LookPath("git")
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(bin, 0o700))
	for _, at := range []string{
		`*' update-ref -d '*) `,
	} {
		text := "#!/bin/sh\ncase \" $* \" in " + at + "kill -9 $PPID; exit 1;; esac\nexec " + git + " \"$@\"\n"
		require.NoError(t, os.WriteFile(filepath.Join(bin, "git"), []byte(text), 0o700)) //nolint:gosec // a program
		cmd := h.command(t.Context(), "remove", id, "--yes")
		cmd.Env = append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"))
		var killed *exec.ExitError
		require.ErrorAs(t, cmd.Run(), &killed)
		require.Equal(t, -1, killed.ExitCode(), "it was killed")
		require.NotEmpty(t, tr.git("branch", "--list", "passbook/*"))
		require.NoDirExists(t, filepath.Join(tr.dir, "workspace"))
	}

	tr.starter("remove", id, "--yes")
	tr.removed(id)
	tr.untouched("result")
	output, code := tr.try("remove", id)
	require.Equal(t, 2, code, output)
}

// testRemoveInterrupted refuses a run at work, cancels it when its workflow is gone, and removes it.
func testRemoveInterrupted(t *testing.T, h *environment) {
	tr := h.trial(t)
	tr.steerAgents("hold-reviewer", "")
	tr.begin()
	until(t, "the reviewer is asked", func() bool { return tr.heldReviewer() })
	id := metaOf(t, tr.dir).RunID
	output, code := tr.try("remove", tr.dir, "--yes")
	require.Equal(t, 5, code, output)
	require.Contains(t, output, "it is running. End it first: ")
	require.DirExists(t, tr.dir)

	require.NoError(t, tr.dial().TerminateWorkflow(t.Context(), id, "", "test"))
	until(t, "the run is interrupted", func() bool { return tr.status(tr.dir).EffectiveStatus.Status == run.Interrupted })
	calls := tr.calls()
	agent, err := strconv.Atoi(strings.TrimSpace(string(read(t, filepath.Join(tr.steer, "held-reviewer")))))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(agent, 0), "a lost workflow leaves its agent at work")
	tr.starter("cancel", tr.dir)
	until(t, "its agent is gone", func() bool { return errors.Is(syscall.Kill(agent, 0), syscall.ESRCH) })
	require.Equal(t, string(run.Cancelled), metaOf(t, tr.dir).Status)
	require.Equal(t, calls, tr.calls(), "an agent was called")
	tr.starter("cancel", tr.dir) // again
	closed := tr.dial().GetWorkflow(t.Context(), id, "").Get(t.Context(), nil)
	require.Error(t, closed)

	output, code = tr.try("remove", tr.dir)
	require.Equal(t, 2, code, output)
	require.Contains(t, output, "has commits that nothing else leads to")
	tr.starter("remove", tr.dir, "--yes", "--discard")
	tr.removed(id)
	tr.untouched()
}
