package workflows_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// meets is the result of a call that meets a limit, which resets some time after the start of the test; 0: unknown.
func meets(kind run.LimitKind, reset time.Duration) script {
	res := contract.PassResult{Reading: run.Reading{Outcome: run.CategoryRateLimit, Message: "refused"}, Limit: &run.Limit{Kind: kind}}
	if reset != 0 {
		res.Limit.Reset = run.Time(startTime.Add(reset))
	}
	return goes(res)
}

// onLimit runs f when the next wait for a limit is on disk.
func (w *harness) onLimit(f func()) { w.dir.when(run.KindRunLimited, f) }

func TestLimitSuspendsRun(t *testing.T) {
	const m, h = time.Minute, time.Hour
	for name, row := range map[string]struct {
		kind   run.LimitKind
		resets []time.Duration
		waits  []time.Duration
		jitter time.Duration // that each wait may exceed
	}{
		"a usage limit with a reset": {run.LimitPlan, []time.Duration{3 * h},
			[]time.Duration{3*h + 10*time.Second}, m},
		"a usage limit of days": {run.LimitPlan, []time.Duration{90 * h},
			[]time.Duration{90*h + 10*time.Second}, m},
		"a usage limit without a reset": {run.LimitPlan, make([]time.Duration, 5),
			[]time.Duration{15 * m, 30 * m, h, h, h}, 0},
		"a rate limit":             {run.LimitRate, make([]time.Duration, 3), []time.Duration{m / 2, m, 2 * m}, 0},
		"a rate limit with a time": {run.LimitRate, []time.Duration{20 * m}, []time.Duration{20 * m}, 0},
		"an overload of hours": {run.LimitOverload, make([]time.Duration, 7),
			[]time.Duration{m / 2, m, 2 * m, 4 * m, 8 * m, 15 * m, 15 * m}, 0},
		"no connection":                     {run.LimitUnreachable, make([]time.Duration, 2), []time.Duration{m / 2, m}, 0},
		"a reset that has passed meanwhile": {run.LimitPlan, []time.Duration{-h}, []time.Duration{10 * time.Second}, m},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, twoPasses)
			for i, reset := range row.resets {
				w.agent.will(call(1, i+1), meets(row.kind, reset))
			}
			w.onLimit(func() {
				s := w.dir.state(t)
				require.Equal(t, run.WaitingLimit, s.Status)
				require.Equal(t, row.kind, s.Limited.Kind)
				require.Empty(t, s.InFlight)
			})
			w.done()
			require.Len(t, w.waits, len(row.waits), w.waits)
			for i, want := range row.waits {
				require.GreaterOrEqual(t, w.waits[i].Round(time.Second), want)
				require.LessOrEqual(t, w.waits[i], want+row.jitter)
			}
			require.Equal(t, []string{call(1, len(row.waits)+1), call(2, 1)}, w.agent.ids[len(row.waits):])
			w.requireFirstAttempts()
			ends := payloads[run.PassEnd](w, run.KindPassEnd)
			require.Equal(t, 1, ends[0].Attempts)
			s := w.dir.state(t)
			require.Nil(t, s.Limited)
			require.Equal(t, 1, s.Starts)
			require.EqualValues(t, len(w.agent.ids), s.Total(), "the refused calls are paid for, too")
			require.Empty(t, w.story(run.KindRunPaused))
			require.Less(t, s.Used.LiveMS, int64(10_000), "waits are not work")
		})
	}
}

