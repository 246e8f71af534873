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

// dataAgent answers by the first word of its task. The planner's first reply does not fit its schema.
const dataAgent = `prompt=$(sed -n '/^\(PLAN\|WORK\|REVIEW\|CHECK\) /,$p')
printf '%s' "$prompt" | tr '\n' '|' >> "$DATA_LOG"
echo >> "$DATA_LOG"
set -- $prompt
case $1 in
PLAN)
	case $prompt in
	*"could not be used"*) ;;
	*) echo "I plan to change two files."; exit ;;
	esac
	echo 'The plan.'
	echo '` + "```json" + `'
	echo '{"risk": "low", "files": ["a.txt", "b.txt"], "summary": "say {{task}} and $(id)"}'
	echo '` + "```" + `' ;;
WORK) echo work >> a.txt; echo "I worked." ;;
REVIEW)
	ready=false
	case $prompt in *"tests true"*) ready=true ;; esac
	echo '` + "```json" + `'
	echo "{\"ship_ready\": $ready, \"findings\": []}"
	echo '` + "```" + `' ;;
CHECK) echo "checked" ;;
esac
`

const dataPipeline = `pipeline: data
agent: {run: [sh, AGENT], reply: text, env: [DATA_LOG]}
workspace: {git: worktree}
roles:
  planner: {prompt: plan.md, gives: report, schema: plan}
  worker: {prompt: work.md, gives: changes}
  reviewer: {prompt: review.md, gives: report, schema: review}
  checker: {prompt: check.md, gives: report}
stages:
  - name: planning
    steps: [{role: planner, id: plan}]
  - name: nothing
    when: plan.risk == "none"
    steps: [{run: 'false', if_failing: ask}]
  - name: work
    when: plan.risk != "none"
    repeat: {max: 4, until: approved and tests.ok, otherwise: ask}
    checkpoint: work-{n}
    steps:
      - {role: worker}
      - {run: 'test "$(wc -l < a.txt)" -gt 1', id: tests}
      - {role: reviewer}
  - name: check
    each: {in: plan.files}
    steps: [{role: checker}]
`

// TestDataBetweenSteps: a plan that fits at its second attempt drives two conditions, a loop, the prompts of later roles and
// the lanes; again after a revert, in a fork and in a replay.
func TestDataBetweenSteps(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	h := newEnv(t, "DATA_LOG="+log, "PASSBOOK_SANDBOX_MODE=none") // its log is outside
	config := h.definition(h.dir("definition"), dataPipeline, map[string]string{
		"agent.sh": dataAgent, "plan.md": "PLAN what to do.\n",
		"work.md":   "WORK on {{plan.files}}, tests {{tests.ok}}: {{plan.summary}}\n",
		"review.md": "REVIEW with tests {{tests.ok}}: {{plan | json}}\n", "check.md": "CHECK {{item}} of risk {{plan.risk}}\n",
	})
	dir := h.dir("run")
	h.starter("run", "--config", config, "--source", repositoryWith(t, h.dir("source"), "a.txt", "b.txt"), "--output-dir", dir)

	const inLoop = `WORK on a.txt|b.txt, tests false: say {{task}} and $(id)
REVIEW with tests true: {"files":["a.txt","b.txt"],"risk":"low","summary":"say {{task}} and $(id)"}`
	calls := string(read(t, log))
	require.Contains(t, calls, "no JSON that fits the schema plan: it has no JSON block")
	require.Contains(t, calls, "WORK on a.txt|b.txt, tests : say {{task}} and $(id)\n")
	for _, line := range strings.Split(inLoop, "\n") {
		require.Contains(t, calls, line)
	}
	require.Contains(t, calls, "CHECK a.txt of risk low")
	require.Contains(t, calls, "CHECK b.txt of risk low")
	events := eventsOf(t, dir)
	var read []string
	for _, c := range of[run.Condition](events, run.KindCondition) {
		read = append(read, c.Of+": "+c.Values())
	}
	require.Equal(t, []string{"when: plan.risk low", "when: plan.risk low", "until: approved false, tests.ok false",
		"until: approved true, tests.ok true", "until: approved true, tests.ok true"}, read, "the last one with the fresh folder")
	h.starter("check", dir)

	before := linesOf(log)
	h.starter("fork", dir, "--from", "work-1", "--output-dir", h.dir("fork"))
	h.starter("replay", dir, "--output-dir", h.dir("replay"))
	for _, copied := range []string{h.dir("fork"), h.dir("replay")} {
		require.True(t, statusIs(copied, run.Done))
		of := of[run.Condition](eventsOf(t, copied), run.KindCondition)
		require.True(t, of[len(of)-1].Holds)
		h.starter("check", copied)
	}
	require.Equal(t, 2+2, linesOf(log)-before, "the fork works and reviews once more, and checks two files; a replay calls no agent")
}

// TestStalledLoopAsks: a worker that changes nothing is not asked until max, and the question shows why.
func TestStalledLoopAsks(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	config := h.definition(h.dir("definition"), `pipeline: stalled
agent: {run: [sh, AGENT], reply: text}
workspace: {git: worktree}
roles:
  worker: {prompt: work.md, gives: changes}
stages:
  - name: work
    repeat: {max: 9, until: tests.ok, otherwise: ask}
    steps: [{role: worker}, {run: 'test -e done.txt', id: tests}]
`, map[string]string{"agent.sh": "cat > /dev/null; echo done > work.txt; echo 'I did it.'\n", "work.md": "Work.\n"})
	dir := h.dir("run")
	output, code := h.try("run", "--config", config, "--source", repositoryWith(t, h.dir("source"), "a.txt"), "--output-dir", dir)
	require.Equal(t, 4, code, output)
	const why = "tests.ok is not met after 3 rounds: test -e done.txt failed (stalled: 2 rounds without progress: " +
		"round 3 left the work as round 1 had left it"
	require.Contains(t, output, why)
	require.Contains(t, h.starter("decide", "--show", dir), why)
	h.starter("decide", dir, "--action", "continue")
	h.starter("report", dir)
	require.Contains(t, string(read(t, filepath.Join(dir, "_orchestrator", "report.html"))), "stalled: 2 rounds without progress")
	h.starter("check", dir)
}

// repositoryWith is a git repository with empty files.
func repositoryWith(t *testing.T, dir string, files ...string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for _, name := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"},
		{"-c", "user.name=Test", "-c", "user.email=test@localhost", "commit", "-q", "-m", "base"}} {
		out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	return dir
}
