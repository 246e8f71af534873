package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// Each lane changes another line of a file, so git merges it: p0001 the third, p0002 the sixth, p0003 the ninth.
const sharing = `n=$(printf %s "$PASSBOOK_ITEM" | tr -dc 0-9 | tail -c 1)
n=$((n * 3))
sed -i.bak "s/^$n$/line $n/" common.txt && rm common.txt.bak
echo new > "$PASSBOOK_ITEM"
echo changed
echo "$n" >> "$LANES_LOG"
`

// stopsGit is a git that stops at the command that a file names, once, and leaves the number of its process. It starts
// no process for the other commands, which are many.
const stopsGit = `#!/bin/sh
at=
[ ! -e STOP/at ] || read -r at 2>/dev/null <STOP/at
for arg in "$@"; do
	if [ "$arg" = "$at" ] && mv STOP/at STOP/was 2>/dev/null; then
		echo $$ >STOP/new && mv STOP/new STOP/pid
		exec sleep 600
	fi
done
exec GIT "$@"
`

// TestMergeIsKilled kills the worker in the middle of a merge: when git merges, when the checkout has the result, and
// before the branch has it. Branch and journal have the lane or they do not, and it is merged once.
func TestMergeIsKilled(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	require.NoError(t, err)
	stop, bin := t.TempDir(), t.TempDir()
	script := strings.NewReplacer("STOP", stop, "GIT", git).Replace(stopsGit)
	require.NoError(t, os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o755))
	log := filepath.Join(t.TempDir(), "log")
	h := newEnv(t, "LANES_LOG="+log, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	config, source := h.lanes(4, sharing, "{in: 'pages/*.txt', at_once: 4}")
	lines := "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
	require.NoError(t, os.WriteFile(filepath.Join(source, "common.txt"), []byte(lines), 0o600))
	at := func(folder string, args ...string) string {
		out, err := exec.Command(git, append([]string{"-C", folder}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
		return strings.TrimSpace(string(out))
	}
	at(source, "-c", "user.name=Test", "-c", "user.email=test@localhost", "commit", "-qam", "lines")
	dir := h.dir("run")
	workspace := filepath.Join(dir, "workspace")
	for i, command := range []string{"merge-tree", "add", "update-ref"} {
		require.NoError(t, os.WriteFile(filepath.Join(stop, "at"), []byte(command+"\n"), 0o600))
		if i == 0 {
			h.starter("run", "--config", config, "--source", source, "--output-dir", dir, "--detach")
			until(t, "all lanes have worked", func() bool {
				raw, _ := os.ReadFile(log)
				return strings.Count(string(raw), "\n") == 4
			})
		} else {
			h.starter("server", "start")
		}
		var pid int
		until(t, "git stops at "+command, func() bool {
			raw, err := os.ReadFile(filepath.Join(stop, "pid"))
			pid, _ = strconv.Atoi(strings.TrimSpace(string(raw)))
			return err == nil
		})
		h.kill(h.worker())
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		require.NoError(t, os.Remove(filepath.Join(stop, "pid")))
		require.LessOrEqual(t, lanesMerged(dir), 2)
		require.Equal(t, "2", at(workspace, "rev-list", "--count", at(source, "rev-parse", "HEAD")+"..HEAD"),
			"p0000 changes no line, and p0001 is the first to change one")
		require.Equal(t, "old", at(workspace, "show", "HEAD:pages/p0002.txt"))
		require.NotContains(t, at(workspace, "show", "HEAD:common.txt"), "line 6", command)
	}
	h.starter("server", "start")
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
	require.Equal(t, "1\n2\nline 3\n4\n5\nline 6\n7\n8\nline 9\n", string(read(t, filepath.Join(workspace, "common.txt"))))
	require.Equal(t, "4", at(workspace, "rev-list", "--count", at(source, "rev-parse", "HEAD")+"..HEAD"))
	require.Empty(t, at(workspace, "status", "--porcelain"))
	require.Equal(t, 4, lanesMerged(dir))
	h.starter("check", dir)
}
