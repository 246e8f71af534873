package workflows_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// driven has a plan that decides about the rest.
const driven = `
pipeline: small
agent: {run: [scripted], reply: claude-json}
workspace: {git: worktree}
delivery: {to: branch, branch: result, fresh: false}
inputs:
  careful: {type: boolean, default: false}
roles:
  planner: {prompt: prompt.md, gives: report, schema: plan}
  implementer: {prompt: prompt.md, gives: changes}
  reviewer: {prompt: prompt.md, gives: report, schema: review}
stages:
  - name: planning
    steps:
      - {role: planner, id: plan}
      - {ask: 'Is this right?', when: plan.risk == "high"}
  - name: work
    when: plan.risk != "none"
    repeat: {max: 3, until: approved and tests.ok}
    steps:
      - {role: implementer}
      - {run: make test, id: tests}
      - {role: reviewer, when: tests.ok or careful}
  - name: last
    when: len(plan.files) > 1
    steps: [{run: make docs}]
`

// planned has the planner return a plan.
func (w *harness) planned(risk string, files ...string) {
	data := stored(w.t, map[string]any{"risk": risk, "files": files})
	w.agent.will("g0.001.1.-.1", func(ok contract.PassResult) (contract.PassResult, error) {
		ok.Data = &run.Blob{Digest: data}
		return ok, nil
	})
}

// TestDataDrivesARun: what the planner returned decides about a question, two stages and, with a command, a step.
func TestDataDrivesARun(t *testing.T) {
	for name, row := range map[string]struct {
		risk   string
		files  []string
		tests  []string
		called string
		events []string
	}{
		"nothing to do": {"none", []string{"a"}, nil, "planner", []string{
			`when plan.risk == "high" false: plan.risk none`, `when plan.risk != "none" false: plan.risk none`,
			"when len(plan.files) > 1 false: plan.files [\"a\"]"}},
		"tests fail first": {"low", []string{"a", "b"}, []string{"failed"}, "planner implementer run implementer run reviewer run",
			[]string{
				`when plan.risk == "high" false: plan.risk low`, `when plan.risk != "none" true: plan.risk low`,
				"when tests.ok or careful false: tests.ok false, careful false",
				"until approved and tests.ok false: approved false, tests.ok false",
				"when tests.ok or careful true: tests.ok true, careful false",
				"until approved and tests.ok true: approved true, tests.ok true",
				`when len(plan.files) > 1 true: plan.files ["a","b"]`,
			}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, driven)
			w.planned(row.risk, row.files...)
			if row.risk == "none" {
				w.trees.found.Diff = nil
			}
			w.agent.values = row.tests
			w.done()
			require.Equal(t, row.called, w.called())
			var events []string
			for _, c := range payloads[run.Condition](w, run.KindCondition) {
				events = append(events, fmt.Sprintf("%s %s %v: %s", c.Of, c.Text, c.Holds, c.Values()))
			}
			require.Equal(t, row.events, events)
			for _, p := range payloads[run.PhaseEnd](w, run.KindPhaseEnd) {
				skipped := row.risk == "none" && p.Key != "planning"
				require.Equal(t, skipped, strings.HasPrefix(p.Outcome, "skipped: "), p.Outcome)
			}
			plan, ok := w.dir.state(t).Output("plan")
			require.True(t, ok)
			require.NotNil(t, plan.Data)
		})
	}
}

// TestConditionWithoutItsValuePauses: the run continues when the plan has another condition.
func TestConditionWithoutItsValuePauses(t *testing.T) {
	src := strings.Replace(driven, `when: plan.risk == "high"`, `when: int(plan.risk) > 3`, 1)
	w := amendable(t, src)
	next := w.given(strings.Replace(src, `int(plan.risk) > 3`, `plan.risk == "x"`, 1), "first")
	w.planned("none", "a")
	w.onPause(func() {
		s := w.dir.state(t)
		require.Equal(t, run.PassFailed, s.Reason)
		w.dir.when(run.KindRunAmended, func() { w.signal("resume", nil) })
		w.signal("amend", message{"plan": next})
	})
	w.trees.found.Diff = nil
	w.done()
	paused := payloads[run.RunPaused](w, run.KindRunPaused)
	require.Len(t, paused, 1)
	require.Contains(t, paused[0].Detail, `when of stage planning cannot be evaluated: int(plan.risk) > 3`)
	require.Contains(t, paused[0].Detail, "int(none)")
}

