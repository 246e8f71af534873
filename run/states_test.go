package run

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestKindsOfLimits(t *testing.T) {
	for kind, want := range map[LimitKind]string{
		LimitPlan: "passes, usage limit", LimitBudgetDay: "passes, per_day of the settings",
		LimitRate: "passes soon, rate limit", LimitOverload: "passes soon, overloaded",
		LimitUnreachable: "passes soon, no connection", LimitLogin: "blocks, login", LimitModel: "blocks, model",
		LimitCredit: "blocks, credit", LimitOutput: ", output", "": ", ",
	} {
		got := ""
		if kind.Passes() {
			got = "passes"
		}
		if kind.Temporary() {
			got += " soon"
		}
		if kind.Blocks() {
			got += "blocks"
		}
		require.Equal(t, want, got+", "+kind.noun())
	}
	require.Equal(t, "the budget of the next day", Limit{Kind: LimitBudgetDay, Account: "a", Agent: "b"}.Whose())
	require.Equal(t, "account a", Limit{Account: "a", Agent: "b"}.Whose())
	require.Equal(t, "b", Limit{Agent: "b"}.Whose())
	require.Equal(t, "the agent", Limit{}.Whose())
	for cause, want := range map[LimitCause]string{
		LimitTimer: "the time was reached", LimitOperator: "an operator asked for a call at once",
		LimitProbe:   "it makes the first call after the reset of account a",
		LimitAccount: "account a is open again",
	} {
		require.Equal(t, want, RunUnlimited{Cause: cause, Account: "a", By: "b"}.why())
	}
}

func TestCallsThatWaitForLimits(t *testing.T) {
	const early, late = "2026-11-25T10:00:00.000Z", "2026-11-25T11:00:00.000Z"
	a := LimitedCall{Member: "a", Limit: Limit{AccountID: "id", Reset: early}, Until: late, Since: early, N: 2}
	b := LimitedCall{Member: "b", Limit: Limit{AccountID: "id", Reset: early}, Until: early, Since: late}
	l := NewLimited([]LimitedCall{a, b})
	require.Equal(t, []LimitedCall{b, a}, l.Calls())
	require.Equal(t, a, l.Call("a"))
	require.Equal(t, LimitedCall{Member: "c"}, l.Call("c"))
	require.Nil(t, NewLimited(nil))

	at := func(clock string) time.Time {
		now, err := time.Parse("15:04:05", clock)
		require.NoError(t, err)
		return time.Date(2026, 11, 25, now.Hour(), now.Minute(), now.Second(), 0, time.UTC)
	}
	wait := NewLimited([]LimitedCall{a})
	require.Equal(t, 90*time.Minute, wait.Rest(at("09:30:00")))
	require.Zero(t, wait.Rest(at("11:00:01")))
	require.Zero(t, (&Limited{}).Rest(at("09:30:00")))

	require.EqualValues(t, 3_600_000, between(early, late))
	require.Zero(t, between(late, early))
	require.Zero(t, between("", late))
	require.Zero(t, between(early, ""))
	waited := a
	waited.WaitedMS = 3_600_500
	due := NewLimited([]LimitedCall{waited}).Due(early, "", true)
	require.Empty(t, due.Until)
	require.EqualValues(t, 500, due.WaitedMS, "an hour of it was not waited")
	waited.WaitedMS = 10
	require.Zero(t, NewLimited([]LimitedCall{waited}).Due(early, "", true).WaitedMS)
	waited.Account = "x"
	require.Equal(t, late, NewLimited([]LimitedCall{waited}).Due(early, "y", false).Until)
	require.Empty(t, NewLimited([]LimitedCall{waited}).Due(early, "x", false).Until)
	require.Empty(t, NewLimited([]LimitedCall{waited}).Due(late, "", false).Until)
}

// A wait continues those of the calls before it, for any limit that passes soon.
func TestNextLimit(t *testing.T) {
	again := LimitedCall{AttemptsUsed: 2, Since: "first", N: 4, WaitedMS: 9}
	other := LimitedCall{AttemptsUsed: 2, Since: "now", N: 1}
	for name, row := range map[string]struct {
		n        int // of the call before
		from, to LimitKind
		want     LimitedCall
	}{
		"the same kind":              {3, LimitRate, LimitRate, again},
		"soon":                       {3, LimitOverload, LimitUnreachable, again},
		"a usage limit":              {3, LimitOverload, LimitPlan, other},
		"the last call met no limit": {0, LimitRate, LimitRate, other},
	} {
		before := LimitedCall{Limit: Limit{Kind: row.from}, Since: "first", N: row.n, WaitedMS: 9, AttemptsUsed: 2}
		row.want.Limit = Limit{Kind: row.to}
		require.Equal(t, row.want, before.Next(row.want.Limit, "now"), name)
	}
}

