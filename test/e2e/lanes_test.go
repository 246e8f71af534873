package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

var (
	laneItems = flag.Int("lanes.items", 20, "items of TestLanesAreKilled")
	laneKills = flag.Int("lanes.kills", 3, "kills of worker and server in it")
)

// lanes writes a pipeline whose stage works through files in lanes, and a repository with files. The agent is a shell
// script; it logs each start.
func (h *environment) lanes(files int, agent, more string) (config, source string) {
	h.t.Helper()
	source = h.dir("source")
	require.NoError(h.t, os.MkdirAll(filepath.Join(source, "pages"), 0o755))
	for i := range files {
		page := filepath.Join(source, "pages", fmt.Sprintf("p%04d.txt", i))
		require.NoError(h.t, os.WriteFile(page, []byte("old\n"), 0o644))
	}
	require.NoError(h.t, os.WriteFile(filepath.Join(source, "common.txt"), []byte("nobody\n"), 0o644))
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"},
		{"-c", "user.name=Test", "-c", "user.email=test@localhost", "commit", "-q", "-m", "base"}} {
		out, err := exec.Command("git", append([]string{"-C", source}, args...)...).CombinedOutput()
		require.NoError(h.t, err, string(out))
	}
	folder := h.dir("definition")
	require.NoError(h.t, os.MkdirAll(folder, 0o755))
	require.NoError(h.t, os.WriteFile(filepath.Join(folder, "work.md"), []byte("Migrate {{item}}.\n"), 0o644))
	require.NoError(h.t, os.WriteFile(filepath.Join(folder, "agent.sh"), []byte(agent), 0o755))
	config = filepath.Join(folder, "lanes.yaml")
	require.NoError(h.t, os.WriteFile(config, []byte(`pipeline: lanes
agent: {run: [sh, `+filepath.Join(folder, "agent.sh")+`], reply: text, env: [LANES_LOG, LANES_HOLD]}
workspace: {git: worktree}
limits: {attempts: 1}
roles:
  worker: {prompt: work.md, gives: changes}
stages:
  - name: migrate
    each: `+more+`
    steps: [{role: worker}, {run: 'grep -q new "$PASSBOOK_ITEM"'}]
`), 0o644))
	return config, source
}

// The first lane ends when most others have ended: their rows are stored until then.
const migrates = `echo "$PASSBOOK_ITEM" >> "$LANES_LOG"
case "$PASSBOOK_ITEM" in *p0000*) until [ $(wc -l < "$LANES_LOG") -ge $LANES_HOLD ]; do sleep 0.2; done;; esac
sleep 0.2
sed -i.bak s/old/new/ "$PASSBOOK_ITEM" && rm "$PASSBOOK_ITEM.bak"
echo changed
`

// TestLanesAreKilled kills worker and server while many lanes work, also across executions. Each item is answered once,
// and the tree is that of an undisturbed run.
func TestLanesAreKilled(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	h := newEnv(t, "LANES_LOG="+log, fmt.Sprintf("LANES_HOLD=%d", min(*laneItems-1, 100)), "PASSBOOK_CONTINUE_AFTER=7")
	config, source := h.lanes(*laneItems, migrates, "{in: 'pages/*.txt', at_once: 16}")
	dir := h.dir("run")
	h.starter("run", "--config", config, "--source", source, "--output-dir", dir, "--detach")
	progress := func() int {
		started, _ := os.ReadFile(log)
		return strings.Count(string(started), "\n") + lanesDone(dir) + lanesMerged(dir)
	}
	for kill := range *laneKills {
		target := (kill + 1) * *laneItems / (*laneKills + 1)
		whileFurther(t, "lanes end", func() bool { return lanesDone(dir) >= target }, progress)
		if kill%3 == 2 {
			h.kill(h.server())
		} else {
			h.kill(h.worker())
		}
		h.starter("server", "start")
	}
	untilDone(t, dir, progress)
	events := eventsOf(t, dir)
	answers := map[string]int{}
	for _, p := range of[run.PassEnd](events, run.KindPassEnd) {
		require.Equal(t, run.CategoryOK, p.Outcome)
		answers[p.Step+" "+p.Item]++
	}
	require.Len(t, answers, 2**laneItems)
	for at, n := range answers {
		require.Equal(t, 1, n, at)
	}
	require.Len(t, of[run.LaneMerged](events, run.KindLaneMerged), *laneItems)
	if *laneItems > run.MaxFinishedLanes+10 {
		require.NotEmpty(t, of[run.LanesLoaded](events, run.KindLanesLoaded), "finished lanes were stored")
	}
	for i := range *laneItems {
		name := fmt.Sprintf("pages/p%04d.txt", i)
		require.Equal(t, "new\n", string(read(t, filepath.Join(dir, "workspace", name))), name)
	}
	started, err := os.ReadFile(log)
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(started), "\n"), *laneItems+*laneKills, "calls were repeated")
	h.starter("check", dir)
}

func lanesDone(dir string) int { return laneEvents(dir, run.KindLaneEnded) }

func lanesMerged(dir string) int { return laneEvents(dir, run.KindLaneMerged) }

func laneEvents(dir string, kind run.Kind) int {
	raw, err := os.ReadFile(filepath.Join(dir, "events.jsonl"))
	if err != nil {
		return 0
	}
	return strings.Count(string(raw), `"kind":"`+string(kind)+`"`)
}
