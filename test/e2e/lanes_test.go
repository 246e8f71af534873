package e2e_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
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

// The first lane ends when most others have ended: they are merged after it.
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
	lost := ""
	for kill := range *laneKills {
		target := (kill + 1) * *laneItems / (*laneKills + 1)
		whileFurther(t, "lanes end", func() bool { return lanesDone(dir) >= target }, progress)
		if lost == "" {
			lost = endedLane(t, dir)
			require.NoError(t, os.RemoveAll(lost), "its run restores it before the merge")
		}
		if kill%3 == 2 {
			h.kill(h.server())
		} else {
			h.kill(h.worker())
		}
		h.starter("server", "start")
	}
	untilDone(t, dir, progress)
	answers := map[string]int{}
	for _, lane := range laneDirs(t, dir) {
		for _, p := range of[run.PassEnd](eventsOf(t, lane), run.KindPassEnd) {
			require.Equal(t, run.CategoryOK, p.Outcome)
			answers[p.Step+" "+p.Item]++
		}
	}
	require.Len(t, answers, 2**laneItems)
	for at, n := range answers {
		require.Equal(t, 1, n, at)
	}
	require.Len(t, of[run.ChildMerged](eventsOf(t, dir), run.KindChildMerged), *laneItems)
	for i := range *laneItems {
		name := fmt.Sprintf("pages/p%04d.txt", i)
		require.Equal(t, "new\n", string(read(t, filepath.Join(dir, "workspace", name))), name)
	}
	started, err := os.ReadFile(log)
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(started), "\n"), *laneItems+*laneKills, "calls were repeated")
	h.starter("check", dir)

	all := laneDirs(t, dir)
	require.NoError(t, os.RemoveAll(all[0]))
	require.NoError(t, os.WriteFile(filepath.Join(all[1], "meta.json"), []byte("{}"), 0o600))
	output, code := h.try("check", dir)
	require.Equal(t, 3, code, output)
	for lane, text := range map[string]string{all[0]: " is missing", all[1]: ": meta.json"} {
		name, err := filepath.Rel(dir, lane)
		require.NoError(t, err)
		require.Contains(t, output, name+text)
	}
	h.starter("rebuild", laneState(t, dir).RunID, "--output-dir", dir)
	h.starter("check", dir)
}

// endedLane is the directory of a lane that has ended and is not merged.
func endedLane(t *testing.T, dir string) string {
	t.Helper()
	found := ""
	until(t, "the state of the run has a lane that ended", func() bool {
		lanes := laneState(t, dir).Lanes
		for _, lane := range laneDirs(t, dir) {
			if s := laneState(t, lane); s.Status == run.Done && lanes != nil && lanes.Ended.Has(s.LaneOf.Index) {
				found = lane
			}
		}
		return found != ""
	})
	return found
}

// laneDirs are the directories of the lanes of a run.
func laneDirs(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "lanes", "*", "*"))
	require.NoError(t, err)
	return all
}

func lanesDone(dir string) int { return laneEvents(dir, run.KindChildEnded) }

func lanesMerged(dir string) int { return laneEvents(dir, run.KindChildMerged) }

func laneEvents(dir string, kind run.Kind) int {
	raw, err := os.ReadFile(filepath.Join(dir, "events.jsonl"))
	if err != nil {
		return 0
	}
	return strings.Count(string(raw), `"kind":"`+string(kind)+`"`)
}

// asksInLanes fails its check in the second lane, fails in the third, and changes a common file in the others.
const asksInLanes = `case "$PASSBOOK_ITEM" in
*p0001*) echo other > "$PASSBOOK_ITEM";;
*p0002*) echo broken >&2; exit 3;;
*) sed -i.bak s/old/new/ "$PASSBOOK_ITEM" && rm "$PASSBOOK_ITEM.bak"; echo "$PASSBOOK_ITEM" > common.txt;;
esac
echo changed
`

// TestLanesAsk: a check that fails, a pass that fails and a conflict are asked about in the run. The answers are sent to
// the lanes, the costs of all are those of the run, and it can be forked before the last merge.
func TestLanesAsk(t *testing.T) {
	t.Parallel()
	h := sharedEnv(t, "LANES_LOG="+filepath.Join(t.TempDir(), "log"), "PASSBOOK_CONTINUE_AFTER=4")
	config, source := h.lanes(4, asksInLanes, "{in: 'pages/*.txt', at_once: 4}")
	definition := strings.Replace(string(read(t, config)), `"$PASSBOOK_ITEM"'}`, `"$PASSBOOK_ITEM"', if_failing: ask}`, 1)
	require.NoError(t, os.WriteFile(config, []byte(definition), 0o600))
	dir := h.dir("run")
	h.starter("run", "--config", config, "--source", source, "--output-dir", dir, "--detach")
	answered := map[string]string{}
	for statusNow := func() run.State { return laneState(t, dir) }; ; {
		var q run.Question
		until(t, "a lane asks, or the run is done", func() bool {
			s := statusNow()
			asked, open := s.Asks()
			q = asked
			return s.Status == run.Done || open && answered[q.ID] == ""
		})
		if statusNow().Status == run.Done {
			break
		}
		action := "continue_with_waiver"
		if q.Of == run.LaneConflict {
			action = "retry"
		}
		answered[q.ID] = q.Of + " " + action
		h.starter("decide", dir, "--action", action, "--feedback", "as it is")
	}
	require.ElementsMatch(t, []string{"check continue_with_waiver", "failed continue_with_waiver", "conflict retry"},
		slices.Collect(maps.Values(answered)))
	s := laneState(t, dir)
	require.Equal(t, &run.LaneTotals{Count: 4, Failed: 1}, s.LaneTotals)
	calls := 0
	for _, lane := range laneDirs(t, dir) {
		calls += laneState(t, lane).Spent.Calls
		h.starter("check", lane)
	}
	require.Equal(t, calls, s.Spent.Calls)
	require.Equal(t, "old\n", string(read(t, filepath.Join(dir, "workspace", "pages", "p0002.txt"))))
	require.Equal(t, "new\n", string(read(t, filepath.Join(dir, "workspace", "pages", "p0003.txt"))))
	h.starter("check", dir)
	require.NotContains(t, h.starter("list"), s.RunID+".", "its lanes are not listed")

	first := int64(0) // of the merges
	for _, e := range eventsOf(t, dir) {
		if e.Kind == run.KindChildMerged && first == 0 {
			first = e.Seq
		}
	}
	fork := h.dir("fork")
	h.starter("fork", dir, "--from", run.UnnamedID(first), "--output-dir", fork, "--detach")
	until(t, "the fork is done or asks", func() bool {
		now := laneState(t, fork)
		_, asks := now.Asks()
		return asks || now.Status == run.Done
	})
	h.starter("cancel", fork)
}

// laneState is the state in meta.json; zero before it is written.
func laneState(t *testing.T, dir string) run.State {
	t.Helper()
	m, err := rundir.At(dir).Meta()
	if errors.Is(err, fs.ErrNotExist) {
		return run.State{}
	}
	require.NoError(t, err)
	return m.State
}
