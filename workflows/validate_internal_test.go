package workflows

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// spent is a run that has spent 1 USD, 100 tokens and one call.
var spent = run.State{Status: run.Running, TS: "2026-01-02T03:04:05.000Z", Spent: run.Totals{USD: 1},
	Used: run.Used{Tokens: 100, Calls: 1}}

// openHandoff is a question that offers some actions.
var openHandoff = []run.Question{{Kind: run.QuestionHandoff, ID: "h",
	Actions: []string{run.ActionContinue, run.ActionRetryFeedback, run.ActionHalt}}}

// messageRows are messages, and why a run in a state does not accept them; empty: it does.
var messageRows = map[string]struct {
	s    run.State
	verb string
	m    contract.Message
	text string
	op   run.Operation // that the status does not allow
}{
	"pause":                   {run.State{Status: run.Running}, contract.VerbPause, contract.Message{}, "", ""},
	"pause before the start":  {run.State{}, contract.VerbPause, contract.Message{}, "", ""},
	"pause of an unknown run": {run.State{Status: run.Unknown}, contract.VerbPause, contract.Message{}, "", ""},
	"pause of a paused run": {run.State{Status: run.Paused}, contract.VerbPause, contract.Message{},
		"the run is paused: there is nothing to pause", run.Pause},
	"resume":         {run.State{Status: run.Paused}, contract.VerbResume, contract.Message{}, "", ""},
	"resume of wait": {run.State{Status: run.WaitingLimit}, contract.VerbResume, contract.Message{}, "", ""},
	"resume of a running run": {run.State{Status: run.Running}, contract.VerbResume, contract.Message{},
		"the run is running: only a paused run can be resumed", run.Resume},
	"resume without a budget": {run.State{Status: run.Paused, Reason: run.BudgetThreshold, Spent: run.Totals{USD: 9},
		Budget: run.Budget{CapUSD: 8}}, contract.VerbResume, contract.Message{},
		"the run has cost 9.00 USD of a budget of 8.00 USD: raise the budget first, run: starter budget run-1 --usd 16", ""},
	"resume without tokens": {run.State{Status: run.Paused, Reason: run.BudgetThreshold, Used: run.Used{Tokens: 9},
		Budget: run.Budget{Tokens: 8}}, contract.VerbResume, contract.Message{}, "9 of 8 tokens are used: raise the budget first, run: starter budget run-1 --tokens 16", ""},
	"resume with a budget for no call": {run.State{Status: run.Paused, Reason: run.BudgetThreshold,
		Need: &run.Need{Role: "builder", USD: 2, Source: run.NeedMean}, Budget: run.Budget{CapUSD: 1}}, contract.VerbResume, contract.Message{},
		"the mean of role builder is $2.00: raise the budget first, run: starter budget run-1 --usd 2", ""},
	"resume after a budget": {run.State{Status: run.Paused, Reason: run.BudgetThreshold, Spent: run.Totals{USD: 9},
		Budget: run.Budget{CapUSD: 10}}, contract.VerbResume, contract.Message{}, "", ""},
	"resume for another reason": {run.State{Status: run.Paused, Reason: run.UserReview, Spent: run.Totals{USD: 9},
		Budget: run.Budget{CapUSD: 8}}, contract.VerbResume, contract.Message{}, "", ""},
	"resume after failures": {run.State{Status: run.Paused, Reason: run.ConsecutiveFailures,
		Passes: run.PassCount{InRow: 3}}, contract.VerbResume, contract.Message{}, "3 consecutive passes failed. Fix the cause, then run: starter resume run-1 --force --reason TEXT", ""},
	"resume after failures of a pass": {run.State{Status: run.Paused, Reason: run.ConsecutiveFailures,
		Failure: &run.Failure{FailedPass: run.FailedPass{Step: "002", Category: run.CategoryUnknown}, Starts: 4,
			Message: "exit 1"}}, contract.VerbResume, contract.Message{},
		"002 failed in 4 consecutive starts, last with unknown: exit 1. Fix the cause, then run: starter resume run-1 --force --reason TEXT", ""},
	"forced resume after failures": {run.State{Status: run.Paused, Reason: run.ConsecutiveFailures}, contract.VerbResume,
		contract.Message{Force: true, Reason: "the network is back"}, "", ""},
	"forced resume without a reason": {run.State{Status: run.Paused}, contract.VerbResume, contract.Message{Force: true, Reason: " "},
		"force needs a reason", ""},
	"any message to a done run": {run.State{Status: run.Done}, contract.VerbBudget, contract.Message{USD: 9}, contract.DoneIsFinal, run.SetBudget},
	"any message to a failed run": {run.State{Status: run.Failed}, contract.VerbSteer, contract.Message{Text: "x"},
		"the run is failed: it accepts no more messages", run.Steer},
	"budget of what is spent": {spent, contract.VerbBudget, contract.Message{USD: 1}, "", ""},
	"budget below what is spent": {spent, contract.VerbBudget, contract.Message{USD: 0.5},
		"a budget of 0.50 USD is below the current cost (1.00)", ""},
	"budget without a number": {spent, contract.VerbBudget, contract.Message{}, "a budget of 0.00 USD is below the current cost (1.00)", ""},
	"budget beyond all money": {spent, contract.VerbBudget, contract.Message{USD: 1e308},
		"a budget of 1e+308 USD is not a number from 0 to 1000000000", ""},
	"negative budget": {spent, contract.VerbBudget, contract.Message{USD: -1}, "a budget of -1 USD is not a number", ""},
	"more tokens":     {spent, contract.VerbBudget, contract.Message{BudgetLimits: contract.BudgetLimits{Tokens: 101}}, "", ""},
	"spent tokens": {spent, contract.VerbBudget, contract.Message{BudgetLimits: contract.BudgetLimits{Tokens: 100}},
		"the budget would be spent: 100 of 100 tokens", ""},
	"negative tokens": {spent, contract.VerbBudget, contract.Message{BudgetLimits: contract.BudgetLimits{Tokens: -1}}, "a budget is negative", ""},
	"more calls":      {spent, contract.VerbBudget, contract.Message{BudgetLimits: contract.BudgetLimits{Calls: 2}}, "", ""},
	"spent calls": {spent, contract.VerbBudget, contract.Message{BudgetLimits: contract.BudgetLimits{Calls: 1}},
		"the budget would be spent: 1 of 1 call", ""},
	"negative calls": {spent, contract.VerbBudget, contract.Message{BudgetLimits: contract.BudgetLimits{Calls: -1}}, "a budget is negative", ""},
	"negative hours": {spent, contract.VerbBudget, contract.Message{BudgetLimits: contract.BudgetLimits{Hours: -1}}, "a budget is negative", ""},
	"deadline":       {spent, contract.VerbBudget, contract.Message{BudgetLimits: contract.BudgetLimits{Deadline: "2026-01-02T03:05:00Z"}}, "", ""},
	"word as deadline": {spent, contract.VerbBudget, contract.Message{BudgetLimits: contract.BudgetLimits{Deadline: "soon"}},
		`the deadline "soon" is not a time`, ""},
	"deadline that has passed": {spent, contract.VerbBudget, contract.Message{BudgetLimits: contract.BudgetLimits{Deadline: "2026-01-02T03:04:05Z"}},
		"the deadline 2026-01-02T03:04:05Z has passed", ""},
	"amend without a plan": {run.State{Status: run.Paused}, contract.VerbAmend, contract.Message{}, "the plan is missing", ""},
	"decide without a question": {run.State{Status: run.Running}, contract.VerbDecide, contract.Message{Action: "halt"},
		"the run is running: no question is open", run.Decide},
	"decide without feedback": {run.State{Status: run.AwaitingPhaseHandoff, Questions: openHandoff}, contract.VerbDecide,
		contract.Message{Action: run.ActionRetryFeedback, Feedback: "  "}, "needs feedback", ""},
	"decide in the run of another project": {run.State{Status: run.AwaitingPhaseHandoff, ThreadID: "root", RunID: "run-1",
		Questions: []run.Question{{Kind: run.QuestionHandoff, ID: "h", Actions: []string{run.ActionHalt},
			Project: &run.AskedBy{Alias: "lib", ID: "theirs"}}}}, contract.VerbDecide, contract.Message{Action: run.ActionHalt},
		`the question is one of project lib: decide it there, run "starter decide run-1/lib"`, ""},
	"decide": {run.State{Status: run.AwaitingPhaseHandoff, Questions: openHandoff}, contract.VerbDecide,
		contract.Message{Action: run.ActionHalt}, "", ""},
	"steer": {run.State{Status: run.Running}, contract.VerbSteer, contract.Message{Text: "x", Role: "builder"}, "", ""},
	"steer with nothing": {run.State{Status: run.Running}, contract.VerbSteer, contract.Message{Text: " \n"}, "the instruction is empty",
		""},
	"steer with too much": {run.State{Status: run.Running}, contract.VerbSteer, contract.Message{Text: strings.Repeat("x", 4097)},
		"the instruction has 4099 bytes as JSON; the maximum is 4096", ""},
	"steer another role": {run.State{Status: run.Running}, contract.VerbSteer, contract.Message{Text: "x", Role: "dancer"},
		`the pipeline has no role "dancer" from here on`, ""},
	"revert": {run.State{Status: run.Paused}, contract.VerbRevert, contract.Message{To: "cp-1"}, "", ""},
	"revert of a running run": {run.State{Status: run.Running}, contract.VerbRevert, contract.Message{To: "cp-1"}, "Pause it first",
		run.Revert},
	"revert to nowhere": {run.State{Status: run.Paused}, contract.VerbRevert, contract.Message{}, "the checkpoint is missing", ""},
	"amend to nothing": {run.State{Status: run.Paused}, contract.VerbAmend, contract.Message{Plan: &run.PlanRef{Plan: "p"}},
		"the plan is missing", ""},
	"amend": {run.State{Status: run.Paused}, contract.VerbAmend,
		contract.Message{Plan: &run.PlanRef{Plan: "p", Inputs: "i"}}, "", ""},
}