// Receivers are notified once: of a usage limit at once, of one that passes soon after fifteen minutes of waits.
func TestOccasionOfLimits(t *testing.T) {
	const minute = 60_000
	for name, row := range map[string]struct {
		kind     LimitKind
		n        int
		waitedMS int64 // the wait of a minute included
		want     string
	}{
		"a usage limit": {LimitPlan, 1, minute, "limit"}, "its second wait": {LimitPlan, 2, 16 * minute, ""},
		"too many requests":      {LimitRate, 1, minute, ""},
		"just before 15 minutes": {LimitRate, 5, 15*minute - 1, ""},
		"15 minutes":             {LimitRate, 5, 15 * minute, "limit"},
		"in the same wait":       {LimitRate, 9, 16*minute - 1, "limit"},
		"the wait before":        {LimitRate, 9, 16 * minute, ""},
	} {
		s := State{TS: "2026-11-25T10:00:00.000Z", CreatedAt: "2026-11-25T09:00:00.000Z", Limited: NewLimited([]LimitedCall{{
			Limit: Limit{Kind: row.kind}, N: row.n, WaitedMS: row.waitedMS, Until: "2026-11-25T10:01:00.000Z"}})}
		require.Equal(t, row.want, Occasion(KindRunLimited, s), name)
		if row.kind.Temporary() {
			s.Limited.Until = ""
			require.Empty(t, Occasion(KindRunLimited, s), name)
		}
	}
	require.Empty(t, Occasion(KindRunLimited, State{}))
	require.Empty(t, Occasion(Kind("unknown"), State{}))
	require.Empty(t, Occasion(KindPassStart, State{}))
	require.Equal(t, "failure", Occasion(KindRunEnd, State{Status: Failed}))
	require.Equal(t, "end", Occasion(KindRunEnd, State{Status: Halted}))
}

func TestClockShowsWhatIsNeeded(t *testing.T) {
	now := Clock{Now: time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC)}
	for at, want := range map[string]string{
		"2026-11-25T09:00:59.999Z": "09:00:59 (UTC)", "2026-11-25T09:01:00.000Z": "09:01 (UTC)",
		"2026-11-25T08:59:01.000Z": "08:59:01 (UTC)", "2026-11-25T08:59:00.000Z": "08:59 (UTC)",
		"2026-11-24T23:59:00.000Z": "2026-11-24 23:59 (UTC)", "2027-11-25T09:00:10.000Z": "2027-11-25 09:00 (UTC)",
		"soon": "soon",
	} {
		require.Equal(t, want, now.At(at))
	}
	local := Clock{Now: now.Now, Zone: time.Local}
	require.NotContains(t, local.At("2026-11-25T12:00:00.000Z"), "Local")
}

// A state keeps the scores of the loop at work.
func TestScoresOfRounds(t *testing.T) {
	f := folder{State: State{Phase: "a", Round: 1}}
	value := func(v float64) *float64 { return &v }
	for round, score := range []*float64{value(1), value(2.5), nil, value(3.1), value(3.1000004)} {
		f.Round = round + 1
		f.keepScore(score)
	}
	require.Equal(t, []float64{1, 2.5, 3.1, 3.1000004}, f.LoopScores())
	f.Round = 4
	f.keepScore(value(0.25))
	require.Equal(t, []RoundScore{{"a", 1, 1}, {"a", 2, 2.5}, {"a", 4, 0.25}}, f.Scores,
		"a repeated round replaces the later")
	f.Phase = "b"
	require.Empty(t, f.LoopScores(), "another loop")
	f.Round = 1
	f.keepScore(value(4))
	require.Equal(t, []RoundScore{{"b", 1, 4}}, f.Scores)
	for round := 2; round < 30; round++ {
		f.Round = round
		f.keepScore(value(float64(round)))
	}
	require.Len(t, f.Scores, keptScores)
	require.Equal(t, "0.1234567", scoreText(value(0.1234567)))
}

