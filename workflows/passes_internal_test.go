package workflows

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// TestCallsOfAPass: ids, titles and folders of evidence, in a run and in a lane.
func TestCallsOfAPass(t *testing.T) {
	group := contract.Step{PlanStep: pipeline.PlanStep{Key: "work/2", Kind: pipeline.KindTogether, InRound: 2,
		Order:    "B",
		Members:  []string{"a", "b"},
		LogTitle: "short", Description: "long, round {n}"}, Roles: []contract.Role{{Name: "a"}, {Name: "b"}}}
	s := run.State{RunID: "run-1", ThreadID: "root", Generation: 3, Tries: []run.Tries{{Member: "a", Judged: 1}},
		Next: run.Place{Stage: 1, Round: 2}}
	e := loopIn(s)
	e.round.Round = contract.Round{Stage: "work", Dir: "cycle-2", Set: "S1", Repeat: &pipeline.Repeat{},
		Steps: []contract.Step{reviewStep, group}}
	p := passOf(e, group, contract.Role{Name: "a", Gives: "report"}, "a")
	p.composed = contract.ComposeResult{Files: []string{"a.go"}, References: []string{"b.md"}}
	require.Equal(t, "root/g3.work/2.2.a.2", p.nextCallID())
	require.Equal(t, "work/2 a", p.title())
	require.Equal(t, run.Pass{Step: "work/2", InRound: 2, OfRound: 2, Set: "S1", Round: 2, Member: "a", Role: "a",
		Gives: "report", Order: "B", Title: "short", Description: "long, round 2", Dir: "cycle-2",
		Files: []string{"a.go"}, References: []string{"b.md"}}, p.passRef())
	single := passOf(e, group, contract.Role{Name: "reviewer"}, "")
	require.Equal(t, "root/g3.work/2.2.-.1", single.nextCallID())
	require.Equal(t, "work/2 reviewer", single.title())
	single.at.Step = 1
	require.Equal(t, "cycle-2/step-2", single.evidenceDir(), "an earlier step of the round has the same role")
	e.round.Repeat = nil
	require.Empty(t, p.evidenceDir(), "only loops have folders")
	for _, of := range []run.RunStart{{Parent: &run.Parent{}}, {Source: &run.Source{}}} {
		e.in.Start = of
		require.Equal(t, "run-1/g3.work/2.2.a.2", p.nextCallID(), "its own call")
	}
	e.journal.now.Redone = []run.Redone{{Stage: 1, Times: 4, Until: run.Place{Stage: 1, Round: 2, Step: 9}}}
	require.Equal(t, "run-1/g3.work/2.2.a.r4-2", p.nextCallID())
	require.Equal(t, 4, p.passRef().Redo)

	e.in.Start.Lane = &run.LaneOf{Calls: "run-1", LanePlace: run.LanePlace{Key: "k1", Name: "one.go"}}
	inLane := passOf(e, group, contract.Role{Name: "a", Gives: "report"}, "a")
	require.Equal(t, "run-1/g3.work/2.2.k1+a.r4-2", inLane.nextCallID())
	require.Equal(t, "work/2 a — one.go", inLane.title())
	inLane.member = ""
	require.Equal(t, "run-1/g3.work/2.2.k1.r4-1", inLane.nextCallID())
	got := inLane.passRef()
	require.Equal(t, []string{"one.go", "short — one.go", "long, round 2 — one.go"},
		[]string{got.Item, got.Title, got.Description})
}

