package workflows_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// loops is a pipeline whose stages follow those roles.
func loops(stages string) string {
	head, _, _ := strings.Cut(reviewed, "stages:")
	return strings.Replace(head, "roles:\n",
		"roles:\n  planner: {prompt: prompt.md, gives: report}\n  critic: {prompt: prompt.md, gives: report, "+
			"verdict: {find: 'VERDICT: (\\w+)'}}\n", 1) + "stages:\n" + stages
}

const (
	implementation = "  - name: implement\n    steps: [{role: implementer}]\n"
	reviewFirst    = "  - name: review\n    repeat: {max: 2, until: approved, otherwise: ask}\n" +
		"    steps: [{role: reviewer}, {role: implementer}]\n"
	changeFirst = "  - name: turns\n    repeat: {max: 2, until: approved and tests.ok, otherwise: ask}\n" +
		"    steps: [{role: implementer}, {run: make test, id: tests}, {role: reviewer}]\n"
	testsLast = "  - name: review\n    repeat: {max: 2, until: approved and tests.ok, otherwise: ask}\n" +
		"    steps: [{role: reviewer}, {role: implementer}, {run: make test, id: tests}]\n"
	twoChanges = "  - name: review\n    repeat: {max: 2, until: approved, otherwise: ask}\n" +
		"    steps: [{role: implementer}, {role: reviewer}, {role: implementer}]\n"
	planned = "  - name: plan\n    repeat: {max: 2, until: approved, otherwise: ask}\n" +
		"    steps: [{role: planner}, {role: critic}]\n"
	acceptance = "  - name: accept\n    steps: [{role: critic}]\n"
	asked      = "  - name: plan\n    steps: [{role: planner}, {ask: 'Is this right?'}]\n"
	askedLater = "  - name: pause\n    steps: [{ask: 'Is this right?'}]\n"
	askedAfter = "  - name: review\n    steps: [{role: reviewer}, {ask: 'Is this right?'}]\n"
	askedIn    = "  - name: review\n    repeat: {max: 2, until: approved}\n" +
		"    steps: [{role: reviewer}, {ask: 'Is this right?'}, {role: implementer}]\n"
)

// TestRequestedRound follows a round that an operator requests: it begins at the last step that changes something,
// with the feedback, and what it changed is judged before the operator is asked again.
func TestRequestedRound(t *testing.T) {
	again, fix := message{"action": "retry_feedback", "feedback": "more"}, message{"action": "fix", "feedback": "more"}
	more, goOn := message{"action": "retry_feedback", "feedback": "still more"}, message{"action": "continue"}
	for name, row := range map[string]struct {
		stages   string
		rejected int // verdicts before those that approve
		answers  []message
		called   string // upper case: the first call with the feedback
		rounds   []int  // of the questions about a loop
	}{
		"review first": {implementation + reviewFirst, 3, []message{again},
			"i r i r i r I r", []int{3}},
		"review first, twice": {implementation + reviewFirst, 4, []message{again, more},
			"i r i r i r I r I r", []int{3, 5}},
		"review first, accepted": {implementation + reviewFirst, 3, []message{goOn, {"action": "approve"}},
			"i r i r i r", []int{3}},
		"the last change is good": {implementation + reviewFirst, 2, nil, "i r i r i r", nil},
		"change first":            {changeFirst, 2, []message{again}, "i t r i t r I t r", []int{2}},
		"change first, twice": {changeFirst, 3, []message{again, more}, "i t r i t r I t r I t r",
			[]int{2, 3}},
		"tests last": {testsLast, 3, []message{again}, "r i t r i t r t I t r t", []int{3}},
		"two changes": {twoChanges, 3, []message{again}, "i r i i r i r I r",
			[]int{3}},
		"a plan": {planned + implementation, 2, []message{again, {"action": "approve"}}, "p c p c P c i", []int{2}},
		"fix after a loop that is not last": {implementation + reviewFirst + acceptance, 4, []message{goOn, fix},
			"i r i r i r c I r c", []int{3}},
		"fix after a loop that approved": {implementation + reviewFirst + acceptance, 0, []message{fix},
			"i r c I r c", nil},
		"fix without feedback": {implementation + reviewFirst + acceptance, 0, []message{{"action": "fix"}},
			"i r c I r c", nil},
		"fix after two loops": {implementation + reviewFirst + planned + acceptance, 0, []message{fix},
			"i r p c c I r p c c", nil},
		"fix twice": {implementation + reviewFirst, 4,
			[]message{goOn, fix, goOn, {"action": "fix", "feedback": "still more"}}, "i r i r i r I r I r",
			[]int{3, 5}},
		"ask about a plan":                {asked + implementation, 0, []message{again, goOn}, "p P i", nil},
		"ask in the next stage":           {implementation + askedLater, 0, []message{again, goOn}, "i I", nil},
		"ask after a review":              {implementation + askedAfter, 0, []message{again, goOn}, "i r I r", nil},
		"ask in a loop before the change": {askedIn, 1, []message{again}, "r I r", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, loops(row.stages))
			for range row.rejected {
				w.agent.words = append(w.agent.words, "rejected")
			}
			if strings.HasPrefix(name, "fix after a loop that approved") || name == "fix without feedback" || strings.HasPrefix(name, "fix after two") {
				w.agent.words = strings.Fields(strings.Repeat("approved ", strings.Count(row.called, "c")/2) + "rejected")
			}
			var called []string
			given := ""
			w.composing = func(in contract.ComposeInput) {
				step, _ := w.plan.Stages[in.At.Stage].RoundAt(in.At.Round).At(in.At.Step)
				letter := (step.Role + "tests")[:1]
				if in.Context.Feedback != given && in.Context.Feedback != "" {
					letter = strings.ToUpper(letter)
				}
				given = in.Context.Feedback
				called = append(called, letter)
			}
			w.answers(row.answers...)
			s := w.ends(run.Done, "")
			require.Equal(t, row.called, strings.Join(called, " "))
			var rounds []int
			for _, q := range w.asked(run.KindHandoffRequested) {
				if q.LoopMaxRounds > 0 {
					rounds = append(rounds, q.Round)
				}
			}
			require.Equal(t, row.rounds, rounds)
			ids := map[string]bool{}
			for _, id := range w.agent.ids {
				require.False(t, ids[id], "call %s has been answered", id)
				ids[id] = true
			}
			require.Empty(t, s.Questions)
		})
	}
}