func TestRoundsOfLoops(t *testing.T) {
	s := State{Rounds: 9, SunkUnknown: 4, Loops: []Loop{{Stage: 1, Rounds: 3}, {Stage: 4, Rounds: 5}}}
	require.Equal(t, []int{0, 3, 0, 0, 5}, []int{s.LoopRounds(0), s.LoopRounds(1), s.LoopRounds(2), s.LoopRounds(3),
		s.LoopRounds(4)})
	f := folder{State: State{Next: Place{Stage: 2, Round: 7}}}
	f.countRound(1)
	given := f.Loops
	f.countRound(2)
	f.Next = Place{Stage: 3, Round: 1}
	f.countRound(6)
	require.Equal(t, []Loop{{2, 2}, {3, 6}}, f.Loops)
	require.Equal(t, []Loop{{2, 1}}, given)
	f.Next.Stage = mostStages
	f.countRound(1)
	f.Next.Stage++
	f.countRound(8)
	require.Len(t, f.Loops, 3)
	require.Equal(t, 8, f.State.Rounds)
}

func TestTextsOfStates(t *testing.T) {
	sets := []StageRef{{Name: "a"}, {Name: "b", Kind: "x", Sets: []string{"S1", "S2"}}}
	for want, s := range map[string]State{
		"S7":                       {Set: "S7", Stages: sets, Next: Place{Stage: 1, Round: 1}},
		"S1 pending":               {Stages: sets, Next: Place{Stage: 1, Round: 1}},
		"S1 completed, S2 pending": {Stages: sets, Next: Place{Stage: 1, Round: 2}},
		"S2 completed":             {Stages: sets, Next: Place{Stage: 1, Round: 3}},
		"":                         {Stages: sets, Next: Place{Stage: 1, Round: 4}},
	} {
		require.Equal(t, want, s.SetText())
	}
	for _, stage := range []int{-1, 0, 2, 3} {
		require.Empty(t, State{Stages: sets, Next: Place{Stage: stage, Round: 1}}.SetText())
	}
	require.Empty(t, State{Stages: sets, Next: Place{Stage: 1}}.SetText())

	unmet := State{Status: Done, Unmet: "score >= 3", Commit: "c"}
	require.True(t, unmet.NotApproved())
	require.Equal(t, "done, not approved", unmet.StatusText(Done))
	require.Equal(t, "interrupted", unmet.StatusText(Interrupted))
	require.Equal(t, "failed", State{Status: Failed, Unmet: "x"}.StatusText(Failed))
	for _, s := range []State{{Status: Done, Commit: "c"}, {Status: Failed, Unmet: "x"}, {Status: Done, Unmet: "x",
		Delivery: &Delivered{}}} {
		require.False(t, s.NotApproved())
		require.Equal(t, "done", s.StatusText(Done))
	}

	f := Failure{FailedPass: FailedPass{Step: "s", Member: "m", Category: CategoryAgentTimeout}, Message: "late",
		Starts: 1}
	require.Equal(t, "late (agent-timeout)", f.Text(WordingStages))
	f.Starts = 2
	require.Equal(t, "failed in 2 starts, the last time: late ("+string(CategoryAgentTimeout)+")", f.Text(WordingCorpus))
	require.True(t, f.Same(FailedPass{Step: "s", Member: "m"}))
	require.False(t, f.Same(FailedPass{Step: "s"}))
	require.False(t, f.Same(FailedPass{Step: "m", Member: "s"}))
	require.False(t, f.Same(FailedPass{Member: "m"}))

	stages := []StageRef{{Name: "plan", Kind: "b"}, {Name: "work", Rounds: 3}}
	for want, s := range map[string]State{
		"7/9":    {Passes: PassCount{Total: 9, LastSettled: 7, Invalid: 3}},
		"1/2":    {Wording: WordingStages, Stages: stages, Phase: "plan", Round: 4},
		"2/2 r4": {Wording: WordingStages, Stages: stages, Phase: "work", Round: 4, Rounds: 1},
		"0/2":    {Wording: WordingStages, Stages: stages, Phase: "b", Set: "work", Round: 4},
	} {
		require.Equal(t, want, s.ShortProgress())
	}
	require.Equal(t, "7/9 corpus passes (78%)  +  2 PA cycles",
		State{Rounds: 2, SunkUnknown: 5, Passes: PassCount{Total: 9, LastSettled: 7, Invalid: 3}}.Progress())
	for _, n := range [][3]int{{0, 0, 0}, {5, 0, 0}, {5, -1, 0}, {0, 9, 0}, {34, 56, 61}, {1, 2, 50}, {1, 200, 1},
		{1, 201, 0},
		{9, 9, 100}, {1, 1, 100}} {
		require.Equal(t, n[2], Percent(n[0], n[1]), n)
	}
	require.Equal(t, 3, State{Stages: stages, Phase: "work", Set: "plan"}.MaxRounds())
	require.Zero(t, State{Stages: stages, Phase: "b"}.MaxRounds())

	timeout := string(CategoryAgentTimeout)
	line := `{"category":"` + timeout + `","outcome":"claude-p-x","message":"category"}`
	require.Equal(t, line, string(WordingCorpus.Line([]byte(line))))
	require.Equal(t, strings.Replace(line, timeout, "agent-timeout", 1), string(WordingStages.Line([]byte(line))))
	for _, c := range []Category{CategoryAgentTimeout, CategoryAgentExit, CategorySpawnFailed} {
		require.Equal(t, c, c.In(WordingStages).canonical())
		require.Equal(t, c.Info().Advice, c.In(WordingStages).Info().Advice)
		require.Equal(t, c.In(WordingStages), c.In(WordingStages).Info().Name)
	}
	for _, row := range []struct {
		text, want string
		most       int
	}{{"abc", "abc", 3}, {"abcd", "ab…", 3}, {"äöü", "äöü", 3}, {"äöüß", "äö…", 3}, {"", "", 1}, {"ab", "…", 1}} {
		require.Equal(t, row.want, Cut(row.text, row.most))
	}
	require.Equal(t, `a\nb`, OneLine("a\nb\r\n\n"))
	require.Equal(t, "a", OneLine("a\n"))
	for status, want := range map[Status]bool{Paused: true, WaitingLimit: false, AwaitingGateDecision: true,
		Running: false,
		Done:    false, Halted: false} {
		require.Equal(t, want, status.NeedsOperator(), status)
	}
}