// TestLimitKeepsAttempts has failures before and after a limit.
func TestLimitKeepsAttempts(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.agent.will(call(1, 1), goes(transient))
	w.agent.will(call(1, 2), meets(run.LimitRate, 0))
	w.agent.will(call(1, 3), meets(run.LimitRate, 0))
	w.agent.will(call(1, 4), goes(transient))
	w.agent.will(call(1, 5), meets(run.LimitRate, 0))
	w.agent.will(call(1, 6), goes(transient))
	w.onPause(func() { w.signal("resume", nil) })
	w.done()
	var attempts []int
	for _, start := range payloads[run.PassStart](w, run.KindPassStart) {
		attempts = append(attempts, start.Attempt)
	}
	require.Equal(t, []int{1, 2, 2, 2, 3, 3, 1, 1}, attempts)
	paused := payloads[run.RunPaused](w, run.KindRunPaused)
	require.Len(t, paused, 1)
	require.Equal(t, run.PassFailed, paused[0].Reason)
	require.Contains(t, paused[0].Detail, "failed in 3 attempts")
	require.Equal(t, []string{call(1, 7), call(2, 1)}, w.agent.ids[6:],
		"attempts are counted from one again, call ids are not")
	var waits []string
	for _, l := range payloads[run.RunLimited](w, run.KindRunLimited) {
		waits = append(waits, (time.Duration(l.WaitedMS) * time.Millisecond).String())
	}
	require.Equal(t, []string{"30s", "1m30s", "30s"}, waits, "the provider answered in between")
}

// TestLimitWaitsAtMostMaxWait pauses for an operator after that.
func TestLimitWaitsAtMostMaxWait(t *testing.T) {
	for name, row := range map[string]struct {
		limits string
		most   time.Duration
	}{
		"default": {"", 12 * time.Hour}, "own": {", max_wait: 20m, wait: {max: 10m}", 20 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, strings.Replace(twoPasses, "attempts: 3", "attempts: 3"+row.limits, 1))
			for i := range 99 {
				w.agent.will(call(1, i+1), meets(run.LimitOverload, 0))
			}
			w.onPause(func() {
				w.agent.scripts = map[string][]script{}
				w.signal("resume", nil)
			})
			w.done()
			paused := payloads[run.RunPaused](w, run.KindRunPaused)
			require.Len(t, paused, 1)
			require.Equal(t, run.PassFailed, paused[0].Reason)
			require.Contains(t, paused[0].Detail, "(limits.max_wait): refused")
			sum := time.Duration(0)
			for _, wait := range w.waits {
				sum += wait
			}
			require.LessOrEqual(t, sum, row.most)
			require.Greater(t, sum, row.most-20*time.Minute)
		})
	}
}

func TestBlockedAccountPausesAtOnce(t *testing.T) {
	for _, kind := range []run.LimitKind{run.LimitLogin, run.LimitCredit, run.LimitModel} {
		t.Run(string(kind), func(t *testing.T) {
			blocked := contract.PassResult{Reading: run.Reading{Outcome: run.CategoryAgentExit, Message: "the account has no credit"},
				Permanent: true, Limit: &run.Limit{Kind: kind}}
			w := newHarness(t, aGroup)
			for try := range 4 {
				w.agent.will(groupCall("critic-B", string(rune('1'+try))), goes(blocked))
			}
			pauses := 0
			w.onEachPause(func(n int) { pauses = n; w.signal("resume", nil) })
			w.done()
			require.Empty(t, w.waits)
			require.Equal(t, 4, pauses, "the group does not continue without the member, and no resume needs force")
			for _, p := range payloads[run.RunPaused](w, run.KindRunPaused) {
				require.Equal(t, run.PassFailed, p.Reason)
				require.Contains(t, p.Detail, "the account has no credit")
			}
			require.Equal(t, 1, w.agent.calls[groupCall("critic-A", "1")], "answers stay")
		})
	}
}

// TestLimitedGroup asks each member again when its own limit resets, and never an answered one.
func TestLimitedGroup(t *testing.T) {
	w := newHarness(t, aGroup)
	asked := map[string][]time.Duration{}
	at := func(member string, s script) script {
		return func(ok contract.PassResult) (contract.PassResult, error) {
			asked[member] = append(asked[member], w.env.Now().Sub(startTime))
			return s(ok)
		}
	}
	w.agent.will(groupCall("critic-A", "1"), meets(run.LimitPlan, 3*time.Hour))
	w.agent.will(groupCall("critic-A", "2"), at("A", after(func() {})))
	w.agent.will(groupCall("critic-C", "1"), meets(run.LimitPlan, time.Hour))
	w.agent.will(groupCall("critic-C", "2"), at("C", meets(run.LimitPlan, 2*time.Hour)))
	w.agent.will(groupCall("critic-C", "3"), at("C", after(func() {})))
	w.onLimit(func() {
		s := w.dir.state(t)
		require.Equal(t, []string{"critic-B"}, s.Settled)
		require.Equal(t, "critic-C", s.Limited.Member)
		require.Len(t, s.Limited.Others, 1)
	})
	w.done()
	require.Equal(t, 1, w.agent.calls[groupCall("critic-B", "1")])
	require.Len(t, asked["C"], 2)
	for i, want := range []time.Duration{time.Hour, 2 * time.Hour} {
		require.Greater(t, asked["C"][i], want)
		require.Less(t, asked["C"][i], want+time.Minute)
	}
	require.Len(t, asked["A"], 1)
	require.Greater(t, asked["A"][0], 3*time.Hour)
	require.Less(t, asked["A"][0], 3*time.Hour+time.Minute)
	require.Nil(t, w.dir.state(t).Limited)
}

