package workflows_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

const guardedLoop = `
pipeline: guarded
agent: {run: [agent], reply: text}
workspace: {git: worktree, protect: [test.x]}
delivery: {fresh: false}
roles:
  planner: {prompt: a.md, gives: report}
  worker: {prompt: prompt.md, gives: changes}
stages:
  - name: plan
    steps: [{role: planner}]
  - name: work
    repeat: {max: 3, until: tests.ok}
    steps:
      - {role: worker}
      - {run: x test.x, id: tests}
  - name: gate
    steps:
      - {run: x test.x, if_failing: ask}
`

func TestTamperedFilesReachGatePromptAndQuestion(t *testing.T) {
	w := newHarness(t, guardedLoop)
	w.agent.values = []string{"failed", "ok", "failed"}
	tampered := run.Tampered{Role: "worker", Count: 1, First: []run.FileChange{{Path: "test.x", Kind: "changed"}}}
	found := run.Found{Findings: run.Findings{Digest: "found", Findings: 2}, Outside: []string{"x.go"}, Count: 1,
		Scope: "planner"}
	tampers := func(ok contract.PassResult) (contract.PassResult, error) {
		ok.Tampered, ok.Found = &tampered, &found
		return ok, nil
	}
	w.agent.will("g0.001.1.-.1", func(ok contract.PassResult) (contract.PassResult, error) {
		ok.Scope = &run.Scope{Role: "planner", Digest: "scope", Count: 1}
		return ok, nil
	})
	w.agent.will("g0.work/1.1.-.1", tampers)
	w.agent.will("g0.work/1.2.-.1", func(ok contract.PassResult) (contract.PassResult, error) {
		ok.Changes, ok.Tampered, ok.Found = nil, &tampered, &found // it has done nothing else
		return ok, nil
	})
	var told []string
	w.composing = func(in contract.ComposeInput) {
		told = append(told, in.Context.Tampered.Text())
	}
	var asked run.State
	w.answering(func(_ int, q run.Question) {
		asked = w.status()
		w.signal("decide", message{"id": q.ID, "action": "continue_with_waiver", "feedback": "known"})
	})
	s := w.ends(run.Done, "")

	require.Equal(t, []string{"", "", "test.x (changed)", "test.x (changed)", "test.x (changed)", "test.x (changed)"},
		told, "from the first change on")
	events := payloads[run.Tampered](w, run.KindWorkspaceTampered)
	require.Len(t, events, 2)
	require.Equal(t, "run-1/g0.work/1.2.-.1", events[1].Call)
	var scopes []string
	for _, in := range w.agent.inputs {
		if in.Scope != nil {
			scopes = append(scopes, in.Scope.Digest+" of "+in.Scope.Tree)
		}
	}
	require.Equal(t, []string{"scope of first tree", "scope of first tree"}, scopes, "of calls that change the workspace")
	for _, p := range payloads[run.PassEnd](w, run.KindPassEnd) {
		if p.Role != "command" {
			continue
		}
		require.Equal(t, "test.x (changed)", p.Tampered.Text())
		require.Equal(t, []string{p.Tampered.Warning()}, p.Validation.Warnings)
	}
	q, open := asked.Asks()
	require.True(t, open)
	require.Equal(t, "found", q.Found.Digest)
	require.Equal(t, "test.x (changed)", q.Tampered.Text())
	facts := map[string]string{}
	for _, f := range asked.Facts(q) {
		facts[f.Name] = f.Text
	}
	require.Equal(t, "by worker, restored: test.x (changed)", facts["Tampered"])
	require.Equal(t, "x.go", facts["Out of scope"])
	require.Equal(t, "planner", s.Scope.Role)
}

func TestCleanPassEndsTheReportOfTampering(t *testing.T) {
	w := newHarness(t, guardedLoop)
	w.agent.values = []string{"failed"}
	w.agent.will("g0.work/1.1.-.1", func(ok contract.PassResult) (contract.PassResult, error) {
		ok.Tampered = &run.Tampered{Role: "worker", Count: 1, First: []run.FileChange{{Path: "test.x"}}}
		return ok, nil
	})
	s := w.ends(run.Done, "")
	require.Nil(t, s.Tampered)
	commands := 0
	for _, p := range payloads[run.PassEnd](w, run.KindPassEnd) {
		if p.Role == "command" {
			commands++
			require.Equal(t, commands == 1, p.Tampered != nil)
		}
	}
	require.Equal(t, 3, commands)
}

// evidenceByStep wants every answered call to have its own id, and returns the folders of its evidence by step.
func (w *harness) evidenceByStep() map[string][]int {
	w.t.Helper()
	ids, redo := map[string]bool{}, map[string][]int{}
	for _, e := range w.dir.events(w.t) {
		var p run.PassEnd
		if e.Decode(&p); e.Kind != run.KindPassEnd {
			continue
		}
		require.False(w.t, ids[p.Call], "two calls have the id %s", p.Call)
		ids[p.Call] = true
		redo[p.Step+p.Member] = append(redo[p.Step+p.Member], p.Redo)
	}
	return redo
}

func TestRedonePassHasNewCallID(t *testing.T) {
	retry := message{"action": "retry_feedback", "feedback": "shorter"}
	t.Run("a hand-off, three times", func(t *testing.T) {
		w := newHarness(t, anAsk)
		w.agent.scores = []float64{3}
		w.answers(retry, retry, retry, message{"action": "continue"})
		w.done()
		require.Equal(t, []int{0, 1, 2, 3}, w.evidenceByStep()["001"])
		require.Equal(t, []string{"g0.001.1.-.1", "g0.001.1.-.r1-1", "g0.001.1.-.r2-1", "g0.001.1.-.r3-1"},
			w.agent.ids[:4])
		require.NotContains(t, strings.Join(w.agent.ids[4:], " "), ".r",
			"what comes behind it is done for the first time")
	})
	t.Run("a loop that is sent back gets a new round", func(t *testing.T) {
		w := newHarness(
			t, strings.Replace(reviewed, "  - name: work\n",
				"  - name: work\n    dir: cycle-{n}\n    repeat: {max: 1, until: approved}\n",
				1)+"      - {role: reviewer}\n",
		)
		w.agent.words = []string{"rejected", "approved"}
		w.answers(message{"action": "fix", "feedback": "say why"})
		w.ends(run.Done, "")
		require.Equal(t, map[string][]int{"work/1": {0, 0}, "work/2": {0, 0}}, w.evidenceByStep())
	})
}

func TestRoleAskedTwiceInRoundHasSeparateEvidence(t *testing.T) {
	w := newHarness(t, head+`
stages:
  - name: look
    dir: cycle-{n}
    repeat: {max: 1, until: score >= 1}
    steps: [{role: judge}, {together: [critic-A, critic-B]}, {role: critic-A}, {role: judge}]
`)
	w.agent.scores = []float64{0, 1}
	w.done()
	var dirs []string
	for _, p := range payloads[run.PassEnd](w, run.KindPassEnd) {
		dirs = append(dirs, p.Dir+" "+p.Role)
	}
	require.Equal(
		t, []string{
			"cycle-1 judge", "cycle-1 critic-A", "cycle-1 critic-B", "cycle-1/step-3 critic-A", "cycle-1/step-4 judge",
		}, dirs,
	)
}
