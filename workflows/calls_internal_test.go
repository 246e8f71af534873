package workflows

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// TestCallsOfAReplay: what is taken from the record, what is called, and what an operator is asked about.
func TestCallsOfAReplay(t *testing.T) {
	const unrecordedKey = "001 2  prompt"
	external, none := pipeline.PlanStep{Key: "001", Effect: run.EffectExternal}, pipeline.PlanStep{Key: "001",
		Effect: run.EffectNone}
	plain := pipeline.PlanStep{Key: "001"}
	for name, row := range map[string]struct {
		policy     string // empty: no replay
		step       pipeline.PlanStep
		status     run.Status
		permit     string
		unrecorded bool
		asks       bool
		only       bool
		from       string // the recorded run
		trigger    string
	}{
		"no replay":            {"", plain, run.Running, "", false, false, false, "", run.TriggerEffect},
		"no replay, an action": {"", external, run.Running, "", false, false, false, "", run.TriggerAction},
		"recorded part": {run.UseRecorded, plain, run.Replaying, "", false, false, true,
			"their-run", run.TriggerEffect},
		"recorded part, an action": {run.UseRecorded, external, run.Replaying, "", false, false, true,
			"their-run", run.TriggerAction},
		"behind the record": {run.UseRecorded, plain, run.Running, "", false, false, false, "their-run",
			run.TriggerEffect},
		"behind the record, an action": {run.UseRecorded, external, run.Running, "", false, false, true,
			"their-run", run.TriggerAction},
		"an action that is not recorded": {run.UseRecorded, external, run.Running, "", true, true, true, "their-run",
			run.TriggerUnrecorded},
		"another call that is not": {run.UseRecorded, plain, run.Running, "", true, false, false, "their-run",
			run.TriggerUnrecorded},
		"an action that is approved": {run.UseRecorded, external, run.Running, run.ActionApprove, true, false,
			false, "their-run", run.TriggerUnrecorded},
		"executed again": {run.Reexecute, external, run.Running, "", false, false, false, "",
			run.TriggerAction},
		"with an operator": {run.RequireHuman, plain, run.Running, "", false, true, false, "",
			run.TriggerEffect},
		"with an operator, without effect": {run.RequireHuman, none, run.Running, "", false, false, false, "",
			run.TriggerEffect},
		"with an operator, an action": {run.RequireHuman, external, run.Running, "", false, true, true, "",
			run.TriggerAction},
		"approved": {run.RequireHuman, plain, run.Running, run.ActionApprove, false, false,
			false, "", run.TriggerEffect},
		"applied": {run.RequireHuman, external, run.Running, run.ActionApply, false, false,
			true, "their-run", run.TriggerAction},
	} {
		t.Run(name, func(t *testing.T) {
			e := loopIn(run.State{Status: row.status, RunID: "run-1"})
			if row.policy != "" {
				e.in.Start.Source = &run.Source{RunID: "their-run", Mode: run.ModeReplay, Replay: row.policy, Generation: 2}
			}
			p := passOf(e, contract.Step{PlanStep: row.step}, contract.Role{Name: "builder"}, "")
			p.composed.Prompt.Digest = "prompt"
			require.Equal(t, unrecordedKey, permission{p}.key())
			if row.permit != "" {
				e.replay.grant(permission{p}.key(), row.permit)
			}
			if row.unrecorded {
				e.replay.unrecorded = map[string]bool{unrecordedKey: true}
			}
			in := p.input()
			require.Equal(t, row.asks, (permission{p}).needed())
			require.Equal(t, row.only, permission{p}.recordedOnly())
			require.Equal(t, row.only, in.RecordedOnly)
			require.Equal(t, row.from, in.RecordedRun)
			require.Equal(t, row.trigger, (permission{p}).trigger())
			require.Equal(t, row.policy, e.replayPolicy())
			require.Equal(t, row.status == run.Running || row.status == run.Replaying, e.active())
			if row.from != "" {
				require.Equal(t, 2, in.Generations)
			}
			require.Contains(t, (permission{p}).text(), "001 builder")
			require.Contains(t, (permission{p}).text(), map[string]string{
				run.TriggerUnrecorded: "is an external action, and the replayed run has no result of it",
				run.TriggerAction:     "is an external action. May it be executed again?",
				run.TriggerEffect:     "May 001 builder be called?"}[row.trigger])
		})
	}
	e := loopIn(run.State{Status: run.Paused})
	e.in.Start.Source = &run.Source{RunID: "their-run", Mode: run.ModeFork, Replay: run.UseRecorded}
	require.Nil(t, e.replaySource(), "a fork makes its own calls")
	require.False(t, e.active())
}

