package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// TestGatedSteps: only calls of agents count against a budget, and none of a record.
func TestGatedSteps(t *testing.T) {
	role, command := pipeline.PlanStep{Kind: pipeline.KindRole}, pipeline.PlanStep{Kind: pipeline.KindRun}
	for name, row := range map[string]struct {
		budget run.Budget
		status run.Status
		step   pipeline.PlanStep
		gated  bool
	}{
		"usd":         {run.Budget{CapUSD: 1}, run.Running, role, true},
		"tokens":      {run.Budget{Tokens: 1}, run.Running, role, true},
		"calls":       {run.Budget{Calls: 1}, run.Running, role, true},
		"per pass":    {run.Budget{PerPassUSD: 1}, run.Running, role, true},
		"hours":       {run.Budget{Hours: 1}, run.Running, role, false},
		"no budget":   {run.Budget{}, run.Running, role, false},
		"a command":   {run.Budget{CapUSD: 1}, run.Running, command, false},
		"of a record": {run.Budget{CapUSD: 1}, run.Replaying, role, false},
	} {
		s := run.State{Budget: row.budget, Status: row.status}
		require.Equal(t, row.gated, engineOf(run.State{}).gated(s, row.step), name)
	}
}

// TestShareOfACall: the rest of the budget, and the maximum of one call.
func TestShareOfACall(t *testing.T) {
	for name, row := range map[string]struct {
		budget run.Budget
		want   float64
	}{
		"no budget": {run.Budget{}, 0}, "a maximum only": {run.Budget{PerPassUSD: 3}, 3},
		"no maximum":      {run.Budget{CapUSD: 9}, 5},
		"a maximum below": {run.Budget{CapUSD: 9, PerPassUSD: 3}, 3}, "a maximum above": {run.Budget{CapUSD: 9,
			PerPassUSD: 7}, 5},
	} {
		p := &pass{e: engineOf(run.State{Budget: row.budget})}
		require.Equal(t, row.want, p.bounded(5), name)
	}
	over := contract.PassResult{Outcome: run.CategoryBudgetExceeded, OverBudget: true}
	other, allowed := over, over
	other.Outcome, allowed.OverBudget = run.CategoryUnknown, false
	for name, row := range map[string]struct {
		failure *contract.PassResult
		share   float64
		want    bool
	}{
		"at its share": {&over, 1, true}, "without a share": {&over, 0, false}, "another failure": {&other, 1, false},
		"at its own maximum": {&allowed, 1, false}, "no failure": {nil, 1, false},
	} {
		require.Equal(t, row.want, (&pass{failure: row.failure, share: row.share}).stoppedAtBudget(), name)
	}
}

// TestRestBesideOtherLanes: what calls of other lanes reserve, or cost and are not settled, is not left.
func TestRestBesideOtherLanes(t *testing.T) {
	e := engineOf(run.State{Budget: run.Budget{CapUSD: 10, Tokens: 100, Calls: 9}})
	a, b := laneOf(e, "a", "a"), laneOf(e, "b", "b")
	failed := &contract.PassResult{}
	answered := &contract.PassResult{Spend: run.Spend{USD: 2, Tokens: run.Tokens{Input: 5, Output: 5}}}
	a.passes = []*pass{{share: 3, tokens: 30}, {share: 100, failure: failed}, {share: 100, result: answered}}
	b.passes = []*pass{{share: 1, tokens: 1}}
	all := e.j.state.Budget
	require.Equal(t, rest{budget: all, usd: 9, tokens: 99, calls: 8}, a.rest(), "its own calls are not left out")
	require.Equal(t, rest{budget: all, usd: 5, tokens: 60, calls: 7}, b.rest())
	require.Equal(t, rest{budget: all, usd: 4, tokens: 59, calls: 6}, e.rest())
}

// TestAttemptsByFailure: how often a call is made again depends on how it failed.
func TestAttemptsByFailure(t *testing.T) {
	limits := pipeline.Limits{Attempts: 5, Structural: 2}
	for name, row := range map[string]struct {
		res  contract.PassResult
		want int
	}{
		"a failure":           {contract.PassResult{Outcome: run.CategoryAgentExit}, 5},
		"for good":            {contract.PassResult{Permanent: true, Structural: true}, 3},
		"unusable":            {contract.PassResult{Outcome: "output-no-artifact", Structural: true}, 2},
		"cut short":           {contract.PassResult{Outcome: run.CategoryOutputTruncated, Structural: true}, 5},
		"not by its category": {contract.PassResult{Outcome: "output-no-artifact"}, 5},
	} {
		p := &pass{attempt: 3, role: contract.Role{Limits: limits}}
		require.Equal(t, row.want, p.attemptsIn(retryClass(&row.res)), name)
		require.Equal(t, 5, p.maxAttempts())
		p.attempt = 7
		require.Equal(t, 7, p.maxAttempts())
		p.attempt, p.step.Effect = 3, run.EffectExternal
		require.Equal(t, 3, p.maxAttempts(), "an external action is not repeated")
	}
	for _, row := range []struct {
		s      run.Spend
		counts bool
	}{{run.Spend{}, false}, {run.Spend{USD: 0.01}, true}, {run.Spend{Tokens: run.Tokens{CacheRead: 1}}, true},
		{run.Spend{Known: run.CostUnknown}, true}, {run.Spend{Known: run.CostExact}, false}} {
		require.Equal(t, row.counts, counts(row.s))
	}
}