// TestAmendWhileWaitingForLimit shortens the waits while a run waits: that wait stays, and the next one is short.
func TestAmendWhileWaitingForLimit(t *testing.T) {
	with := func(wait string) string {
		return strings.Replace(twoPasses, "limits: {", "limits: {wait: {"+wait+"}, ", 1)
	}
	w := amendable(t, with("first: 1h, max: 4h"))
	next := w.given(with("first: 10s, max: 20s"), "first")
	for n := range 3 {
		w.agent.will(call(1, n+1), meets(run.LimitRate, 0))
	}
	var answer *reply
	w.onLimit(func() { answer = w.update("amend", message{"plan": next}) })
	w.done()
	require.NoError(t, answer.refused)
	require.NoError(t, answer.err)
	require.Equal(t, run.WaitingLimit, answer.ack.Status)
	require.Equal(t, []time.Duration{time.Hour, 20 * time.Second, 20 * time.Second},
		slices.DeleteFunc(w.waits, func(d time.Duration) bool { return d == 5*time.Second })) // of the comparison
}

// TestLimitOutlivesExecutions waits in one execution and in an epoch, and continues in the next.
func TestLimitOutlivesExecutions(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.agent.will(call(1, 1), goes(transient))
	w.agent.will(call(1, 2), meets(run.LimitPlan, 5*time.Hour))
	executions := 0
	w.onLimit(func() { w.env.SetContinueAsNewSuggested(true); w.signal("budget", message{"usd": 500}) })
	executions = w.chain(func(next contract.Input) {
		require.Equal(t, run.WaitingLimit, next.Snapshot.State.Status)
		require.Equal(t, 1, next.Snapshot.State.Limited.AttemptsUsed)
		w.start = startTime.Add(time.Hour)
	})
	require.Equal(t, 2, executions)
	require.Equal(t, []string{
		"pass.start 001", "pass.attempt 001", "pass.start 001", "pass.attempt 001", "run.limited", "run.unlimited",
		"pass.start 001", "pass.end 001", "pass.start 002", "pass.end 002",
	}, w.story(run.KindPassStart, run.KindPassAttempt, run.KindRunLimited, run.KindRunUnlimited, run.KindPassEnd))
	require.Greater(t, w.env.Now().Sub(startTime), 5*time.Hour)
	require.Equal(t, 2, payloads[run.PassStart](w, run.KindPassStart)[2].Attempt)
}

func TestEpochContinuesWaitingForLimit(t *testing.T) {
	for name, row := range map[string]struct {
		now bool
		end time.Duration
	}{"as before": {false, 5 * time.Hour}, "at once": {true, time.Hour}} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, twoPasses)
			w.agent.will(call(1, 1), meets(run.LimitPlan, 5*time.Hour))
			w.onLimit(func() { w.env.CancelWorkflow() })
			w.cancelled()
			w.start = startTime.Add(time.Hour)
			w.reopened(contract.Reopen{Epoch: 2, From: run.Cancelled, By: "ada", Now: row.now})
			w.done()
			require.InDelta(t, row.end, w.env.Now().Sub(startTime), float64(2*time.Minute))
			require.Equal(t, []string{call(1, 1), call(1, 2), call(2, 1)}, w.agent.ids)
			require.Equal(t, 1, payloads[run.PassStart](w, run.KindPassStart)[1].Attempt)
		})
	}
}

