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
	laneItems = flag.Int("lanes.items", 60, "items of TestLanesAreKilled")
	laneKills = flag.Int("lanes.kills", 5, "kills of worker and server in it")
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
agent: {run: [sh, `+filepath.Join(folder, "agent.sh")+`], reply: text, env: [LANES_LOG]}
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

const migrates = `echo "$PASSBOOK_ITEM" >> "$LANES_LOG"
sleep 0.2
sed -i.bak s/old/new/ "$PASSBOOK_ITEM" && rm "$PASSBOOK_ITEM.bak"
echo changed
`

// TestLanesAreKilled kills worker and server while many lanes work, also across executions. Each item is answered once,
// and the tree is that of an undisturbed run.
func TestLanesAreKilled(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	h := newEnv(t, "LANES_LOG="+log, "PASSBOOK_CONTINUE_AFTER=23")
	config, source := h.lanes(*laneItems, migrates, "{in: 'pages/*.txt', at_once: 16}")
	dir := h.dir("run")
	h.starter("run", "--config", config, "--source", source, "--output-dir", dir, "--detach")
	for kill := range *laneKills {
		target := (kill + 1) * *laneItems / (*laneKills + 1)
		until(t, "lanes end", func() bool { return lanesDone(dir) >= target })
		if kill%3 == 2 {
			h.kill(h.server())
		} else {
			h.kill(h.worker())
		}
		h.starter("server", "start")
	}
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
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
	for i := range *laneItems {
		name := fmt.Sprintf("pages/p%04d.txt", i)
		require.Equal(t, "new\n", string(read(t, filepath.Join(dir, "workspace", name))), name)
	}
	started, err := os.ReadFile(log)
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(started), "\n"), *laneItems+*laneKills, "calls were made again")
	h.starter("check", dir)
}

func lanesDone(dir string) int {
	raw, err := os.ReadFile(filepath.Join(dir, "events.jsonl"))
	if err != nil {
		return 0
	}
	return strings.Count(string(raw), `"kind":"lane.ended"`)
}

const conflicts = `echo "$PASSBOOK_ITEM" >> "$LANES_LOG"
case "$PASSBOOK_ITEM" in
*p0001*) grep -q p0000 common.txt && echo both > common.txt || echo p0001 > common.txt;;
*p0000*) echo p0000 > common.txt;;
*p0002*) [ -e "$LANES_LOG.fixed" ] || exit 1;;
esac
echo new > "$PASSBOOK_ITEM"
echo changed
`

// TestLanesAsk lets one lane conflict and another fail. The others end first; the lanes ask one after the other, in the
// order of the list, and nothing of them is merged before.
func TestLanesAsk(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	h := newEnv(t, "LANES_LOG="+log, "PASSBOOK_CONTINUE_AFTER=3")
	config, source := h.lanes(6, conflicts, "{in: 'pages/*.txt', at_once: 3}")
	dir := h.dir("run")
	h.starter("run", "--config", config, "--source", source, "--output-dir", dir, "--detach")
	asked := func(what, text string) {
		t.Helper()
		until(t, what, func() bool {
			return statusIs(dir, run.AwaitingGateDecision) && strings.Contains(pending(t, dir), text)
		})
	}
	asked("the conflict", "p0001.txt: Its changes conflict with those of earlier lanes in common.txt")
	require.Equal(t, "p0000\n", string(read(t, filepath.Join(dir, "workspace", "common.txt"))), "half merged")
	require.Equal(t, "old\n", string(read(t, filepath.Join(dir, "workspace", "pages/p0001.txt"))), "half merged")
	require.Equal(t, 5, lanesDone(dir), "the others continue")
	h.starter("decide", dir, "--action", "retry")
	asked("the failure", "p0002.txt: ")
	require.Equal(t, "both\n", string(read(t, filepath.Join(dir, "workspace", "common.txt"))))
	require.NoError(t, os.WriteFile(log+".fixed", nil, 0o600))
	h.starter("decide", dir, "--action", "retry")
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
	for i := range 6 {
		require.Equal(t, "new\n", string(read(t, filepath.Join(dir, "workspace", fmt.Sprintf("pages/p%04d.txt", i)))))
	}
	require.Contains(t, h.starter("blame", dir, "common.txt"), "worker")
	require.Contains(t, h.starter("evidence", dir), "pages/p0003.txt")
	h.starter("check", dir)
}

func pending(t *testing.T, dir string) string {
	t.Helper()
	if q, open := metaOf(t, dir).State.Asks(); open {
		return q.Text
	}
	return ""
}