// TestContextOfAStep: what a step sees of the run.
func TestContextOfAStep(t *testing.T) {
	reply := func(step, member, phase string) run.Reply {
		return run.Reply{Step: step, Member: member, Phase: phase, Reply: run.Blob{Digest: step + member}}
	}
	s := run.State{Artifact: &run.Blob{Digest: "page"}, Pictures: &run.Blob{Digest: "pictures"}, Task: "Do it",
		Pipeline: "small", Notes: []run.Notes{{Name: "log"}}, Feedback: "more", About: &run.About{Question: "Good?"},
		Tampered: &run.Tampered{Step: "001"}, Markers: run.Markers{Waiver: &run.Waiver{Feedback: "it is known"}},
		Waivers: []run.Waiver{{Feedback: "earlier"}},
		Replies: []run.Reply{reply("1", "", "plan"), reply("2", "", "plan"), reply("4", "b", "work"), reply("4", "a",
			"work"),
			reply("3", "", "lint")}}
	e := loopIn(s)
	e.in.Start.Brief, e.in.Start.Workspace = &run.Blob{Digest: "brief"}, &run.Workspace{Base: "base"}
	e.round.Steps = []contract.Step{{PlanStep: pipeline.PlanStep{Key: "4"},
		Roles: []contract.Role{{Name: "a"}, {Name: "b"}}}}
	want := contract.StepContext{Artifact: s.Artifact, Notes: s.Notes, Pictures: s.Pictures, Tampered: s.Tampered,
		Feedback: "more", About: s.About, Waiver: s.Markers.Waiver, Waivers: s.Waivers, Task: "Do it", Base: "base",
		Parent: e.in.Start.Brief}
	require.Equal(t, want, stepOf(e, contract.Step{}).context())
	for name, row := range map[string]struct {
		sees pipeline.PlanStep
		want []string
	}{
		"a group, in the order of the definition": {pipeline.PlanStep{Sees: "4"}, []string{"4a", "4b"}},
		"a step":                         {pipeline.PlanStep{Sees: "3"}, []string{"3"}},
		"the last reply of a stage":      {pipeline.PlanStep{SeesStage: "plan"}, []string{"2"}},
		"the only reply of a stage":      {pipeline.PlanStep{SeesStage: "lint"}, []string{"3"}},
		"a stage without a reply so far": {pipeline.PlanStep{SeesStage: "later"}, nil},
	} {
		var got []string
		for _, r := range stepOf(e, contract.Step{PlanStep: row.sees}).context().Replies {
			got = append(got, r.Reply.Digest)
		}
		require.Equal(t, row.want, got, name)
	}
	e.journal.now.Task = "small"
	require.Empty(t, stepOf(e, contract.Step{}).context().Task, "a pipeline without a task has its name")
	e.in.Start.Lane = &run.LaneOf{List: "list", LanePlace: run.LanePlace{Index: 3}}
	require.Equal(t, &contract.ItemUse{List: "list", Index: 3}, stepOf(e, contract.Step{}).context().Item)
}

