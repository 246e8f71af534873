package run_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestOutcomeOfEveryProject has a row for each outcome: what was found of a project, and what it does to its parent.
func TestOutcomeOfEveryProject(t *testing.T) {
	const rejected = run.ReasonRejected
	rows := map[run.ProjectOutcome][]run.ProjectFacts{
		run.ProjectPending: {{}, {Closed: true}},
		run.ProjectRunning: {
			{Begun: true}, {Begun: true, Found: run.Present, Status: run.Running},
			{Found: run.Present, Status: run.Pending}, {Begun: true, Found: run.Present, Status: run.Replaying},
		},
		run.ProjectAsks: {
			{Begun: true, Found: run.Present, Status: run.AwaitingPhaseHandoff},
			{Begun: true, Found: run.Present, Status: run.AwaitingGateDecision},
			{Begun: true, Found: run.Present, Status: run.AwaitingHumanReview},
		},
		run.ProjectPaused: {
			{Begun: true, Found: run.Present, Status: run.Paused},
			{Begun: true, Found: run.Present, Status: run.WaitingLimit},
		},
		run.ProjectDone: {
			{Begun: true, Found: run.Present, Status: run.Done, Closed: true},
			{Found: run.Present, Status: run.Done},
		},
		run.ProjectRejected: {
			{Begun: true, Found: run.Present, Status: run.Halted, Reason: rejected, Closed: true},
			{Begun: true, Found: run.Present, Status: run.Halted, Reason: run.ReasonNoDiff, Closed: true},
		},
		run.ProjectHalted:    {{Begun: true, Found: run.Present, Status: run.Halted, Closed: true}},
		run.ProjectFailed:    {{Begun: true, Found: run.Present, Status: run.Failed, Closed: true}},
		run.ProjectCancelled: {{Begun: true, Found: run.Present, Status: run.Cancelled, Closed: true}},
		run.ProjectInterrupted: {
			{Begun: true, Found: run.Present, Status: run.Interrupted, Closed: true},
			{Begun: true, Found: run.Present, Status: run.Running, Closed: true},
			{Begun: true, Found: run.Present, Status: run.AwaitingGateDecision, Closed: true},
		},
		run.ProjectMissing:    {{Begun: true, Closed: true}},
		run.ProjectUnreadable: {{Begun: true, Found: run.Malformed}, {Found: run.Malformed, Closed: true}},
	}
	for _, rule := range run.ProjectRules() {
		for _, facts := range rows[rule.Outcome] {
			require.Equal(t, rule.Outcome, facts.Outcome(), "%+v", facts)
		}
		if rule.Outcome != run.ProjectSkipped { // follows from other projects
			require.NotEmpty(t, rows[rule.Outcome], rule.Outcome)
		}
		require.Equal(t, rule, rule.Outcome.Rule())
		require.Equal(t, rule.Ends && rule.Outcome != run.ProjectDone, rule.Blocks, rule.Outcome)
	}
	require.True(t, run.ProjectOutcome("another").Rule().Blocks, "what is unknown blocks")
}

// TestOutcomesAgreeWithTheCheck compares the table with the judgement of requirement 001: what blocks here has a
// blocker there, and only what is done lets the parent end.
func TestOutcomesAgreeWithTheCheck(t *testing.T) {
	for _, status := range []run.Status{
		run.Pending, run.Running, run.Paused, run.WaitingLimit, run.AwaitingPhaseHandoff, run.AwaitingGateDecision,
		run.Done, run.Halted, run.Failed, run.Cancelled, run.Interrupted,
	} {
		child := run.ChildFacts{Alias: "a", Own: run.Present, Status: string(status)}
		parent := run.Across(run.CrossFacts{Declared: []string{"a"}, Status: run.Done, Children: []run.ChildFacts{child}})
		facts := run.ProjectFacts{Begun: true, Found: run.Present, Status: status, Closed: status.Closed()}
		require.Equal(t, facts.Outcome() == run.ProjectDone, parent.Children[0].Blocker == "", status)
		live := run.Across(run.CrossFacts{Declared: []string{"a"}, Status: run.Running, Children: []run.ChildFacts{child}})
		if facts.Outcome().Rule().Blocks {
			require.Equal(t, run.ParentBlocked, live.Class, status)
		}
	}
}