// TestMisfitIsAskedForOnceMore: the next prompt has what did not fit; then an operator decides.
func TestMisfitIsAskedForOnceMore(t *testing.T) {
	w := newHarness(t, driven)
	misfit := goes(contract.PassResult{Reading: run.Reading{Outcome: "validation-failed",
		Message: "the reply has no JSON that fits the schema plan: missing property 'files'"}, Structural: true, Unjudged: true})
	w.agent.will("g0.001.1.-.1", misfit)
	w.agent.will("g0.001.1.-.2", misfit)
	var told []string
	w.composing = func(in contract.ComposeInput) { told = append(told, in.Context.Misfit) }
	w.answers(message{"action": "halt"})
	w.ends(run.Halted, run.ReasonGateHalted)
	require.Equal(t, []string{"", "the reply has no JSON that fits the schema plan: missing property 'files'"}, told)
	require.Equal(t, "planner returned no JSON that fits plan in 2 attempts: the reply has no JSON that fits the schema plan: "+
		"missing property 'files'. Continue without it?", w.asked(run.KindGateRequested)[0].Question)
}

// TestPromptsGetTheOutputsThatTheyName also in later stages and rounds.
func TestPromptsGetTheOutputsThatTheyName(t *testing.T) {
	w := newHarness(t, strings.Replace(driven, "implementer: {prompt: prompt.md", "implementer: {prompt: outputs.md", 1))
	w.planned("low", "a")
	w.agent.values = []string{"failed"}
	var got []string
	w.composing = func(in contract.ComposeInput) {
		ids := ""
		for _, o := range in.Context.Outputs {
			ids += " " + o.ID
		}
		got = append(got, fmt.Sprintf("%d/%d%s", in.At.Stage, in.At.Step, ids))
	}
	w.done()
	require.Equal(t, []string{"0/0", "1/0 plan", "1/1", "1/0 plan tests", "1/1", "1/2"}, got)
}

// loopOf is a loop of a stage that is delivered.
func loopOf(repeat, steps string) string {
	head, _, _ := strings.Cut(driven, "stages:")
	return head + "stages:\n  - name: work\n    repeat: {" + repeat + "}\n    steps: [" + steps + "]\n"
}

// TestStalledLoops end with the round that made no progress for the second time, as if it were the last; others do not.
func TestStalledLoops(t *testing.T) {
	const work = "{role: implementer}, {role: reviewer}"
	tree := func(name string) func(*contract.PassResult) {
		return func(ok *contract.PassResult) {
			ok.Changes = &run.WorkspaceUpdated{Tree: run.Blob{Digest: name}, Changed: 1}
		}
	}
	unchanged := func(ok *contract.PassResult) { ok.Changes = nil }
	for name, row := range map[string]struct {
		repeat, steps string
		rounds        []func(*contract.PassResult) // of the implementer
		findings      []string                     // of the reviewer
		ended         int                          // 0: at max
		why           string
	}{
		"the same tree": {rounds: []func(*contract.PassResult){tree("a"), unchanged, unchanged}, ended: 3,
			why: "round 3 left the work as round 1 had left it"},
		"A, B, A, B": {rounds: []func(*contract.PassResult){tree("a"), tree("b"), tree("a"), tree("b")}, ended: 4,
			why: "round 4 left the work as round 2 had left it"},
		"a report that grows": {rounds: []func(*contract.PassResult){unchanged, unchanged, unchanged},
			findings: []string{"one", "two", "three"}, ended: 3, why: "round 3 left the work as round 1"},
		"after three rounds": {repeat: "stalled: 3, ", rounds: []func(*contract.PassResult){tree("a"), unchanged, unchanged, unchanged},
			ended: 4, why: "round 4 left the work as round 1"},
		"switched off":        {repeat: "stalled: 0, ", rounds: []func(*contract.PassResult){tree("a"), unchanged, unchanged, unchanged}},
		"other trees":         {rounds: []func(*contract.PassResult){tree("a"), tree("b"), tree("c"), tree("d")}},
		"once, then progress": {rounds: []func(*contract.PassResult){tree("a"), unchanged, tree("b"), unchanged, tree("c")}},
		"the same findings on other files": {rounds: []func(*contract.PassResult){tree("a"), tree("b"), tree("c")},
			findings: []string{"one", "one", "one"}},
		"reports only": {steps: "{role: reviewer}"},
	} {
		t.Run(name, func(t *testing.T) {
			steps := row.steps
			if steps == "" {
				steps = work
			}
			w := newHarness(t, loopOf(row.repeat+"max: 6, until: approved, otherwise: ask", steps))
			for i, change := range row.rounds {
				w.agent.will(fmt.Sprintf("g0.work/1.%d.-.1", i+1), func(ok contract.PassResult) (contract.PassResult, error) {
					change(&ok)
					return ok, nil
				})
			}
			w.agent.words = strings.Fields(strings.Repeat("rejected ", 8))
			for i, found := range row.findings {
				w.agent.will(fmt.Sprintf("g0.work/2.%d.-.1", i+1), func(ok contract.PassResult) (contract.PassResult, error) {
					ok.Findings = &run.Findings{Digest: found, Findings: 1}
					return ok, nil
				})
			}
			w.answers(message{"action": "halt"})
			w.ends(run.Halted, run.ReasonHandoffHalt)
			q := w.asked(run.KindHandoffRequested)[0]
			stalls := payloads[run.LoopProgress](w, run.KindLoopStalled)
			if row.ended == 0 {
				require.Empty(t, stalls)
				require.Equal(t, 6, q.Round)
				return
			}
			require.Len(t, stalls, 1)
			require.Equal(t, row.ended, stalls[0].Ended)
			require.Equal(t, row.ended, q.Round)
			require.Contains(t, stalls[0].Why, row.why)
			require.Contains(t, q.Question, stalls[0].Why)
		})
	}
}