// TestLoopShowsItsFailedCommand attaches the output of a command that the condition names and that failed, first.
func TestLoopShowsItsFailedCommand(t *testing.T) {
	for name, row := range map[string]struct {
		pipeline string
		values   []string // of the command
		words    []string // of the reviewer; then approved
		want     string   // end of the question
		output   string   // call with the output; empty: no command is shown
	}{
		"it failed": {loops(changeFirst), []string{"ok", "failed"}, []string{"rejected", "rejected"},
			"2 rounds: make test failed", "g0.turns/2.2.-.1"},
		"it failed in round 1": {loops(changeFirst), []string{"failed"}, []string{"rejected", "rejected"}, "2 rounds", ""},
		"the condition does not name it": {loops(strings.Replace(changeFirst, " and tests.ok", "", 1)),
			[]string{"failed", "failed"}, []string{"rejected", "rejected"}, "2 rounds", ""},
		"it failed in a fresh folder": {inFreshFolder(changeFirst), []string{"ok", "failed", "ok", "failed"}, nil,
			"2 rounds: make test failed in a fresh folder", "g0.turns/4.2.-.1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, row.pipeline)
			w.agent.values, w.agent.words = row.values, row.words
			w.answers(message{"action": "halt"})
			w.ends(run.Halted, run.ReasonHandoffHalt)
			q := w.asked(run.KindHandoffRequested)[0]
			require.True(t, strings.HasSuffix(q.Question, " is not met after "+row.want), q.Question)
			first := run.Attached{Name: "last output", Digest: q.LastOutput}
			if row.output != "" {
				first = run.Attached{Name: "output of tests", Digest: "reply of run-1/" + row.output}
			}
			require.Equal(t, first, q.Artifacts[0])
		})
	}
}

// TestLoopWithoutQuestionJudgesBeforeDelivery: the last change of a loop is judged before it is delivered, and not
// otherwise.
func TestLoopWithoutQuestionJudgesBeforeDelivery(t *testing.T) {
	const last = "implementer reviewer implementer reviewer implementer"
	for delivers, called := range map[bool]string{true: last + " reviewer", false: last} {
		w := newHarness(t, loops(implementation+strings.Replace(reviewFirst, ", otherwise: ask", "", 1)))
		w.in.Start.Delivers = delivers
		w.agent.words = []string{"rejected", "rejected"}
		w.ends(run.Done, "")
		require.Equal(t, called, w.called())
	}
}