// TestHaltOfARunAcrossProjects: the question decides how the run ends.
func TestHaltOfARunAcrossProjects(t *testing.T) {
	const start = `{"seq":1,"ts":"2026-11-20T10:00:01.000Z","kind":"run.start","phase":null,"payload":{"run_kind":` +
		`"cross_project","run_id":"r","epoch":1,"stages":[],"projects":[{"alias":"a","run_id":"b","source":"/a"}]}}`
	delivered := run.ProjectDelivery{Alias: "a", DeliveryCompleted: run.DeliveryCompleted{Delivered: true}}
	for name, row := range map[string]struct {
		kind    run.QuestionKind
		trigger string
		given   []run.Event
		status  run.Status
		reason  string
	}{
		"contract": {run.QuestionGate, run.TriggerCheckFailed, nil, run.Cancelled, run.ReasonContractAborted},
		"blocked":  {run.QuestionGate, run.TriggerBlocked, nil, run.Halted, run.ReasonGateHalted},
		"accepted": {run.QuestionHandoff, run.TriggerAcceptance, nil, run.Halted, run.ReasonHandoffHalt},
		"none":     {run.QuestionDelivery, run.TriggerUnprepared, nil, run.Failed, run.ReasonDeliveryFailed},
		"some": {run.QuestionDelivery, run.TriggerUnprepared, []run.Event{event(t, run.KindProjectDelivered, "", delivered)},
			run.Failed, run.ReasonDeliveryPartial},
	} {
		t.Run(name, func(t *testing.T) {
			first, err := run.ParseEvent([]byte(start))
			require.NoError(t, err)
			spec := row.kind.Spec()
			ask := run.QuestionRequested{Kind: row.kind, ID: "q", Trigger: row.trigger, Actions: []string{"halt"}}
			answer := run.QuestionDecided{Kind: row.kind, ID: "q", Action: run.ActionHalt}
			var s run.State
			for _, e := range append(append([]run.Event{first}, row.given...), event(t, spec.Requested, "", ask),
				event(t, spec.Decided, "", answer)) {
				if q, open := s.Asks(); open {
					require.Equal(t, "end the run as "+string(row.status), q.Meaning(run.ActionHalt))
				}
				e.Seq, e.TS = s.Seq+1, "2026-11-20T10:00:02.000Z"
				s = run.Apply(s, e)
				require.Empty(t, s.InvalidTransition)
			}
			require.Equal(t, row.status, s.Status)
			require.Equal(t, row.reason, s.Reason)
			end := event(t, run.KindRunEnd, "", run.RunEnd{Status: row.status, Reason: row.reason})
			end.Seq, end.TS = s.Seq+1, s.TS
			s = run.Apply(s, end)
			require.Empty(t, s.InvalidTransition, "its decision and one end")
			require.Equal(t, row.status, s.Status)
		})
	}
}

// TestLineOfProject describes a project in each situation.
func TestLineOfProject(t *testing.T) {
	live := &run.State{Status: run.AwaitingGateDecision, Spent: run.Totals{USD: 0.5}}
	for want, p := range map[string]run.ProjectState{
		"pending, needs a, b":                                {ProjectRef: run.ProjectRef{Needs: []string{"a", "b"}}},
		"failed (no agent here), $1.00, blocks the delivery": {Outcome: run.ProjectFailed, Reason: "no agent here", USD: 1},
		"done, cost ≥ $1.00, delivered to branch x": {Outcome: run.ProjectDone, USD: 1, Unknown: 1,
			Delivery: &run.Delivered{Delivered: true, To: "branch", Target: "x"}},
		"done, not delivered: no changes": {Outcome: run.ProjectDone, Delivery: &run.Delivered{Message: "no changes"}},
		"awaiting_gate_decision, $0.50":   {Outcome: run.ProjectRunning, USD: 0.1},
	} {
		require.Equal(t, want, p.Line(live))
	}
	require.Equal(t, "asks", run.ProjectState{Outcome: run.ProjectAsks}.Line(nil))
}

