package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// worksWithDependencies needs what the setup has installed, leaves an ignored file for the next pass, and holds the
// second pass until it is killed.
const worksWithDependencies = `cat deps/installed deps/built 2>/dev/null >> "$SETUP_LOG.seen"
echo pass >> "$SETUP_LOG.passes"
n=$(wc -l < "$SETUP_LOG.passes")
echo "built by $n" > deps/built
echo "$n" >> notes.txt
if [ "$n" = 2 ]; then sleep 600; fi
echo changed
`

// TestSetupAfterAKill kills a call in its workspace: ignored files are in doubt, so the workspace is made and set up
// again. Otherwise it is set up once.
func TestSetupAfterAKill(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	h := newEnv(t, "SETUP_LOG="+log, "PASSBOOK_SANDBOX_MODE=none") // its files are outside
	source := h.dir("source")
	require.NoError(t, os.MkdirAll(source, 0o755))
	for name, content := range map[string]string{".gitignore": "/deps/\n", "notes.txt": ""} {
		require.NoError(t, os.WriteFile(filepath.Join(source, name), []byte(content), 0o644))
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"},
		{"-c", "user.name=Test", "-c", "user.email=test@localhost", "commit", "-q", "-m", "base"}} {
		out, err := exec.Command("git", append([]string{"-C", source}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	config := h.definition(h.dir("definition"), `pipeline: setup
agent: {run: [sh, AGENT], reply: text, env: [SETUP_LOG]}
workspace: {git: worktree, setup: ['echo setup >> `+log+`', 'mkdir deps && echo installed > deps/installed']}
roles:
  worker: {prompt: work.md, gives: changes}
stages:
  - name: work
    repeat: {max: 4, until: gate.ok}
    steps: [{role: worker}, {run: 'grep -q 4 notes.txt && test -e deps/installed', id: gate}]
`, map[string]string{"work.md": "Work.\n", "agent.sh": worksWithDependencies})
	dir := h.dir("run")
	h.starter("run", "--config", config, "--source", source, "--output-dir", dir, "--detach")
	until(t, "the second pass works", func() bool { return linesOf(log+".passes") == 2 })
	h.crash(h.worker())
	h.starter("server", "start")
	untilDone(t, dir, func() int { return linesOf(log + ".passes") })

	require.Equal(t, "setup\nsetup\nsetup\n", string(read(t, log)))
	setups := of[run.WorkspaceSetup](eventsOf(t, dir), run.KindWorkspaceSetup)
	require.Len(t, setups, 3, "before the first call, after the killed one, and in the fresh folder")
	require.Len(t, setups[0].Commands, 2)
	require.Equal(t, "installed\ninstalled\nbuilt by 1\ninstalled\ninstalled\nbuilt by 3\n",
		string(read(t, log+".seen")), "ignored files stay, but not those of a killed call")
	h.starter("check", dir)
}

// linesOf counts the lines of a file, which may be missing.
func linesOf(name string) int {
	raw, _ := os.ReadFile(name)
	return strings.Count(string(raw), "\n")
}