// TestInputOfACall: what differs from call to call.
func TestInputOfACall(t *testing.T) {
	session := &run.KeptSession{ID: "session-1"}
	s := run.State{Late: 3, Feedback: "more", Decided: &run.Decided{ID: "h1"}, Scope: &run.Scope{Role: "planner"},
		Sessions: []run.RoleSession{{Phase: "work", Role: "worker", KeptSession: *session}}}
	e := loopIn(s)
	e.round.Round = contract.Round{Stage: "work", Title: "Work"}
	p := passOf(e, contract.Step{}, contract.Role{Name: "worker", Gives: pipeline.GivesChanges}, "")
	p.steering = []run.Instruction{{Text: "now", Now: true}, {Text: "later"}}
	p.share, p.attempt, p.callID = 2.5, 2, "call"
	in := p.input()
	require.Equal(t, 3, in.SupersededSeen)
	require.Equal(t, "h1", in.DecisionID)
	require.Equal(t, s.Scope, in.Scope)
	require.Equal(t, session, in.Session)
	require.Equal(t, 2.5, in.BudgetUSD)
	require.Equal(t, 2, in.Attempt)
	require.Equal(t, "call", in.Call)
	require.Equal(t, []string{"now"}, in.Steering)
	require.Equal(t, "## Work, round 2 (worker)", in.Heading)
	p.role.Gives, p.member, p.step.Number = "report", "worker", 4
	e.journal.now.Again = "d9"
	in = p.input()
	require.Equal(t, "d9", in.DecisionID)
	require.Equal(t, (*run.Scope)(nil), in.Scope)
	require.Equal(t, (*run.KeptSession)(nil), in.Session)
	require.Equal(t, p.passRef().NoteHeading(), in.Heading)
	e.journal.now.Again, e.journal.now.Feedback = "", ""
	require.Empty(t, p.input().DecisionID, "the decision asked for nothing")
	e.journal.now.Decided, e.journal.now.Feedback = nil, "more"
	require.Empty(t, p.input().DecisionID)
}

// TestOperatorAsksForACall: the next call, and no other.
func TestOperatorAsksForACall(t *testing.T) {
	e := loopIn(run.State{})
	p := passOf(e, contract.Step{}, contract.Role{}, "")
	require.False(t, p.input().Now)
	e.inbox.tryNow = true
	require.True(t, p.input().Now)
	require.False(t, p.input().Now)
}

// TestErrorsOfDeliveries: what is read from the error of a delivery.
func TestErrorsOfDeliveries(t *testing.T) {
	far := contract.Heartbeat{Host: "far"}
	inQueue := temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
	for name, row := range map[string]struct {
		err     error
		inQueue bool
		host    string
		message string
		noStore string
		lasting bool
	}{
		"no heartbeat": {temporal.NewHeartbeatTimeoutError(), false, "", "the worker sent no more heartbeats", "",
			false},
		"a heartbeat": {temporal.NewHeartbeatTimeoutError(far), false, "far", "the worker sent no more heartbeats",
			"", false},
		"in the queue": {inQueue, true, "", "the worker sent no more heartbeats", "", false},
		"stopping": {temporal.NewApplicationError("bye", contract.ErrWorkerStopping), false, "",
			"the worker stopped", "", false},
		"not stored": {temporal.NewApplicationError("away", contract.ErrUnstored, far), false, "far", "away", "",
			false},
		"another error": {temporal.NewApplicationError("away", "other", far), false, "", "away", "", false},
		"no store": {temporal.NewApplicationError("away", contract.ErrNoStore, far), false, "", "away", "far",
			false},
		"a plain error":  {errors.New("away"), false, "", "away", "", false},
		"bad input":      {temporal.NewApplicationError("bad", contract.ErrBadInput), false, "", "bad", "", true},
		"full":           {temporal.NewApplicationError("full", contract.ErrDiskFull), false, "", "full", "", true},
		"damaged":        {temporal.NewApplicationError("bad", contract.ErrDamaged), false, "", "bad", "", true},
		"too large":      {temporal.NewApplicationError("large", "payloadSizeError"), false, "", "large", "", true},
		"without a host": {temporal.NewApplicationError("away", contract.ErrNoStore), false, "", "away", "", false},
	} {
		require.Equal(t, row.inQueue, timedOutInQueue(row.err), name)
		require.Equal(t, row.host, lastHost(row.err), name)
		require.Equal(t, row.message, lostMessage(row.err), name)
		require.Equal(t, row.noStore, hostWithoutStore(row.err), name)
		require.Equal(t, row.lasting, permanent(row.err), name)
	}
	require.True(t, workerLost(temporal.NewHeartbeatTimeoutError()))
	require.False(t, workerLost(inQueue))
}