// twoAgents has fallbacks for its agent.
var twoAgents = strings.NewReplacer("attempts: 3", "attempts: 3, fallback: [other, third]",
	"artifact: {file",
	"agents:\n  other: {run: [second], reply: text}\n  third: {run: [third], reply: text}\nartifact: {file",
).Replace(twoPasses)

func TestFallbackAnswersAtUsageLimit(t *testing.T) {
	w := newHarness(t, twoAgents)
	w.agent.will(call(1, 1), meets(run.LimitPlan, 5*time.Hour))
	w.agent.will(call(1, 2), meets(run.LimitPlan, 2*time.Hour))
	w.agent.will(call(2, 1), meets(run.LimitRate, 0))
	w.done()
	var agents, asked []string
	for _, start := range payloads[run.PassStart](w, run.KindPassStart) {
		agents = append(agents, start.Agent)
		require.Equal(t, 1, start.Attempt)
	}
	for _, in := range w.agent.inputs {
		asked = append(asked, in.At.Agent)
	}
	require.Equal(t, []string{"claude -p", "second", "third", "claude -p", "claude -p"}, agents)
	require.Equal(t, []string{"", "other", "third", "", ""}, asked, "a rate limit is waited for")
	attempts := payloads[run.PassAttempt](w, run.KindPassAttempt)
	require.Equal(t, []string{"second", "third", ""}, []string{attempts[0].Fallback, attempts[1].Fallback,
		attempts[2].Fallback})
	require.Equal(t, "second", attempts[1].Limit.Agent)
	require.Len(t, w.waits, 1)
}

// TestAllAgentsAtUsageLimit waits for the first of them.
func TestAllAgentsAtUsageLimit(t *testing.T) {
	w := newHarness(t, twoAgents)
	for i, hours := range []time.Duration{5, 2, 9} {
		w.agent.will(call(1, i+1), meets(run.LimitPlan, hours*time.Hour))
	}
	w.onLimit(func() { require.Equal(t, "second", w.dir.state(t).Limited.Agent) })
	w.done()
	require.Equal(t, "", w.agent.inputs[3].At.Agent, "after the wait, the role's own agent is asked first")
	require.InDelta(t, 2*time.Hour, w.env.Now().Sub(startTime), float64(2*time.Minute))
}

// TestKnownLimitMakesNoCall is about a worker that knows the limit of its account.
func TestKnownLimitMakesNoCall(t *testing.T) {
	w := newHarness(t, twoPasses)
	known := contract.PassResult{Reading: run.Reading{Outcome: run.CategoryRateLimit, Message: "the account is shut"}, Uncalled: true,
		Limit: &run.Limit{Kind: run.LimitPlan, Account: "claude-max", Reset: run.Time(startTime.Add(time.Hour))}}
	w.agent.usd = 0
	w.agent.will(call(1, 1), goes(known))
	w.onLimit(func() { require.Equal(t, "claude-max", w.dir.state(t).Limited.Account) })
	w.done()
	require.Equal(t, []string{call(1, 1), call(1, 1), call(2, 1)}, w.agent.ids, "no call was made: its id is not used")
	require.False(t, payloads[run.PassAttempt](w, run.KindPassAttempt)[0].Judged)
}

func TestNoticeOfLimitIsSentOnce(t *testing.T) {
	night := make([]time.Duration, 9)
	for name, row := range map[string]struct {
		kind   run.LimitKind
		resets []time.Duration
		want   int
	}{
		"a usage limit, met again":    {run.LimitPlan, []time.Duration{time.Hour, 2 * time.Hour, 0}, 1},
		"a rate limit for a minute":   {run.LimitRate, night[:2], 0},
		"an overload of hours":        {run.LimitOverload, night, 1},
		"a long time to wait at once": {run.LimitRate, []time.Duration{20 * time.Minute}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, twoPasses+"notify:\n  - {run: [bell], on: [limit]}\n")
			for i, reset := range row.resets {
				w.agent.will(call(1, i+1), meets(row.kind, reset))
			}
			w.done()
			require.Len(t, w.received.events(0), row.want)
			if row.want > 0 {
				require.Equal(t, "limit waiting_limit", w.received.events(0)[0])
				require.Contains(t, w.received.got[0].Notice.Detail, "waits until 2026-01-02")
			}
		})
	}
}