// TestMessagesByState: which messages a run accepts depends on its state as it is now, not as it is on disk.
func TestMessagesByState(t *testing.T) {
	for name, row := range messageRows {
		t.Run(name, func(t *testing.T) {
			e := loopIn(row.s)
			e.in.Target.Dir, e.in.Target.Store, e.in.Target.RunID, e.in.DirQueue = "/runs/1", "file:///s", "run-1", "here"
			e.in.Start.Stages = []run.StageRef{{Name: "build", Roles: []string{"builder"}}}
			err := e.handlers.validate(messageOf(row.verb), row.m)
			if row.text == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, row.text)
			c := ConflictFrom(err)
			if row.op == "" {
				require.Nil(t, c)
				return
			}
			require.Equal(t, row.op, c.Operation)
		})
	}
}

// TestMessagesHaveASize: each text of a message counts.
func TestMessagesHaveASize(t *testing.T) {
	c := loopIn(run.State{Status: run.Running}).handlers
	path := "/" + strings.Repeat("x", maxMessage-3)
	for _, set := range []func(m *contract.Message){
		func(m *contract.Message) { m.By = path }, func(m *contract.Message) { m.Note = path },
		func(m *contract.Message) { m.Feedback = path }, func(m *contract.Message) { m.Action = path },
		func(m *contract.Message) { m.ID = path }, func(m *contract.Message) { m.To = path }, func(m *contract.Message) { m.Reason = path },
		func(m *contract.Message) { m.Text = path }, func(m *contract.Message) { m.Role = path },
	} {
		m := contract.Message{By: "y", Note: "y"}
		set(&m)
		require.NotContains(t, fmt.Sprint(c.validate(messageOf(contract.VerbPause), m)), "the maximum is")
		m.By, m.Note = m.By+"y", m.Note+"y"
		require.ErrorContains(t, c.validate(messageOf(contract.VerbPause), m), "the maximum is 32768")
	}
	require.Equal(t, 8+4, encodedSize("<", "ab"), "with quotes, and escaped as JSON")
}