// TestCostOfProjects: the cost of a run includes that of its projects, and its budget covers both.
func TestCostOfProjects(t *testing.T) {
	s := run.State{Spent: run.Totals{USD: 1}, Budget: run.Budget{CapUSD: 4}, Projects: []run.ProjectState{
		{Outcome: run.ProjectDone, USD: 0.5}, {Outcome: run.ProjectFailed, USD: 1, Unknown: 2}, {},
	}}
	require.InDelta(t, 2.5, s.Total(), 0)
	require.InDelta(t, 1.5, s.Remaining(), 0)
	require.Equal(t, 2, s.UnknownCalls())
	require.Equal(t, "1 of 3 done", s.ProjectsDone())

	ref := run.ProjectRef{Alias: "a"}
	before := run.State{Projects: []run.ProjectState{{ProjectRef: ref}}}
	now := run.State{Spent: run.Totals{USD: 1}, Projects: []run.ProjectState{{ProjectRef: ref, USD: 2}}}
	got := run.Checkpoint{State: before}.Reverted(now)
	require.InDelta(t, 1, got.SunkUSD, 0)
	require.InDelta(t, 3, got.Total(), 0, "a revert changes no cost")
}

// TestNextCommandsOfProjects has a row for each outcome of a project: what lets the run continue.
func TestNextCommandsOfProjects(t *testing.T) {
	var table strings.Builder
	for _, rule := range run.ProjectRules() {
		s := run.State{RunID: "r1", Status: rule.Parent, Projects: []run.ProjectState{
			{ProjectRef: run.ProjectRef{Alias: "library"}, Outcome: rule.Outcome},
		}}
		at := run.Situation{EffectiveStatus: run.EffectiveStatus{ShownStatus: rule.Parent.Shown(), Liveness: run.LiveOpen}, Dir: "DIR"}
		switch rule.Outcome {
		case run.ProjectAsks:
			s.Questions = []run.Question{{Kind: run.QuestionHandoff, ID: "q1", Trigger: run.TriggerProject,
				Actions: []string{run.ActionRetry, run.ActionHalt}}}
		case run.ProjectPaused:
			at.Paused = []string{"library"}
		}
		if rule.Blocks {
			s.Questions = []run.Question{{Kind: run.QuestionGate, ID: "q1", Trigger: run.TriggerBlocked,
				Actions: []string{run.ActionRetry, run.ActionHalt}}}
		}
		fmt.Fprintf(&table, "%-12s  %s\n", rule.Outcome, strings.Join(typed(run.NextCommands(s, at)), " | "))
	}
	for _, status := range []run.Status{run.Done, run.Halted, run.Failed} {
		s := run.State{RunID: "r1", Status: status, Tree: &run.Blob{Digest: "all"}, Projects: []run.ProjectState{{}}}
		at := run.Situation{EffectiveStatus: run.EffectiveStatus{ShownStatus: status.Shown(), Liveness: run.LiveClosed}, Dir: "DIR"}
		fmt.Fprintf(&table, "%-12s  %s\n", "run "+status, strings.Join(typed(run.NextCommands(s, at)), " | "))
	}
	golden(t, "next-commands-of-projects.txt", table.String())
}

// A run across projects offers no replay of itself, and its acceptance names the effect of a yes. Verdicts and changes are
// those of its projects.
func TestAcceptanceOfARunAcrossProjects(t *testing.T) {
	s := run.State{Status: run.AwaitingPhaseHandoff, Projects: []run.ProjectState{{}}}
	q := run.Question{Kind: run.QuestionHandoff, Trigger: run.TriggerAcceptance,
		Subject: run.Subject{USD: 1, Change: &run.Change{}}}
	require.Equal(t, "deliver the changes of all projects", q.Meaning(run.ActionContinue))
	require.Equal(t, []run.Fact{{Name: "Cost", Text: "$1.00"}}, s.Facts(q))
	require.Contains(t, s.Available(s.Status), run.Fork)
	require.NotContains(t, s.Available(s.Status), run.Replay)
	require.Contains(t, s.Available(s.Status), run.Decide)
	s.Projects = nil
	lane := run.Question{Kind: run.QuestionGate, Of: run.LaneFailed, Subject: q.Subject}
	lane.Judged = &run.Judged{}
	require.Equal(t, s.Facts(lane)[:1], []run.Fact{{Name: "Cost", Text: "$1.00"}}, "not the verdict of another lane")
	require.Contains(t, s.Available(s.Status), run.Fork)
	require.Len(t, s.Facts(q), 3)
}