// TestOnlyApprovedChangesAreDeliveredUnasked: the last review of the changes decides, by the words that approve.
func TestOnlyApprovedChangesAreDeliveredUnasked(t *testing.T) {
	const loop = "  - name: rounds\n    repeat: {max: 1, until: CONDITION}\n    steps:\n      - {role: reviewer, id: " +
		"review}\n"
	const again = "  - name: again\n    steps: [{role: reviewer}]\n"
	for name, row := range map[string]struct {
		until    string // of the loop that the reviewer is in; empty: it is in none
		approves string // word of the reviewer; empty: approved
		more     string // stages behind it
		verdicts []string
		asks     bool
	}{
		"approved":            {verdicts: []string{"APPROVED"}},
		"another word":        {verdicts: []string{"needs_work"}, asks: true},
		"no word":             {verdicts: []string{""}, asks: true},
		"of the loop":         {until: "review.approved", approves: "ship", verdicts: []string{"ship"}},
		"not of its role":     {until: "approved", approves: "ship", verdicts: []string{"approved"}, asks: true},
		"the last one counts": {until: "approved", approves: "ship", more: again, verdicts: []string{"ship", "hm"}, asks: true},
		"the same once more":  {until: "approved", approves: "ship", more: again, verdicts: []string{"ship", "ship"}},
		"changed after it": {until: "approved", approves: "ship", more: "  - name: more\n    steps: [{role: implementer}]\n",
			verdicts: []string{"ship"}, asks: true},
		"one of two does not approve": {more: "  - name: more\n    steps: [{together: [second, reviewer]}]\n",
			verdicts: []string{"approved", "no", "approved"}, asks: true},
	} {
		t.Run(name, func(t *testing.T) {
			src := strings.Replace(judged, "stages:\n",
				"  second: {prompt: prompt.md, gives: report, verdict: {find: 'VERDICT: (\\w+)'}}\nstages:\n", 1) +
				row.more
			if row.approves != "" {
				src = strings.Replace(src, "(\\w+)'}", "(\\w+)', approves: "+row.approves+"}", 1)
			}
			if row.until != "" {
				src = strings.Replace(src, "      - role: reviewer\n", strings.Replace(loop, "CONDITION", row.until, 1),
					1)
			}
			w := newHarness(t, src)
			w.agent.words = row.verdicts
			w.answers(message{"action": "halt"})
			if !row.asks {
				w.ends(run.Done, "")
				require.Len(t, w.trees.delivers, 1)
				return
			}
			w.ends(run.Halted, "delivery_halt")
			require.Empty(t, w.trees.delivers)
			asked := w.asked(run.KindDeliveryRequested)
			require.Len(t, asked, 1)
			require.Equal(t, run.TriggerRejected, asked[0].Trigger)
		})
	}
}

func TestLoopEndWithoutReviewIsNotApproved(t *testing.T) {
	w := newHarness(t, strings.Replace(reviewed, "  - name: work\n    steps:\n      - {role: implementer}\n",
		"  - name: work\n    repeat: {max: 2, until: tests.ok}\n    steps: [{role: implementer}, {run: make "+
			"test, id: "+
			"tests}, {role: reviewer}]\n", 1))
	w.answers(message{"action": "halt"})
	w.ends(run.Halted, "delivery_halt")
	require.Equal(t, "implementer run", w.called())
	require.Contains(t, w.asked(run.KindDeliveryRequested)[0].Question, "No verdict approves the current changes")
}

func TestVerdictOfEarlierRelease(t *testing.T) {
	for verdict, asks := range map[string]bool{"approved": false, "rejected": true, "fine": true} {
		t.Run(verdict, func(t *testing.T) {
			w := newHarness(t, judged)
			w.cutOff()
			w.reopened(contract.Reopen{Epoch: 2, From: run.Cancelled})
			w.in.Start.Judged, w.in.Snapshot.State.Verdict, w.in.Snapshot.State.Next = false, verdict, run.Place{
				Stage: 1, Round: 1,
			}
			w.answers(message{"action": "halt"})
			if asks {
				w.ends(run.Halted, "delivery_halt")
				return
			}
			w.ends(run.Done, "")
			require.Len(t, w.trees.delivers, 1)
		})
	}
}

// withoutVerdict is a reply that a reviewer has given no verdict in.
var withoutVerdict = contract.PassResult{
	Reading: run.Reading{Outcome: "validation-failed", Message: "the reply has no verdict"}, Structural: true, Unjudged: true,
	Reply: &run.Blob{Digest: "words"}, Output: &run.Blob{Digest: "words"},
}

// TestMissingVerdictFailsAttempt: a reviewer without a verdict is asked once more.
func TestMissingVerdictFailsAttempt(t *testing.T) {
	w := newHarness(t, judged)
	w.agent.will("g0.002.1.-.1", goes(withoutVerdict))
	w.ends(run.Done, "")
	require.Equal(t, "implementer reviewer reviewer", w.called())
	require.Empty(t, w.asked(run.KindGateRequested))
}

// TestAcceptedPlanIsNotReviewedAgain: the answer "continue" at an ask step accepts the plan, unless work follows it.
func TestAcceptedPlanIsNotReviewedAgain(t *testing.T) {
	const ask = "    steps:\n      - {role: reader}\n      - ask: Is this the right plan?\n"
	again, goOn := message{"action": "retry_feedback", "feedback": "say when"}, message{"action": "continue"}
	for name, row := range map[string]struct {
		steps   string
		answers []message
		reviews int
	}{
		"continue":        {ask, []message{goOn}, 0},
		"once more first": {ask, []message{again, goOn}, 0},
		"more after it":   {ask + "      - {role: reader}\n", []message{goOn, {"action": "approve"}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, strings.Replace(planning, "    steps: [{role: reader}]\n", row.steps, 1))
			w.answers(row.answers...)
			w.ends(run.Done, map[bool]string{true: run.ReasonReviewApproved}[row.reviews > 0])
			require.Len(t, w.asked(run.KindReviewRequested), row.reviews)
		})
	}
}