// TestNeededProjects: those that are not done, and of them those that do not work either.
func TestNeededProjects(t *testing.T) {
	project := func(alias string, o run.ProjectOutcome, needs ...string) run.ProjectState {
		return run.ProjectState{ProjectRef: run.ProjectRef{Alias: alias, RunID: alias + "-run", Needs: needs}, Outcome: o}
	}
	e := engineOf(run.State{Projects: []run.ProjectState{project("done", run.ProjectDone), project("works",
		run.ProjectRunning),
		project("failed", run.ProjectFailed), project("new", run.ProjectPending), project("a", run.ProjectSkipped,
			"done"),
		project("b", run.ProjectSkipped, "failed"), project("c", run.ProjectPending, "done", "works", "failed", "new"),
		project("other", "of a later release"), project("d", run.ProjectPending, "other")}})
	c, _ := e.j.state.Project("c")
	missing, blocked := e.needed(c)
	require.Equal(t, [][]string{{"works", "failed", "new"}, {"failed"}}, [][]string{missing, blocked})
	d, _ := e.j.state.Project("d")
	missing, blocked = e.needed(d)
	require.Equal(t, [][]string{{"other"}, {"other"}}, [][]string{missing, blocked}, "what is not known blocks")
	require.Equal(t, []string{"a"}, e.doneNow())
	require.Equal(t, []string{"works", "other"}, e.activeProjects())
	changed := map[string]bool{}
	for alias, w := range e.watched() {
		changed[alias] = w.changed
	}
	require.Equal(t, map[string]bool{"done": false, "works": true, "failed": true, "new": false, "a": true, "b": true,
		"c": false, "other": true, "d": false}, changed)
	require.True(t, e.projectChanged())
	require.True(t, e.watchedByOthers())
	require.Equal(t, []string{""}, engineOf(run.State{Projects: e.j.state.Projects[:1]}).doneNow(), "all are done")
}

// TestBudgetOfAProject: not more than the run has left, with a warning at the same share.
func TestBudgetOfAProject(t *testing.T) {
	for name, row := range map[string]struct {
		run, own, want run.Budget
	}{
		"no budget of the run": {run.Budget{}, run.Budget{CapUSD: 50, WarnUSD: 40}, run.Budget{CapUSD: 50,
			WarnUSD: 40}},
		"without its own budget": {run.Budget{CapUSD: 12}, run.Budget{}, run.Budget{CapUSD: 10, WarnUSD: 8}},
		"more than the run has": {run.Budget{CapUSD: 12}, run.Budget{CapUSD: 50, WarnUSD: 25},
			run.Budget{CapUSD: 10, WarnUSD: 5}},
		"less than the run has": {run.Budget{CapUSD: 12}, run.Budget{CapUSD: 4, WarnUSD: 1, Calls: 3},
			run.Budget{CapUSD: 4, WarnUSD: 1, Calls: 3}},
		"less than a dollar": {run.Budget{CapUSD: 12}, run.Budget{CapUSD: 0.5, WarnUSD: 0.25},
			run.Budget{CapUSD: 0.5, WarnUSD: 0.25}},
		"without its own warning":   {run.Budget{CapUSD: 12}, run.Budget{CapUSD: 4}, run.Budget{CapUSD: 4}},
		"a budget that is not left": {run.Budget{CapUSD: 1}, run.Budget{CapUSD: 4, WarnUSD: 1}, run.Budget{}},
	} {
		e := engineOf(run.State{Budget: row.run, Spent: run.Totals{USD: 2}})
		in := ProjectInput{Input: &Input{Start: run.RunStart{Budget: row.own}}}
		require.Equal(t, row.want, e.withinRest(in).Input.Start.Budget, name)
		require.Equal(t, row.own, in.Input.Start.Budget, "the input of the run stays")
	}
	e := engineOf(run.State{Projects: []run.ProjectState{{ProjectRef: run.ProjectRef{Alias: "delivered"},
		Delivery: &run.Delivered{}}, {ProjectRef: run.ProjectRef{Alias: "b"}}}})
	in := func(alias string, delivers bool, w *run.Workspace) ProjectInput {
		return ProjectInput{Alias: alias, Input: &Input{Start: run.RunStart{Delivers: delivers, Workspace: w}}}
	}
	tree := &run.Workspace{}
	e.in.Projects = []ProjectInput{in("delivered", true, tree), in("b", true, tree), in("c", false, tree), in("d",
		true, nil)}
	all := e.toDeliver()
	require.Len(t, all, 1)
	require.Equal(t, "b", all[0].Alias)
}

