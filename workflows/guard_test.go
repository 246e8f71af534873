package workflows_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
)

const guardedLoop = `
pipeline: guarded
agent: {run: [agent], reply: text}
workspace: {git: worktree, protect: [test.sh]}
roles:
  planner: {prompt: a.md, gives: report, scope: reply}
  worker: {prompt: prompt.md, gives: changes}
stages:
  - name: plan
    steps: [{role: planner}]
  - name: work
    repeat: {max: 3, until: tests == ok}
    steps:
      - {role: worker}
      - {run: sh test.sh, as: tests}
  - name: gate
    steps:
      - {run: sh test.sh, if_failing: ask}
`

func TestTamperedFilesReachGatePromptAndQuestion(t *testing.T) {
	w := newHarness(t, guardedLoop)
	w.agent.values = []string{"failed", "ok", "failed"}
	tampered := run.Tampered{Role: "worker", Count: 1, First: []run.FileChange{{Path: "test.sh", Kind: "changed"}}}
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

	require.Equal(t, []string{"", "", "test.sh (changed)", "test.sh (changed)", "test.sh (changed)", "test.sh (changed)"},
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
		require.Equal(t, "test.sh (changed)", p.Tampered.Text())
		require.Equal(t, []string{p.Tampered.Warning()}, p.Validation.Warnings)
	}
	q, open := asked.Asks()
	require.True(t, open)
	require.Equal(t, "found", q.Found.Digest)
	require.Equal(t, "test.sh (changed)", q.Tampered.Text())
	facts := map[string]string{}
	for _, f := range asked.Facts(q) {
		facts[f.Name] = f.Text
	}
	require.Equal(t, "by worker, restored: test.sh (changed)", facts["Tampered"])
	require.Equal(t, "x.go", facts["Out of scope"])
	require.Equal(t, "planner", s.Scope.Role)
}

func TestCleanPassEndsTheReportOfTampering(t *testing.T) {
	w := newHarness(t, guardedLoop)
	w.agent.values = []string{"failed"}
	w.agent.will("g0.work/1.1.-.1", func(ok contract.PassResult) (contract.PassResult, error) {
		ok.Tampered = &run.Tampered{Role: "worker", Count: 1, First: []run.FileChange{{Path: "test.sh"}}}
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