// TestStalledLoopGoesOnWhenAsked: a round that an operator requests counts anew.
func TestStalledLoopGoesOnWhenAsked(t *testing.T) {
	w := newHarness(t, loopOf("max: 6, until: approved, otherwise: ask", "{role: implementer}, {role: reviewer}"))
	for i := range 3 {
		w.agent.will(fmt.Sprintf("g0.work/1.%d.-.1", i+1), func(ok contract.PassResult) (contract.PassResult, error) {
			ok.Changes = nil
			return ok, nil
		})
	}
	w.agent.words = strings.Fields("rejected rejected rejected approved")
	w.answers(message{"action": "retry_feedback", "feedback": "try something else"})
	w.ends(run.Done, "")
	require.Len(t, payloads[run.LoopProgress](w, run.KindLoopStalled), 1)
	require.Equal(t, "implementer reviewer implementer reviewer implementer reviewer implementer reviewer", w.called())
}

// TestDataOutlivesAnExecution: the next execution has the outputs, and goes back to them.
func TestDataOutlivesAnExecution(t *testing.T) {
	w := newHarness(t, strings.Replace(driven, "implementer: {prompt: prompt.md", "implementer: {prompt: outputs.md", 1))
	data := stored(t, map[string]any{"risk": "low", "files": []string{"a"}})
	w.agent.will("g0.001.1.-.1", func(ok contract.PassResult) (contract.PassResult, error) {
		ok.Data = &run.Blob{Digest: data}
		w.signal("pause", nil)
		return ok, nil
	})
	w.agent.values = []string{"failed"}
	w.agent.will("g0.work/1.2.-.1", after(func() { w.signal("pause", nil) }))
	w.onPause(func() {
		w.env.RegisterDelayedCallback(w.crowd, time.Hour)
		w.onPause(func() { w.signal("revert", message{"to": run.UnnamedID(4)}) }) // after the pass of the planner
	})
	var outputs []int
	w.composing = func(in contract.ComposeInput) { outputs = append(outputs, len(in.Context.Outputs)) }
	r := w.handedOver(0, func(int) {
		w.env.RegisterDelayedCallback(func() { w.signal("resume", nil) }, time.Hour)
	})
	require.Equal(t, run.Done, r.Status)
	require.Len(t, payloads[run.RunReverted](w, run.KindRunReverted), 1)
	require.Equal(t, 1, w.dir.state(t).Generation)
	require.Contains(t, w.agent.ids, "g1.work/1.1.-.1")
	require.Equal(t, 1, outputs[len(outputs)-3], "the first prompt after the revert has the plan, and no result of the tests")
}