// TestReceiversOfANotice: those that asked for the occasion, by their number in the definition.
func TestReceiversOfANotice(t *testing.T) {
	e := engineOf(run.State{})
	all := []run.Receiver{{Name: "a", On: []string{"question"}}, {Name: "b", On: []string{"end", "pause"}},
		{Name: "c", On: []string{"pause"}}}
	e.in.Start.Receivers = all
	paused := run.Event{Kind: run.KindRunPaused, Seq: 4}
	require.Equal(t, []Receiver{{1, all[1]}, {2, all[2]}}, e.receivers(paused, run.State{Status: run.Paused}))
	require.Empty(t, e.receivers(paused, run.State{Status: run.Paused, InvalidTransition: "x"}))
	require.Empty(t, e.receivers(run.Event{Kind: run.KindErrorNoted}, run.State{Status: run.Running}))
	ids := map[string]bool{}
	for range 2 {
		ids[e.receiversID()] = true
	}
	e.in.Start.Receivers = all[1:]
	ids[e.receiversID()] = true
	require.Len(t, ids, 2)
	require.Equal(t, []string{"2026-11-25T14", "x", ""}, []string{hourOf("2026-11-25T14:05:00.000Z"), hourOf("x"),
		hourOf("")})
	limited := run.State{RunID: "r", Status: run.WaitingLimit, Limited: run.NewLimited([]run.LimitedCall{{
		Limit: run.Limit{Kind: run.LimitPlan, Account: "max"}, Since: "2026-11-25T14:05:00.000Z",
		Until: "2026-11-25T15:05:00.000Z"}})}
	n := e.newNotice("limit", run.Event{Kind: run.KindRunLimited, Seq: 4}, limited)
	require.Equal(t, "limit/max/2026-11-25T14/"+e.receiversID()[:8], n.ID, "one for the hour if no reset is known")
	require.Contains(t, n.Detail, "waits until 2026-11-25 15:05")
	limited.Limited.Reset = "2026-11-25T15:00:00.000Z"
	require.Equal(t, "limit/max/2026-11-25T15:00:00.000Z/"+e.receiversID()[:8],
		e.newNotice("limit", run.Event{Kind: run.KindRunLimited, Seq: 4}, limited).ID)
	limited.Limited.Account = ""
	require.Equal(t, "r/4", e.newNotice("limit", run.Event{Kind: run.KindRunLimited, Seq: 4}, limited).ID)
	asks := run.State{Questions: []run.Question{{Kind: run.QuestionHandoff, ID: "h", Text: "Good?",
		Actions:   []string{"halt"},
		Deadlines: run.Deadlines{ExpiresAt: "noon"}}}, Status: run.AwaitingPhaseHandoff}
	n = e.newNotice("question", run.Event{Kind: run.KindHandoffRequested, TS: "now"}, asks)
	require.Equal(t, "Good?", n.Question)
	require.Equal(t, "h", n.QuestionID)
	require.Equal(t, []string{"halt"}, n.Actions)
	require.Equal(t, "noon", n.ExpiresAt)
	require.Equal(t, "now", n.At)
}

// TestQueuesOfCalls: on the host of a store that is a folder, or where the program or a browser is.
func TestQueuesOfCalls(t *testing.T) {
	shots := func(install ...string) contract.Step {
		return contract.Step{PlanStep: pipeline.PlanStep{Shots: &pipeline.Screenshots{Install: install}}}
	}
	for store, want := range map[string][]string{"file:///s": {"calls", "calls", "calls", "calls"},
		"s3://s": {"calls", "calls-claude", contract.BrowserQueue("calls"), "calls"}} {
		e := engineOf(run.State{})
		e.in.Calls, e.in.Target.Store = "calls", store
		require.Equal(t, want, []string{e.callQueue(""), e.callQueue("claude"), e.screenshotQueue(shots()),
			e.screenshotQueue(shots("npm i"))})
		require.Equal(t, store == "file:///s", e.hostBound())
	}
}

// TestRestIsNeverNegative: a call that costs more than what is left leaves nothing.
func TestRestIsNeverNegative(t *testing.T) {
	left := rest{usd: 1, tokens: 1, calls: 1}
	left.take(2, 2)
	require.Equal(t, rest{}, left)
}