// TestPendingRequests: what was requested meanwhile counts too.
func TestPendingRequests(t *testing.T) {
	paused := run.State{Status: run.Paused}
	revert := &contract.PendingRevert{To: "cp-2"}
	for name, row := range map[string]struct {
		s       run.State
		pending contract.Control
		verb    string
		m       contract.Message
		text    string
	}{
		"a resume of a pause that has not begun": {run.State{Status: run.Running}, contract.Control{Pause: true},
			contract.VerbResume, contract.Message{}, ""},
		"a resume of a run that is reverted": {paused, contract.Control{Revert: revert}, contract.VerbResume, contract.Message{},
			"the run is being reverted to cp-2 and continues from there"},
		"an amendment of a run that is reverted": {paused, contract.Control{Revert: revert}, contract.VerbAmend,
			contract.Message{Plan: &run.PlanRef{Plan: "p", Inputs: "i"}}, "the run is being reverted to cp-2: send the message again"},
		"the same revert": {run.State{Status: run.Running}, contract.Control{Revert: revert}, contract.VerbRevert, contract.Message{To: "cp-2"}, ""},
		"another revert": {paused, contract.Control{Revert: revert}, contract.VerbRevert, contract.Message{To: "cp-3"},
			"the run is already being reverted to cp-2"},
		"a revert of a run that resumes": {paused, contract.Control{Resume: true}, contract.VerbRevert, contract.Message{To: "cp-3"},
			"the run is resuming: pause it first"},
	} {
		e := loopIn(row.s)
		e.inbox.asked = row.pending
		err := e.handlers.validate(messageOf(row.verb), row.m)
		if row.text == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, row.text, name)
	}
}

// TestRequestsForARetry: each message that lets a waiting run try again counts as one.
func TestRequestsForARetry(t *testing.T) {
	for name, row := range map[string]struct {
		s    run.State
		verb string
		m    contract.Message
		text string
	}{
		"resume":           {run.State{Status: run.Paused}, contract.VerbResume, contract.Message{}, "resuming"},
		"resume of a wait": {run.State{Status: run.WaitingLimit}, contract.VerbResume, contract.Message{}, "trying at once"},
		"revert":           {run.State{Status: run.Paused}, contract.VerbRevert, contract.Message{To: "cp-1"}, "reverting to cp-1"},
	} {
		e := loopIn(row.s)
		ack, err := messageOf(row.verb).apply(e.handlers, nil, row.m)
		require.NoError(t, err, name)
		require.Equal(t, row.text, ack.Message, name)
		require.Equal(t, 1, e.inbox.requests, name)
	}
}

// messageOf is the row of a message.
func messageOf(verb string) message {
	all := messages("run")
	return all[slices.IndexFunc(all, func(m message) bool { return m.verb == verb })]
}
