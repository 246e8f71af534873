package cli

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/evidence"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
)

// TestEffectsOfARun: each call has one row with what became of it, whatever was decided about it.
func TestEffectsOfARun(t *testing.T) {
	w := newTargetWorld(t)
	action := run.Pass{Step: "write/1", InRound: 1, OfRound: 1, Round: 1, Role: "command", Gives: "outcome", Title: "c",
		Description: "c"}
	start := func(p run.Pass, call, effect string, attempt int) step {
		return step{run.KindPassStart, run.PassStart{Pass: p, Call: call, Effect: effect, Attempt: attempt, Attempts: 3}}
	}
	ok := func(p run.Pass, call, value string) step {
		return step{run.KindPassEnd, run.PassEnd{Pass: p, Call: call, Outcome: run.CategoryOK, Value: value,
			Validation: run.Validation{Passed: true}, Next: &run.Place{Round: 1, Step: 1}}}
	}
	d := w.journaledRun(t, "acts", "",
		start(writing, "acts/g0.001.1.-.1", "", 1),
		step{run.KindPassAttempt, run.PassAttempt{Pass: writing, Call: "acts/g0.001.1.-.1", Attempt: 1,
			Category: run.CategoryAgentTimeout, Judged: true}},
		start(writing, "acts/g0.001.1.-.2", "", 2), ok(writing, "acts/g0.001.1.-.2", ""),
		step{run.KindEffectBlocked, run.Effect{Step: "write/1", Call: "acts/g0.write/1.1.-.1", Class: run.EffectExternal,
			Policy: run.RequireHuman, Status: "blocked"}},
		step{run.KindGateRequested, run.QuestionRequested{Kind: run.QuestionGate, ID: "gate:1", Round: 1,
			Trigger: run.TriggerAction, Actions: []string{"approve", "halt"}, Question: "Again?"}},
		step{run.KindGateDecided, run.QuestionDecided{Kind: run.QuestionGate, ID: "gate:1", Action: "approve",
			DecidedBy: "ann"}},
		start(action, "acts/g0.write/1.1.-.1", run.EffectExternal, 1), ok(action, "acts/g0.write/1.1.-.1", "ok"),
		start(action, "acts/g0.write/2.1.-.1", run.EffectExternal, 1),
		start(action, "acts/g0.write/3.1.-.1", run.EffectExternal, 1),
		step{run.KindPassAttempt, run.PassAttempt{Pass: action, Call: "acts/g0.write/3.1.-.1", Attempt: 1,
			Category: run.CategoryUnknown, Judged: true}})

	text, code := w.here("evidence", d.Root, "--effects", "--json")
	require.Zero(t, code, text)
	var l evidence.Effects
	require.NoError(t, json.Unmarshal([]byte(text), &l))
	type row struct {
		Seq                                    int64
		Class, Call, Status, Decision, Decided string
		Declared                               bool
	}
	var rows []row
	for _, e := range l.Effects {
		rows = append(rows, row{e.Seq, e.Class, e.Call, e.Status, e.Decision, e.Decided, e.Declared})
	}
	require.Equal(t, []row{
		{2, "read", "acts/g0.001.1.-.1", "failed", "", "", false},
		{4, "read", "acts/g0.001.1.-.2", "recorded", "", "", false},
		{6, "external_action", "acts/g0.write/1.1.-.1", "blocked", "approve", "ann", false},
		{9, "external_action", "acts/g0.write/1.1.-.1", "recorded", "", "", true},
		{11, "external_action", "acts/g0.write/2.1.-.1", "attempted", "", "", true},
		{12, "external_action", "acts/g0.write/3.1.-.1", "failed", "", "", true},
	}, rows)

	text, code = w.here("evidence", d.Root, "--effects")
	require.Zero(t, code, text)
	require.Contains(t, text, "| 9 | write/1 command | 1 | external_action (declared) | acts/g0.write/1.1.-.1 | 1 | "+
		"recorded | done; a replay reuses its result |")
	require.Contains(t, text, "| blocked, approve by ann | asked; approved, so it was done here |")
	require.Contains(t, text, "| failed | begun without a usable result; it may have happened |")
	require.Contains(t, text, "begun; no result is recorded, so it may have happened")

	again, err := operations.ActionsAfter(d.Dir, 11)
	require.NoError(t, err)
	require.Equal(t, []string{"step write/1 is an external action that was executed after the checkpoint (failed, " +
		"call acts/g0.write/3.1.-.1): its effect stays, and the step is executed again"}, again)
	again, err = operations.ActionsAfter(d.Dir, 3)
	require.NoError(t, err)
	require.Len(t, again, 3)
}