// TestBudgetOfAMessage: what a message does not name stays as it is, and a budget below one counts too.
func TestBudgetOfAMessage(t *testing.T) {
	before := run.Budget{CapUSD: 40, WarnUSD: 32, Tokens: 9000, Calls: 90, Hours: 9, Deadline: "2026-02-01T00:00:00Z"}
	const later = "2027-01-01T00:00:00Z"
	for name, row := range map[string]struct {
		m      Message
		change func(b *run.Budget)
		text   string
	}{
		"nothing": {Message{}, func(*run.Budget) {}, ""},
		"usd":     {Message{USD: 0.5}, func(b *run.Budget) { b.CapUSD, b.WarnUSD = 0.5, 0.4 }, "0.50 USD"},
		"tokens":  {Message{BudgetLimits: BudgetLimits{Tokens: 1}}, func(b *run.Budget) { b.Tokens = 1 }, "1 tokens"},
		"calls":   {Message{BudgetLimits: BudgetLimits{Calls: 1}}, func(b *run.Budget) { b.Calls = 1 }, "1 call"},
		"hours":   {Message{BudgetLimits: BudgetLimits{Hours: 0.5}}, func(b *run.Budget) { b.Hours = 0.5 }, "0.5 hours"},
		"deadline": {Message{BudgetLimits: BudgetLimits{Deadline: later}}, func(b *run.Budget) { b.Deadline = later },
			"until " + later},
		"all": {Message{USD: 20, BudgetLimits: BudgetLimits{Tokens: 500, Calls: 8, Hours: 2, Deadline: later}},
			func(b *run.Budget) {
				*b = run.Budget{CapUSD: 20, WarnUSD: 16, Tokens: 500, Calls: 8, Hours: 2, Deadline: later}
			}, "20.00 USD, 500 tokens, 8 calls, 2 hours, until " + later},
	} {
		want := before
		row.change(&want)
		require.Equal(t, want, row.m.budget(before, 0.8), name)
		require.Equal(t, row.text, row.m.budgetText(), name)
	}
}

// TestAttemptWithinTheRest: another attempt reckons with the calls of the other members of its group.
func TestAttemptWithinTheRest(t *testing.T) {
	cost := &contract.PassResult{Spend: run.Spend{USD: 3, Tokens: run.Tokens{Input: 6}}}
	usd, tokens := run.Budget{CapUSD: 10, PerPassUSD: 4}, run.Budget{Tokens: 10, PerPassTokens: 5}
	for name, row := range map[string]struct {
		budget  run.Budget
		other   pass
		covered bool
		share   float64
	}{
		"a running call":           {usd, pass{share: 6}, true, 4},
		"a running call of more":   {usd, pass{share: 7}, false, 0},
		"an answer":                {usd, pass{share: 9, result: cost}, true, 4},
		"a failure":                {usd, pass{share: 9, failure: cost}, true, 4},
		"tokens of an answer":      {tokens, pass{result: cost}, false, 0},
		"tokens of a running call": {tokens, pass{tokens: 5}, true, 0},
		"usd without a need":       {run.Budget{CapUSD: 10}, pass{share: 9}, true, 1},
		"nothing is left":          {run.Budget{CapUSD: 10}, pass{share: 10}, false, 0},
	} {
		p := &pass{e: engineOf(run.State{Budget: row.budget}), step: reportStep}
		p.group = []*pass{p, &row.other}
		var covered bool
		inside(t, func(ctx workflow.Context) error { covered = p.covered(ctx); return nil })
		require.Equal(t, row.covered, covered, name)
		require.InDelta(t, row.share, p.share, 0, name)
	}
}

// The calls of a group share the rest of each budget.
func TestRestOfBudgetsIsShared(t *testing.T) {
	s := run.State{Budget: run.Budget{CapUSD: 10, Tokens: 100, Calls: 5}, Spent: run.Totals{USD: 4},
		Used: run.Used{Tokens: 40, Calls: 2}}
	for name, row := range map[string]struct {
		budget   run.Budget
		need     run.Need
		taken    int // calls that are covered one after another
		ofTokens bool
	}{
		"dollars":   {run.Budget{CapUSD: 10}, run.Need{USD: 2, Tokens: 900}, 3, false},
		"tokens":    {run.Budget{Tokens: 100}, run.Need{USD: 900, Tokens: 30}, 2, true},
		"calls":     {run.Budget{Calls: 3}, run.Need{USD: 900, Tokens: 900}, 1, false},
		"all":       {s.Budget, run.Need{USD: 1, Tokens: 1}, 3, false},
		"too much":  {s.Budget, run.Need{USD: 6.01}, 0, false},
		"no budget": {run.Budget{}, run.Need{USD: 900}, 9, false},
	} {
		s.Budget = row.budget
		left, n := restOf(s), 0
		need := row.need
		for n < 9 && left.covers(&need) {
			left.take(need.USD, need.Tokens)
			n++
		}
		require.Equal(t, row.taken, n, name)
		require.Equal(t, row.ofTokens, need.OfTokens, name)
	}
}
