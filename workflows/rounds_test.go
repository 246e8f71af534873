package workflows_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
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
	reviewFirst    = "  - name: review\n    repeat: {max: 2, until: verdict == approved, otherwise: ask}\n" +
		"    steps: [{role: reviewer}, {role: implementer}]\n"
	changeFirst = "  - name: turns\n    repeat: {max: 2, until: verdict == approved and tests == ok, otherwise: ask}\n" +
		"    steps: [{role: implementer}, {run: make test, as: tests}, {role: reviewer}]\n"
	testsLast = "  - name: review\n    repeat: {max: 2, until: verdict == approved and tests == ok, otherwise: ask}\n" +
		"    steps: [{role: reviewer}, {role: implementer}, {run: make test, as: tests}]\n"
	twoChanges = "  - name: review\n    repeat: {max: 2, until: verdict == approved, otherwise: ask}\n" +
		"    steps: [{role: implementer}, {role: reviewer}, {role: implementer}]\n"
	planned = "  - name: plan\n    repeat: {max: 2, until: verdict == approved, otherwise: ask}\n" +
		"    steps: [{role: planner}, {role: critic}]\n"
	acceptance = "  - name: accept\n    steps: [{role: critic}]\n"
	asked      = "  - name: plan\n    steps: [{role: planner}, {ask: 'Is this right?'}]\n"
	askedLater = "  - name: pause\n    steps: [{ask: 'Is this right?'}]\n"
	askedAfter = "  - name: review\n    steps: [{role: reviewer}, {ask: 'Is this right?'}]\n"
	askedIn    = "  - name: review\n    repeat: {max: 2, until: verdict == approved}\n" +
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
			"i r i r i r I r I r", []int{3, 4}},
		"review first, accepted": {implementation + reviewFirst, 3, []message{goOn, {"action": "approve"}},
			"i r i r i r", []int{3}},
		"the last change is good": {implementation + reviewFirst, 2, nil, "i r i r i r", nil},
		"change first":            {changeFirst, 2, []message{again}, "i t r i t r I t r", []int{2}},
		"change first, twice": {changeFirst, 3, []message{again, more}, "i t r i t r I t r I t r",
			[]int{2, 3}},
		"tests last": {testsLast, 3, []message{again}, "r i t r i t r I t r t", []int{3}},
		"two changes": {twoChanges, 3, []message{again}, "i r i i r i r I r",
			[]int{3}},
		"a plan": {planned + implementation, 2, []message{again, {"action": "approve"}}, "p c p c P c i", []int{2}},
		"fix after a loop that is not last": {implementation + reviewFirst + acceptance, 4, []message{goOn, fix},
			"i r i r i r c I r c", []int{3}},
		"fix after a loop that approved": {implementation + reviewFirst + acceptance, 0, []message{fix},
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
			if strings.HasPrefix(name, "fix after a loop that approved") || strings.HasPrefix(name, "fix after two") {
				w.agent.words = strings.Fields(strings.Repeat("approved ", strings.Count(row.called, "c")/2) + "rejected")
			}
			var called []string
			given := ""
			w.composing = func(in contract.ComposeInput) {
				step := w.plan.Stages[in.At.Stage].RoundAt(in.At.Round).Steps[in.At.Step]
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

// TestLoopWithoutQuestionJudgesBeforeDelivery: what is delivered was judged, or an operator decides on it.
func TestLoopWithoutQuestionJudgesBeforeDelivery(t *testing.T) {
	loop := strings.Replace(reviewFirst, ", otherwise: ask", "", 1)
	for rejected, end := range []run.Status{2: run.Done, 3: run.Halted} {
		if end == "" {
			continue
		}
		t.Run(fmt.Sprint(rejected), func(t *testing.T) {
			w := newHarness(t, loops(implementation+loop))
			w.agent.words = strings.Fields(strings.Repeat("rejected ", rejected))
			w.answers(message{"action": "halt"})
			r, err := w.execute()
			require.NoError(t, err)
			require.Equal(t, end, r.Status)
			require.Equal(t, "implementer reviewer implementer reviewer implementer reviewer", w.called())
		})
	}
	w := newHarness(t, loops(implementation+loop))
	w.in.Start.Delivers = false
	w.agent.words = strings.Fields("rejected rejected rejected")
	w.ends(run.Done, "")
	require.Equal(t, "implementer reviewer implementer reviewer implementer", w.called(), "no question is asked about it")
}
