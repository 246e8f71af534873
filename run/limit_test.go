package run_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// limitEvents folds events, one second after another, and returns the state.
func limitEvents(t *testing.T, events ...any) (s run.State) {
	t.Helper()
	at := time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC)
	for i, payload := range events {
		s.TS = run.Time(at.Add(time.Duration(i) * time.Second))
		s = run.Folded(t, s, payload)
	}
	return s
}

func limitedUntil(member, until string) run.LimitedCall {
	return run.LimitedCall{
		Member: member, Limit: run.Limit{Kind: run.LimitPlan, Account: "account of " + member}, Until: until, N: 1,
		AttemptsUsed: 1,
	}
}

func TestFoldOfLimits(t *testing.T) {
	const soon, later = "2026-11-25T09:00:02.000Z", "2026-11-25T12:00:00.000Z"
	start := run.RunStart{RunID: "r", Epoch: 1}
	one := run.RunLimited{Limited: *run.NewLimited([]run.LimitedCall{limitedUntil("", later)})}
	two := run.RunLimited{Limited: *run.NewLimited([]run.LimitedCall{limitedUntil("a", later), limitedUntil("b", soon)})}
	both := limitEvents(t, start, two)
	for name, row := range map[string]struct {
		events []any
		status run.Status
		untils []string // of the calls
		n      int      // of the first call
	}{
		"it waits":              {[]any{start, one}, run.WaitingLimit, []string{later}, 1},
		"the earliest is first": {[]any{start, two}, run.WaitingLimit, []string{soon, later}, 1},
		"the time has come for one": {[]any{start, two, run.RunUnlimited{Cause: run.LimitTimer}},
			run.Running, []string{"", later}, 1},
		"an operator asks for all": {[]any{start, two, run.RunUnlimited{Cause: run.LimitOperator}},
			run.Running, []string{"", ""}, 1},
		"an account is open": {[]any{start, two, run.RunUnlimited{Cause: run.LimitAccount, Account: "account of a"}},
			run.Running, []string{"", ""}, 1},
		"another account is open": {[]any{start, one, run.RunUnlimited{Cause: run.LimitAccount, Account: "other"}},
			run.Running, []string{later}, 1},
		"a pass settles": {[]any{start, two, run.PassEnd{Pass: run.Pass{Member: "b"}}},
			run.WaitingLimit, []string{later}, 1},
		"the run moves on": {[]any{start, two,
			run.PassEnd{Pass: run.Pass{Member: "b"}, Next: &run.Place{Step: 1}}}, run.WaitingLimit, nil, 0},
		"another limit": {[]any{start, one, run.PassAttempt{Judged: true, Limit: &run.Limit{}}},
			run.WaitingLimit, []string{later}, 1},
		"an answer is not a limit": {[]any{start, one, run.PassAttempt{Judged: true}}, run.WaitingLimit, []string{""}, 0},
		"it is paused":             {[]any{start, one, run.RunPaused{Reason: run.UserRequested}}, run.Paused, nil, 0},
		"it is cancelled": {[]any{start, one, run.RunEnd{Status: run.Cancelled}},
			run.Cancelled, []string{later}, 1},
		"an epoch keeps it": {[]any{start, one, run.RunEnd{Status: run.Cancelled}, run.RunResumed{Epoch: 2}},
			run.Running, []string{later}, 1},
		"an epoch with its own state": {[]any{start, run.RunEnd{Status: run.Failed}, run.RunResumed{Epoch: 2, State: &both}},
			run.Running, []string{soon, later}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := limitEvents(t, row.events...)
			require.Equal(t, row.status, s.Status)
			var untils []string
			for _, c := range s.Limited.Calls() {
				untils = append(untils, c.Until)
				require.Equal(t, 1, c.AttemptsUsed)
			}
			require.Equal(t, row.untils, untils)
			if s.Limited != nil {
				require.Equal(t, row.n, s.Limited.N)
			}
			c, _ := run.NewCheckpoint(s, "")
			require.Nil(t, c.Reverted(s).Limited)
			require.Nil(t, c.Branched().Limited)
		})
	}
	c, made := run.NewCheckpoint(limitEvents(t, start, one), "")
	require.True(t, made, "the run can be reverted and forked while it waits")
	require.Equal(t, "cp-2", c.ID)
}

