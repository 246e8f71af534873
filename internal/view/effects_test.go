package view_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/report"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
)

// TestEffects follows what a replay did outside of it: calls, attempts, what it reused and what it asked about.
func TestEffects(t *testing.T) {
	j := &journal{t: t}
	first := j.add(run.KindRunStart, run.RunStart{RunID: "r-1", Source: &run.Source{RunID: "r-0", Mode: run.ModeReplay,
		Replay: run.RequireHuman, Checkpoint: "cp-1"}})
	j.stage = "work"
	step := func(name, role, gives string) run.Pass {
		return run.Pass{Step: name, Role: role, Gives: gives, Round: 2, Member: "m"}
	}
	writer, tests := step("write", "writer", "changes"), step("test", "test", "outcome")
	j.add(run.KindPassStart, run.PassStart{Pass: writer, Call: "c1", Attempt: 1})
	j.add(run.KindPassStart, run.PassStart{Pass: writer, Call: "c1", Attempt: 1}) // after a lost worker
	j.add(run.KindPassAttempt, run.PassAttempt{Pass: writer, Call: "c1.q", Category: run.CategoryLost})
	j.add(run.KindPassAttempt, run.PassAttempt{Pass: writer, Call: "c1.q", Category: run.CategoryOutputEmpty,
		Judged: true})
	j.add(run.KindPassStart, run.PassStart{Pass: writer, Call: "c2", Attempt: 2, Effect: run.EffectExternal})
	j.add(run.KindPassEnd, run.PassEnd{Pass: writer, Call: "c2.q", Outcome: run.CategoryOK, Value: "3", Verdict: "no"})
	j.add(run.KindPassAttempt, run.PassAttempt{Pass: writer, Call: "c1.q", Category: run.CategorySuperseded, Attempt: 1,
		Late: 1})
	j.add(run.KindPassStart, run.PassStart{Pass: tests, Call: "t1", Attempt: 1})
	kept := j.add(run.KindPassEnd, run.PassEnd{Pass: tests, Call: "t1", Outcome: run.CategoryAgentExit})
	j.add(run.KindPassStart, run.PassStart{Pass: step("look", "reader", "report"), Call: "l1", Attempt: 1})
	j.add(run.KindEffectReused, run.Effect{Step: "look", Call: "l1", Class: "read", Status: "reused", Result: "old"})
	j.add(run.KindPassEnd, run.PassEnd{Pass: step("look", "reader", "report"), Call: "l1", Outcome: run.CategoryOK})
	state := j.fold()
	j.add(run.KindRunReverted, run.RunReverted{To: kept, Cause: "revert", State: &state})
	ask := func(id, action string) {
		j.add(run.KindGateRequested, run.QuestionRequested{Kind: run.QuestionGate, ID: id, Trigger: run.TriggerEffect})
		j.add(run.KindGateDecided, run.QuestionDecided{Kind: run.QuestionGate, ID: id, Action: action, DecidedBy: "ann"})
	}
	for i, action := range []string{run.ActionApprove, run.ActionApply, run.ActionHalt} {
		blocked := run.Effect{Step: "push", Call: "p" + string(rune('1'+i)), Class: run.EffectExternal,
			Policy: run.RequireHuman}
		if i > 0 {
			blocked.Status = "blocked"
		}
		j.add(run.KindEffectBlocked, blocked)
		ask("gate-"+action, action)
	}
	ask("gate-other", run.ActionHalt)
	j.add(run.KindEffectReused, run.Effect{Step: "push", Call: "p1", Class: "write", Status: "reused", Result: "x"})
	j.add(run.KindPassStart, run.PassStart{Pass: tests, Call: "t2", Attempt: 1})
	j.add(run.KindEffectBlocked, run.Effect{Step: "delivery", Class: run.EffectExternal})
	ask("gate-delivery", run.ActionApply)
	j.add(run.KindScreenshots, run.Screenshots{Step: "shots", Round: 3, Attempts: 2, Count: 1})
	j.add(run.KindScreenshots, run.Screenshots{Step: "shots", Round: 3, Attempts: 4, Degraded: true})
	j.add(run.KindDeliveryCompleted, run.DeliveryCompleted{Message: "skipped"})
	last := j.add(run.KindDeliveryCompleted, run.DeliveryCompleted{Delivered: true, Commit: "abc", To: "branch"})

	got, err := view.ReadEffects(j.dir())
	require.NoError(t, err)
	require.Equal(t, []string{"r-1", run.RequireHuman, "r-0"}, []string{got.RunID, got.Replay, got.Source})
	type row struct {
		seq                                   int64
		step, role, class, call, status, what string
	}
	var rows []row
	for _, e := range got.Effects {
		require.Equal(t, at(e.Seq), e.At)
		require.Equal(t, "work", e.Stage)
		require.Equal(t, e.Call == "c2.q", e.Declared, e.Call)
		require.Equal(t, e.Call == "l1", e.Reverted, e.Call)
		rows = append(rows, row{e.Seq - first, e.Step, e.Role, e.Class, e.Call, e.Status, e.Result})
	}
	require.Equal(t, []row{
		{1, "write", "writer", "write", "c1", "failed", "output-empty"},
		{5, "write", "writer", "external_action", "c2.q", "recorded", "3"},
		{7, "write", "writer", "write", "c1.q~1", "superseded", ""},
		{8, "test", "test", "external_action", "t1", "failed", string(run.CategoryAgentExit)},
		{10, "look", "reader", "read", "l1", "reused", "old"},
		{14, "push", "push", "external_action", "p1", "blocked", ""},
		{17, "push", "push", "external_action", "p2", "blocked", ""},
		{20, "push", "push", "external_action", "p3", "blocked", ""},
		{25, "push", "push", "write", "p1", "reused", "x"},
		{26, "test", "test", "external_action", "t2", "attempted", ""},
		{27, "delivery", "delivery", "external_action", "", "blocked", ""},
		{30, "shots", "screenshots", "read", "", "recorded", ""},
		{31, "shots", "screenshots", "read", "", "failed", ""},
		{last - first, "delivery", "delivery", "external_action", "", "recorded", "abc"},
	}, rows)
	require.Equal(t, 2, got.Effects[0].Round)
	require.Equal(t, "m", got.Effects[0].Member)
	require.Equal(t, 1, got.Effects[0].Attempt)
	require.Equal(t, []int{2, 4, 1}, []int{got.Effects[11].Attempt, got.Effects[12].Attempt, got.Effects[13].Attempt})
	var decisions []string
	for _, e := range got.Effects {
		if e.Status == view.EffectBlocked {
			require.Equal(t, "ann", e.Decided)
			decisions = append(decisions, e.Decision)
		}
	}
	require.Equal(t, []string{run.ActionApprove, run.ActionApply, run.ActionHalt, run.ActionApply}, decisions)

	var page bytes.Buffer
	require.NoError(t, report.EffectsMarkdown(&page, got))
	golden(t, "effects", page)
	page.Reset()
	require.NoError(t, report.EffectsMarkdown(&page, view.Effects{RunID: "r"}))
	require.Equal(t, "# Effects of r\n\nThe run has done nothing yet.\n", page.String())
}

// TestOnlyReplaysNameTheirSource: a fork makes its own calls.
func TestOnlyReplaysNameTheirSource(t *testing.T) {
	j := &journal{t: t}
	j.add(run.KindRunStart, run.RunStart{RunID: "r-1", Source: &run.Source{RunID: "r-0", Mode: run.ModeFork}})
	j.add(run.KindEffectBlocked, run.Effect{Step: "push", Call: "p", Class: run.EffectExternal})
	got, err := view.ReadEffects(j.dir())
	require.NoError(t, err)
	require.Empty(t, got.Source+got.Replay)
	var page bytes.Buffer
	require.NoError(t, report.EffectsMarkdown(&page, got))
	require.Contains(t, page.String(), "| blocked | not done: an operator is asked first |\n")
}
