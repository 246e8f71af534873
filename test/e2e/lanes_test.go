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
	h := newEnv(t, "LANES_LOG="+log, fmt.Sprintf("LANES_HOLD=%d", min(*laneItems-1, 100)), "PASSBOOK_CONTINUE_AFTER=23")
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
	require.NotEmpty(t, of[run.LanesLoaded](events, run.KindLanesLoaded), "finished lanes were stored")
	for i := range *laneItems {
		name := fmt.Sprintf("pages/p%04d.txt", i)
		require.Equal(t, "new\n", string(read(t, filepath.Join(dir, "workspace", name))), name)
	}
	started, err := os.ReadFile(log)
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(started), "\n"), *laneItems+*laneKills, "calls were made again")
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

const conflicts = `echo "$PASSBOOK_ITEM" >> "$LANES_LOG"
case "$PASSBOOK_ITEM" in
*p0001*) grep -q p0000 common.txt && echo both > common.txt || echo p0001 > common.txt;;
*p0000*) echo p0000 > common.txt;;
*p0002*) [ -e "$LANES_LOG.fixed" ] || { until [ -e "$LANES_LOG.second" ]; do sleep 0.1; done; exit 1; };;
*p0004*) until [ -e "$LANES_LOG.last" ]; do sleep 0.1; done;;
esac
echo new > "$PASSBOOK_ITEM"
echo changed
`

// TestLanesAsk lets one lane conflict and another fail. They ask one after the other while the others work, and nothing
// of them is merged before. The run waits when no lane can work.
func TestLanesAsk(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	h := newEnv(t, "LANES_LOG="+log, "PASSBOOK_CONTINUE_AFTER=3")
	config, source := h.lanes(6, conflicts, "{in: 'pages/*.txt', at_once: 3}")
	dir := h.dir("run")
	h.starter("run", "--config", config, "--source", source, "--output-dir", dir, "--detach")
	asked := func(status run.Status, text string) string {
		t.Helper()
		until(t, text, func() bool { return statusIs(dir, status) && strings.Contains(pending(t, dir).Text, text) })
		return pending(t, dir).ID
	}
	touch := func(name string) { require.NoError(t, os.WriteFile(log+name, nil, 0o600)) }
	const conflict = "p0001.txt: Its changes conflict with those of earlier lanes in common.txt"
	id := asked(run.Running, conflict)
	require.Contains(t, h.starter("status", dir), conflict)
	require.Contains(t, h.starter("decide", "--show", dir), conflict)
	require.Equal(t, "p0000\n", string(read(t, filepath.Join(dir, "workspace", "common.txt"))), "half merged")
	require.Equal(t, "old\n", string(read(t, filepath.Join(dir, "workspace", "pages/p0001.txt"))), "half merged")
	touch(".second")
	until(t, "the others continue", func() bool { return lanesDone(dir) == 4 })
	require.Equal(t, id, asked(run.Running, conflict), "one lane asks at a time")
	h.starter("decide", dir, "--action", "retry")
	id = asked(run.Running, "p0002.txt: ")
	until(t, "the retried lane is merged", func() bool {
		return string(read(t, filepath.Join(dir, "workspace", "common.txt"))) == "both\n"
	})
	touch(".last")
	require.Equal(t, id, asked(run.AwaitingGateDecision, "p0002.txt: "), "the question is asked once")
	touch(".fixed")
	h.starter("decide", dir, "--action", "retry")
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
	for i := range 6 {
		require.Equal(t, "new\n", string(read(t, filepath.Join(dir, "workspace", fmt.Sprintf("pages/p%04d.txt", i)))))
	}
	require.Contains(t, h.starter("blame", dir, "common.txt"), "worker")
	require.Contains(t, h.starter("evidence", dir), "pages/p0003.txt")
	h.starter("check", dir)
}

func pending(t *testing.T, dir string) run.Question {
	t.Helper()
	q, _ := metaOf(t, dir).State.Asks()
	return q
}