func TestLimitText(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	waits := func(until string, total, settled int) run.State {
		return run.State{Status: run.WaitingLimit, Passes: run.PassCount{Total: total, LastSettled: settled},
			Limited: run.NewLimited([]run.LimitedCall{{Limit: run.Limit{
				Kind: run.LimitPlan, Account: "claude-max"}, Until: until}})}
	}
	now := time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		state run.State
		zone  *time.Location
		want  string
	}{
		{waits("2026-11-25T14:00:10.000Z", 20, 6), berlin,
			"waits until 15:00 (Europe/Berlin) for account claude-max (usage limit), 14 passes left"},
		{waits("2026-11-25T14:00:10.000Z", 20, 19), nil,
			"waits until 14:00 (UTC) for account claude-max (usage limit), 1 pass left"},
		{waits("2026-11-25T23:30:00.000Z", 0, 0), berlin,
			"waits until 2026-11-26 00:30 (Europe/Berlin) for account claude-max (usage limit)"},
		{waits("2026-11-25T09:00:40.000Z", 0, 0), nil,
			"waits until 09:00:40 (UTC) for account claude-max (usage limit)"},
		{run.State{Status: run.WaitingLimit, Limited: run.NewLimited([]run.LimitedCall{{Limit: run.Limit{
			Kind: run.LimitBudgetDay, Agent: "claude -p"}, Until: "2026-11-25T23:00:30.000Z"}})}, berlin,
			"waits until 2026-11-26 00:00 (Europe/Berlin) for the budget of the next day (per_day of the settings)"},
		{run.State{Status: run.WaitingLimit, Limited: run.NewLimited([]run.LimitedCall{{Limit: run.Limit{
			Kind: run.LimitPlan, Account: "max", AccountID: "id", Reset: "2026-11-25T14:00:00.000Z"},
			Until: "2026-11-25T14:05:40.000Z"}})}, berlin,
			"waits until 15:05 (Europe/Berlin) for account max (usage limit)"},
		{waits("2026-11-25T08:30:00.000Z", 20, 6), nil,
			"waits for account claude-max (usage limit): the reset at 08:30 (UTC) has passed, 14 passes left"},
		{run.State{Status: run.Running, Limited: &run.Limited{}}, nil, ""},
	} {
		require.Equal(t, row.want, row.state.LimitText(run.Clock{Now: now, Zone: row.zone}))
	}
}

func TestWaitForTurn(t *testing.T) {
	for bound, text := range map[run.AtOnceBound]string{
		run.AtOnceHost:     "waits for its turn: this host may make 2 calls at once",
		run.AtOnceAccount:  "waits for its turn: account work may make 2 calls at once",
		run.AtOncePipeline: "waits for its turn: the pipeline may make 2 calls at once",
	} {
		t.Run(string(bound), func(t *testing.T) {
			limit := run.Limit{Kind: run.LimitAtOnce, Bound: bound, Most: 2, AccountID: "0123456789abcdef"}
			if bound == run.AtOnceAccount {
				limit.Account = "work"
			}
			other := limit
			other.AccountID = "fedcba9876543210"
			calls := []run.LimitedCall{{Member: "a", Limit: limit, Until: "2026-11-25T09:05:00.000Z", N: 1},
				{Member: "b", Limit: other, Until: "2026-11-25T09:06:00.000Z", N: 1}}
			attempt := run.PassAttempt{Category: run.CategoryRateLimit, Limit: &limit, Message: "queued"}
			waits := []any{run.RunStart{RunID: "r", Epoch: 1}, run.PassStart{Attempt: 1}, attempt,
				run.RunLimited{Limited: *run.NewLimited(calls)}}
			s := limitEvents(t, waits...)
			require.Equal(t, text, s.LimitText(run.Clock{}))
			require.Equal(t, "The run waits for the turn of its call.", run.Means(s.Status, s.Reason))
			require.Zero(t, s.Limited.Rest(time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC)), "it is not known when")
			require.Nil(t, s.Problem)
			s = limitEvents(t, append(waits, run.RunUnlimited{Cause: run.LimitTurn, Account: other.AccountID})...)
			require.Equal(t, run.Running, s.Status)
			require.Empty(t, s.Limited.Call("b").Until, "it is the turn of this one")
			require.NotEmpty(t, s.Limited.Call("a").Until)
		})
	}
}