// TestPassesOfAStep: the members of a group that have not settled, and whether one that has did not approve.
func TestPassesOfAStep(t *testing.T) {
	group := contract.Step{PlanStep: pipeline.PlanStep{Kind: pipeline.KindTogether},
		Roles: []contract.Role{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	no, yes := false, true
	for name, row := range map[string]struct {
		state  run.State
		want   string
		denied bool
	}{
		"none has settled":            {run.State{Approved: &no}, "abc", false},
		"one has, and disapproved":    {run.State{Settled: []string{"b"}, Approved: &no}, "ac", true},
		"one has, and approved":       {run.State{Settled: []string{"a"}, Approved: &yes}, "bc", false},
		"one has, and does not judge": {run.State{Settled: []string{"a"}}, "bc", false},
	} {
		st, got := stepOf(loopIn(row.state), group), ""
		st.newCalls()
		for _, p := range st.group {
			got += p.member
			require.Equal(t, p.member, p.role.Name)
			require.Equal(t, row.denied, p.denied)
			require.Equal(t, 1, p.at.Stage)
		}
		require.Equal(t, row.want, got, name)
		require.True(t, st.completes(st.group))
		require.False(t, st.completes(st.group[:1]))
	}
	single := stepOf(loopIn(run.State{}), reviewStep)
	single.newCalls()
	require.Len(t, single.group, 1)
	require.Zero(t, single.group[0].member)
	require.Equal(t, "reviewer", single.group[0].role.Name)
	require.True(t, single.completes(single.group))
}

// TestUnsettledPass: which pass keeps a step from being settled.
func TestUnsettledPass(t *testing.T) {
	ok, failed := &contract.PassResult{Reading: run.Reading{Outcome: run.CategoryOK}}, &contract.PassResult{Reading: run.Reading{Outcome: run.CategoryUnknown},
		Spend: run.Spend{USD: 3}}
	login := &contract.PassResult{Limit: &run.Limit{Kind: run.LimitLogin}}
	over := &contract.PassResult{Reading: run.Reading{Outcome: run.CategoryBudgetExceeded}, OverBudget: true}
	type state struct{ result, failure *contract.PassResult }
	for name, row := range map[string]struct {
		settled []string
		all     []state
		open    int // -1: none
		filled  int // results that are made of failures
	}{
		"all have results":             {nil, []state{{ok, nil}, {ok, nil}}, -1, 0},
		"one waits":                    {nil, []state{{ok, nil}, {nil, nil}, {ok, nil}}, 1, 0},
		"one failed beside two":        {nil, []state{{ok, nil}, {nil, failed}, {ok, nil}}, -1, 1},
		"one failed beside one":        {nil, []state{{ok, nil}, {nil, failed}}, 1, 0},
		"one failed beside settled":    {[]string{"x"}, []state{{ok, nil}, {nil, failed}}, -1, 1},
		"two failed beside two":        {nil, []state{{nil, failed}, {ok, nil}, {nil, failed}, {ok, nil}}, -1, 2},
		"a failure beside one waiting": {nil, []state{{nil, nil}, {ok, nil}, {nil, failed}, {ok, nil}}, 2, 0},
		"the first failure":            {nil, []state{{nil, failed}, {nil, failed}, {ok, nil}}, 0, 0},
		"a login that is missing":      {nil, []state{{ok, nil}, {nil, login}, {ok, nil}}, 1, 0},
		"stopped at its share":         {nil, []state{{ok, nil}, {nil, over}, {ok, nil}}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := loopIn(run.State{Settled: row.settled})
			st := stepOf(e, contract.Step{})
			var all []*call
			for _, s := range row.all {
				all = append(all, &call{step: st, member: "m", result: s.result, failure: s.failure, share: 1})
			}
			open := st.unsettled(all)
			filled := 0
			for i, p := range all {
				if row.all[i].result == nil && p.result != nil {
					filled++
					require.Equal(t, run.CategoryUnknown, p.result.Outcome)
					require.Zero(t, p.result.Spend, "it is counted with the attempt")
				}
			}
			require.Equal(t, row.filled, filled)
			if row.open < 0 {
				require.Nil(t, open)
				return
			}
			require.Same(t, all[row.open], open)
		})
	}
	alone := passOf(loopIn(run.State{Settled: []string{"a", "b"}}), contract.Step{}, contract.Role{}, "")
	alone.failure = failed
	require.Same(t, alone, alone.unsettled([]*call{alone}), "it is no member")
	require.Equal(t, 3.0, failed.Spend.USD)
}

// TestApproval: a role that judges approves, unless a member of its group does not.
func TestApproval(t *testing.T) {
	judge := contract.Role{HasVerdict: true, Approval: []string{"approved"}}
	of := func(verdict string, outcome run.Category) *call {
		return &call{step: &step{}, role: judge, result: &contract.PassResult{Reading: run.Reading{Outcome: outcome, Verdict: verdict}}}
	}
	good, bad := of("approved", run.CategoryOK), of("rejected", run.CategoryOK)
	failed, waits := of("approved", run.CategoryUnknown), &call{step: &step{}, role: judge}
	for name, row := range map[string]struct {
		p     *call
		group []*call
		want  any
	}{
		"approved": {good, nil, true}, "rejected": {bad, nil, false}, "failed": {failed, nil, false},
		"beside a rejection": {good, []*call{good, bad}, false}, "beside a failure": {good, []*call{good, failed}, false},
		"beside one that waits": {good, []*call{good, waits}, true},
	} {
		row.p.group = row.group
		require.Equal(t, row.want, *row.p.approved(), name)
		row.p.group = nil
	}
	good.denied = true
	require.False(t, *good.approved(), "an earlier member did not approve")
	require.Nil(t, (&call{step: &step{}, result: good.result}).approved(), "it does not judge")
	require.False(t, (&call{step: &step{}, result: bad.result}).disapproves())
}

// TestOrderOfReplies: those of earlier stages, then those of the group as its definition lists the members.
func TestOrderOfReplies(t *testing.T) {
	e := loopIn(run.State{})
	e.round.Steps = []contract.Step{{PlanStep: pipeline.PlanStep{Key: "work/1"},
		Roles: []contract.Role{{Name: "a"}, {Name: "b"}}}}
	reply := func(step, member string) run.Reply { return run.Reply{Step: step, Member: member} }
	require.Equal(t, []run.Reply{reply("plan/1", "x"), reply("work/1", "a"), reply("work/1", "b")},
		stepOf(e, contract.Step{}).inOrder([]run.Reply{reply("work/1", "b"), reply("plan/1", "x"), reply("work/1", "a")}))
}

// TestFailedPassPausesOnce: not in a run that pauses anyway.
func TestFailedPassPausesOnce(t *testing.T) {
	for name, row := range map[string]struct {
		status  run.Status
		pause   bool
		failure *contract.PassResult
		pauses  bool
	}{
		"a failure":            {run.Running, false, &contract.PassResult{Reading: run.Reading{Outcome: run.CategoryUnknown}}, true},
		"no failure":           {run.Running, false, nil, false},
		"a pause is requested": {run.Running, true, &contract.PassResult{}, false},
		"a paused run":         {run.Paused, false, &contract.PassResult{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := loopIn(run.State{Status: row.status})
			e.inbox.asked.Pause = row.pause
			p := passOf(e, changeStep, changeStep.Roles[0], "")
			p.failure = row.failure
			inside(t, func(ctx workflow.Context) error { return p.pauseForFailure(ctx, p) })
			require.Equal(t, row.pauses, len(e.journal.pending) == 1)
		})
	}
}

// TestNoticesStarted: none is being started, and none waits for that.
func TestNoticesStarted(t *testing.T) {
	for _, row := range []struct {
		starting, pending int
		want              bool
	}{{0, 0, true}, {1, 0, false}, {0, 1, false}} {
		e := loopIn(run.State{})
		e.notices.starting = row.starting
		e.notices.pending = make([]contract.NoticeInput, row.pending)
		require.Equal(t, row.want, e.notices.started())
	}
}

// TestRetryWaits, unless a message asks for it after the wait has begun.
func TestRetryWaits(t *testing.T) {
	e := loopIn(run.State{Status: run.Running})
	e.inbox.requests = 1
	inside(t, func(ctx workflow.Context) error {
		start := workflow.Now(ctx)
		if err := e.host.awaitRetry(ctx, 3, "no store", never); err != nil {
			return err
		}
		require.Equal(t, time.Duration(float64(8*time.Second)*e.in.Options.TimeScale), workflow.Now(ctx).Sub(start))
		workflow.Go(ctx, func(workflow.Context) { e.inbox.requests++ })
		start = workflow.Now(ctx)
		err := e.host.awaitRetry(ctx, 3, "no store", never)
		require.Zero(t, workflow.Now(ctx).Sub(start))
		return err
	})
}

// TestRecordedScore: a score is met from the threshold on.
func TestRecordedScore(t *testing.T) {
	for name, row := range map[string]struct {
		score, threshold *float64
		met              bool
	}{
		"above": {number(4), number(3.5), true}, "equal": {number(3.5), number(3.5), true},
		"below": {number(3), number(3.5), false}, "no score": {nil, number(3.5), false},
		"no threshold": {number(3), nil, false},
	} {
		e := loopIn(run.State{Status: run.Running})
		e.round.Threshold, e.round.Stage = row.threshold, "work"
		p := passOf(e, contract.Step{PlanStep: pipeline.PlanStep{Key: "judge"}}, contract.Role{Score: "quality"}, "")
		p.context.Replies = make([]run.Reply, 3)
		p.result = &contract.PassResult{Reading: run.Reading{Outcome: run.CategoryOK, Score: row.score, ScoreWhy: "because"}}
		all := settlement{call: p}.events(nil)
		require.Equal(t, event{run.KindScoreRecorded, run.ScoreRecorded{Name: "quality", Step: "judge", Round: 2, Score: row.score,
			Why: "because", Threshold: row.threshold, Auditors: 3, Met: row.met}}, all[len(all)-1], name)
		p.member = "m"
		require.Len(t, settlement{call: p}.events(nil), 1, "a member records none")
		p.member, p.role.Score = "", ""
		require.Len(t, settlement{call: p}.events(nil), 1, "a role without a score records none")
	}
}

func number(f float64) *float64 { return &f }