func TestBlockingConditions(t *testing.T) {
	failure, problem := &Failure{FailedPass: FailedPass{Category: CategoryAgentTimeout}},
		&Problem{Category: CategoryFileIO}
	for _, row := range []struct {
		state State
		want  Category
	}{
		{State{Status: Running, Reason: DiskFull}, ""},
		{State{Status: Paused, Reason: DiskFull, TS: PassFailed}, CategoryFileIO},
		{State{Status: Paused, Reason: BudgetThreshold, Warned: true}, CategoryBudgetExceeded},
		{State{Status: Paused, Reason: BudgetThreshold, Raised: true}, ""},
		{State{Status: Paused, Reason: UserRequested, Raised: true, Failure: failure}, ""},
		{State{Status: Paused, Reason: PassFailed, Failure: failure, Problem: problem}, CategoryAgentTimeout},
		{State{Status: Paused, Reason: ConsecutiveFailures, Problem: problem}, CategoryFileIO},
		{State{Status: Paused, Reason: PassFailed}, ""},
	} {
		require.Equal(t, row.want, row.state.StoppedBy(), "%+v", row.state)
		if row.want != "" {
			advice := strings.ToLower(row.state.Advice())
			require.True(t, strings.HasPrefix(advice, strings.ToLower(row.want.Info().Advice)), advice)
		}
	}
	gate := State{Status: Paused, Reason: GateFailed, Failure: failure}
	require.Equal(t, CategoryAgentTimeout, gate.StoppedBy())
	require.Equal(t, Next(Paused, GateFailed), gate.Advice(), "no agent is missing")
	raised := State{Status: Paused, Reason: BudgetThreshold}
	require.Equal(t, Next(Paused, BudgetThreshold), raised.NextStep())
	raised.Raised = true
	require.Equal(t, Next(Paused, ""), raised.NextStep())
	require.Equal(t, Next(Paused, ""), raised.Advice())
	raised.Reason = UserReview
	require.Equal(t, Next(Paused, UserReview), raised.NextStep())
	raised.Status, raised.Reason = Running, BudgetThreshold
	require.Equal(t, Next(Running, ""), raised.NextStep())
}