// TestReplayDoesNotWaitForRecordedLimits reuses the answer that followed them.
func TestReplayDoesNotWaitForRecordedLimits(t *testing.T) {
	for _, policy := range []string{run.UseRecorded, run.RequireHuman} {
		t.Run(policy, func(t *testing.T) {
			w := newHarness(t, twoPasses)
			branched(w, run.ModeReplay, policy)
			recorded := meets(run.LimitPlan, time.Hour)
			w.agent.will(call(2, 1), func(ok contract.PassResult) (contract.PassResult, error) {
				ok, _ = reuse(ok)
				limited, err := recorded(ok)
				limited.Source, limited.SourceUSD = ok.Source, ok.SourceUSD
				return limited, err
			})
			w.agent.will(call(2, 2), reuse)
			w.dir.when(run.KindGateRequested, func() { w.signal("decide", message{"action": run.ActionApply}) })
			w.done()
			require.Equal(t, []string{call(2, 1), call(2, 2)}, w.agent.ids)
			require.Empty(t, w.story(run.KindRunLimited))
			require.Less(t, w.env.Now().Sub(startTime), time.Minute)
		})
	}
}

// TestMessagesWhileWaitingForLimit: the second call waits for five hours. A resume, and what a pause or revert is
// followed by, makes it at once; other messages keep the wait.
func TestMessagesWhileWaitingForLimit(t *testing.T) {
	for name, row := range map[string]struct {
		verb  string
		m     message
		story []string // after the wait began
		calls []string
		soon  bool
	}{
		"pause": {"pause", message{"by": "ada"}, []string{"run.paused", "run.resumed", "pass.start 002", "pass.end 002"},
			[]string{call(2, 2)}, true},
		"resume": {"resume", message{"by": "ada", "note": "I paid"}, []string{"run.unlimited", "pass.start 002",
			"pass.end 002"}, []string{call(2, 2)}, true},
		"revert": {"revert", message{"to": "cp-1"}, []string{"run.reverted", "pass.start 001", "pass.end 001",
			"pass.start 002", "pass.end 002"}, []string{"g1.001.1.-.1", "g1.002.1.-.1"}, true},
		"revert to an unknown checkpoint": {"revert", message{"to": "cp-none"}, []string{"decision.refused",
			"run.unlimited", "pass.start 002", "pass.end 002"}, []string{call(2, 2)}, false},
		"budget": {"budget", message{"usd": 500}, []string{"budget.raised", "run.unlimited", "pass.start 002",
			"pass.end 002"}, []string{call(2, 2)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, twoPasses)
			w.agent.will(call(2, 1), meets(run.LimitPlan, 5*time.Hour))
			w.onLimit(func() { w.signal(row.verb, row.m) })
			left := func() { require.Nil(t, w.dir.state(t).Limited) }
			w.dir.when(run.KindRunReverted, left)
			w.onPause(func() { left(); w.signal("resume", nil) })
			w.done()
			kinds := []run.Kind{run.KindPassStart, run.KindRunLimited, run.KindRunUnlimited, run.KindRunPaused,
				run.KindRunResumed, run.KindPassEnd, run.KindRunReverted, run.KindDecisionRefused, run.KindBudgetRaised}
			require.Equal(t, append([]string{"pass.start 001", "pass.end 001", "pass.start 002", "run.limited"}, row.story...),
				w.story(kinds...))
			require.Equal(t, append([]string{call(1, 1), call(2, 1)}, row.calls...), w.agent.ids)
			require.Equal(t, row.soon, w.env.Now().Sub(startTime) < time.Minute)
			if name == "resume" {
				require.Equal(t, []run.RunUnlimited{{By: "ada", Note: "I paid", Cause: run.LimitOperator}},
					payloads[run.RunUnlimited](w, run.KindRunUnlimited))
			}
		})
	}
}