// TestCostOfADelivery: it is in the details of its error.
func TestCostOfADelivery(t *testing.T) {
	spend, notes := run.Spend{USD: 2}, []contract.SupersededResult{{Number: 1}}
	for name, row := range map[string]struct {
		err   error
		spend *run.Spend
		notes []contract.SupersededResult
	}{
		"cost and notes":   {temporal.NewApplicationError("x", "y", spend, notes), &spend, notes},
		"cost only":        {temporal.NewApplicationError("x", "y", spend), &spend, nil},
		"notes only":       {temporal.NewApplicationError("x", "y", run.Spend{}, notes), nil, notes},
		"nothing":          {temporal.NewApplicationError("x", "y"), nil, nil},
		"a cancelled call": {temporal.NewCanceledError(spend, notes), &spend, notes},
		"not stored":       {temporal.NewApplicationError("x", contract.ErrUnstored, spend), nil, nil},
		"an unknown cost": {temporal.NewCanceledError(run.Spend{Known: run.CostUnknown}),
			&run.Spend{Known: run.CostUnknown}, nil},
		"tokens": {temporal.NewCanceledError(run.Spend{Tokens: run.Tokens{Input: 1}}),
			&run.Spend{Tokens: run.Tokens{Input: 1}}, nil},
		"no agent was started": {temporal.NewCanceledError(run.Spend{Known: run.CostExact}), nil, nil},
		"an error of no call":  {errors.New("x"), nil, nil},
	} {
		got, late := costOf(row.err)
		require.Equal(t, row.spend, got, name)
		require.Equal(t, row.notes, late, name)
	}
}

// TestSpanOfAPass: from the start of the first attempt to the end of the last.
func TestSpanOfAPass(t *testing.T) {
	first, last := run.Time(time.Unix(100, 0)), run.Time(time.Unix(130, 0))
	completed, total := span(first, last, 1500)
	require.Equal(t, run.Time(time.Unix(131, 5e8)), completed)
	require.Equal(t, int64(31_500), total)
	for _, row := range [][2]string{{"", last}, {first, "soon"}} {
		completed, total = span(row[0], row[1], 1500)
		require.Equal(t, row[1], completed)
		require.Equal(t, int64(1500), total)
	}
}

// TestQueuesOfCalls: on the host of a store that is a folder, or where the program or a browser is.
func TestQueuesOfCalls(t *testing.T) {
	shots := func(install ...string) contract.Step {
		return contract.Step{PlanStep: pipeline.PlanStep{Shots: &pipeline.Screenshots{Install: install}}}
	}
	for store, want := range map[string][]string{"file:///s": {"calls", "calls", "calls", "calls"},
		"s3://s": {"calls", "calls-claude", contract.BrowserQueue("calls"), "calls"}} {
		e := loopIn(run.State{})
		e.in.Calls, e.in.Target.Store = "calls", store
		require.Equal(t, want, []string{e.host.callQueue(""), e.host.callQueue("claude"), e.host.screenshotQueue(shots()),
			e.host.screenshotQueue(shots("npm i"))})
		require.Equal(t, store == "file:///s", e.hostBound())
	}
}

// TestAttemptsByFailure: how often a call is made again depends on how it failed.
func TestAttemptsByFailure(t *testing.T) {
	limits := pipeline.Limits{Attempts: 5, Structural: 2}
	for name, row := range map[string]struct {
		res  contract.PassResult
		want int
	}{
		"a failure":           {contract.PassResult{Reading: run.Reading{Outcome: run.CategoryAgentExit}}, 5},
		"for good":            {contract.PassResult{Permanent: true, Structural: true}, 3},
		"unusable":            {contract.PassResult{Reading: run.Reading{Outcome: "output-no-artifact"}, Structural: true}, 2},
		"cut short":           {contract.PassResult{Reading: run.Reading{Outcome: run.CategoryOutputTruncated}, Structural: true}, 5},
		"not by its category": {contract.PassResult{Reading: run.Reading{Outcome: "output-no-artifact"}}, 5},
	} {
		p := &call{step: &step{}, attempt: 3, role: contract.Role{Limits: limits}}
		require.Equal(t, row.want, attempts{p}.attemptsIn(retryClass(&row.res)), name)
		require.Equal(t, 5, attempts{p}.maxAttempts())
		p.attempt = 7
		require.Equal(t, 7, attempts{p}.maxAttempts())
		p.attempt, p.step.Effect = 3, run.EffectExternal
		require.Equal(t, 3, attempts{p}.maxAttempts(), "an external action is not repeated")
	}
	for _, row := range []struct {
		s      run.Spend
		counts bool
	}{{run.Spend{}, false}, {run.Spend{USD: 0.01}, true}, {run.Spend{Tokens: run.Tokens{CacheRead: 1}}, true},
		{run.Spend{Known: run.CostUnknown}, true}, {run.Spend{Known: run.CostExact}, false}} {
		require.Equal(t, row.counts, counts(row.s))
	}
}
