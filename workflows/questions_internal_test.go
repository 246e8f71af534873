package workflows

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// TestNextReminder: reminders come at fixed times after the question, until it expires.
func TestNextReminder(t *testing.T) {
	asked := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	at := func(hours float64) time.Time { return asked.Add(time.Duration(hours * float64(time.Hour))) }
	for name, row := range map[string]struct {
		remind, expires float64 // hours; 0: never
		reminded        int
		last            float64 // when the question was last spoken of
		due             float64 // 0: never
		expired         bool
	}{
		"the first":                   {2, 0, 0, 0, 2, false},
		"the second":                  {2, 0, 1, 2, 4, false},
		"after an outage":             {2, 0, 1, 7, 8, false},
		"before the expiry":           {2, 5, 2, 3, 4, false},
		"the expiry":                  {2, 5, 2, 4, 5, true},
		"both at once":                {2, 4, 1, 2, 4, true},
		"after the expiry":            {2, 5, 3, 5, 6, false},
		"no reminder":                 {0, 5, 0, 0, 5, true},
		"neither":                     {0, 0, 0, 0, 0, false},
		"as many as there may be":     {2, 0, 99, 198, 200, false},
		"more than there may be":      {2, 0, 100, 200, 0, false},
		"the expiry after all others": {2, 300, 100, 200, 300, true},
	} {
		q := run.Question{RequestedAt: run.Time(asked), Reminded: row.reminded}
		q.RemindMS = int64(row.remind * 3_600_000)
		if row.expires > 0 {
			q.ExpiresAt = run.Time(at(row.expires))
		}
		want := time.Time{}
		if row.due > 0 {
			want = at(row.due)
		}
		due, expired := nextDue(q, at(row.last))
		require.Equal(t, want, due, name)
		require.Equal(t, row.expired, expired, name)
	}
	e := loopIn(run.State{})
	q := run.Question{RequestedAt: run.Time(asked)}
	require.Equal(t, asked, e.questions.besideSince(q))
	e.questions.reminded = run.Time(at(3))
	require.Equal(t, at(3), e.questions.besideSince(q))
	require.True(t, loopIn(run.State{}).questions.besideSince(run.Question{}).IsZero())
}

// TestGates: when a step asks whether the run continues, and what it asks.
func TestGates(t *testing.T) {
	command := contract.Step{PlanStep: pipeline.PlanStep{Kind: pipeline.KindRun, Run: "make test\nmake lint",
		IfFailing: "ask"}}
	role := contract.Step{PlanStep: pipeline.PlanStep{Kind: pipeline.KindRole, IfFailing: "ask"}}
	free := contract.Step{PlanStep: pipeline.PlanStep{Kind: pipeline.KindRole}}
	ok := func(change func(r *contract.PassResult)) *contract.PassResult {
		r := &contract.PassResult{Reading: run.Reading{Outcome: run.CategoryOK, Validation: run.Validation{Passed: true}}, Value: "ok"}
		change(r)
		return r
	}
	unchecked := func(r *contract.PassResult) {
		r.Validation = run.Validation{Checks: []run.Check{{Name: "a"}, {Name: "b", Passed: true}, {Name: "c"}}}
	}
	unjudged := func(r *contract.PassResult) { r.Unjudged, r.Message = true, "the reply has no verdict" }
	failed := func(r *contract.PassResult) { r.Value, r.ExitCode = "failed", 2 }
	for name, row := range map[string]struct {
		step   contract.Step
		member string
		result *contract.PassResult
		want   string // empty: it does not ask
	}{
		"ok":               {command, "", ok(func(*contract.PassResult) {}), ""},
		"no result":        {command, "", nil, ""},
		"a failed command": {command, "", ok(failed), "make test… failed with exit code 2. Continue?"},
		"another outcome": {command, "", ok(func(r *contract.PassResult) {
			r.Outcome,
				r.ExitCode = run.CategoryUnknown, 1
		}), "make test… failed with exit code 1. Continue?"},
		"a command has no checks": {command, "", ok(unchecked), ""},
		"failed checks":           {role, "", ok(unchecked), "The reply of reader failed its checks: a c. Continue?"},
		"failed checks, no gate":  {free, "", ok(unchecked), ""},
		"no verdict": {free, "", ok(unjudged),
			"reader returned no verdict in 2 attempts: the reply has no verdict. Continue without it?"},
		"a member without verdict": {free, "m", ok(unjudged), ""},
	} {
		p := passOf(loopIn(run.State{}), row.step, contract.Role{Name: "reader"}, row.member)
		p.result, p.attempt = row.result, 2
		require.Equal(t, row.want != "", p.needsDecision(), name)
		if row.want != "" {
			require.Equal(t, row.want, gateQuestion(p), name)
		}
	}
}

// TestRoutesOfAnswers: where an answer leads depends on what it does.
func TestRoutesOfAnswers(t *testing.T) {
	forward, back := &run.Place{Step: 2}, &run.Place{Step: 1}
	handoff, gate := run.Question{Kind: run.QuestionHandoff}, run.Question{Kind: run.QuestionGate}
	for name, row := range map[string]struct {
		kind   pipeline.StageKind
		q      run.Question
		action string
		next   *run.Place
		redo   string
	}{
		"continue": {"", handoff, run.ActionContinue, forward, ""}, "feedback": {"", handoff, run.ActionRetryFeedback,
			back, "x"},
		"halt": {"", handoff, run.ActionHalt, nil, ""}, "retry": {"", gate, run.ActionRetry, nil, run.RedoStep},
		"waiver": {"", gate, run.ActionContinueWithWaiver, forward, ""},
		"a lane": {pipeline.StageLanes, run.Question{Kind: run.QuestionGate, Of: run.LaneCheck}, run.ActionContinueWithWaiver, nil, ""},
		"blocked projects": {"", run.Question{Kind: run.QuestionGate, Trigger: run.TriggerBlocked}, run.ActionRetry,
			nil, ""},
	} {
		e := loopIn(run.State{})
		e.round.Kind, e.questions.routes = row.kind, routes{forward: forward, back: back, redo: "x"}
		next, redo := e.questions.route(row.q, row.action)
		require.Equal(t, row.next, next, name)
		require.Equal(t, row.redo, redo, name)
	}
	expires := func(q run.Question, onExpiry string) string { q.OnExpiry = onExpiry; return expiryAction(q) }
	asked := run.Question{Kind: run.QuestionHandoff, Trigger: run.TriggerAsked, Actions: []string{"continue", "halt"}}
	require.Equal(t, []string{"continue", "halt"}, []string{expires(asked, "continue"), expires(asked, "halt")})
	asked.Actions = []string{"halt"}
	require.Equal(t, "halt", expires(asked, "continue"), "it is not offered")
}

// TestSubjectOfAHandoff: the last reply of the phase, or the artifact.
func TestSubjectOfAHandoff(t *testing.T) {
	reply := func(phase, digest string) run.Reply {
		return run.Reply{Phase: phase, Role: "role of " + digest, Reply: run.Blob{Digest: digest}}
	}
	for name, row := range map[string]struct {
		s                  run.State
		digest, last, role string
	}{
		"a reply": {run.State{Replies: []run.Reply{reply("work", "a"), reply("work", "b"), reply("plan", "c")},
			Artifact: &run.Blob{Digest: "page"}}, "b", "c", "role of c"},
		"the artifact": {run.State{Replies: []run.Reply{reply("plan", "c")}, Artifact: &run.Blob{Digest: "page"}},
			"page", "c",
			"role of c"},
		"only an artifact": {run.State{Artifact: &run.Blob{Digest: "page"}}, "page", "page", ""},
		"neither":          {run.State{}, "", "", ""},
	} {
		row.s.Phase = "work"
		row.s.Judged = &run.Judged{Word: "rejected", Phase: "work"}
		e := loopIn(row.s)
		e.round.Stage = "work"
		digest, verdict := e.round.reviewSubject()
		last, role := e.lastOutput()
		require.Equal(t, []string{row.digest, "rejected", row.last, row.role}, []string{digest, verdict, last, role},
			name)
	}
	for verdict, trigger := range map[string]string{"": "asked", " Approved ": "approved",
		"scope-expansion": "scope_expansion",
		"INCOMPLETE":      "incomplete", "bad": "rejected"} {
		require.Equal(t, trigger, triggerOf(verdict))
	}
	for v, text := range map[string]string{"": "No verdict approves the current changes",
		"rejected": "The last verdict is rejected",
		"meh":      "The last verdict is meh, which does not approve the changes"} {
		require.Equal(t, text, notApproved(run.Verdict{Word: v}))
	}
}

// TestDeliveryDecision: a fix is work that comes first.
func TestDeliveryDecision(t *testing.T) {
	decided := func(kind run.QuestionKind, action string) *run.Decided {
		return &run.Decided{Kind: kind, Action: action}
	}
	for name, row := range map[string]struct {
		d    *run.Decided
		want string
	}{"none": {nil, ""}, "skip": {decided(run.QuestionDelivery, run.ActionSkip), run.ActionSkip},
		"fix":              {decided(run.QuestionDelivery, run.ActionFix), ""},
		"another question": {decided(run.QuestionGate, run.ActionHalt), ""}} {
		require.Equal(t, row.want, loopIn(run.State{Decided: row.d}).deliveries.deliveryAction(), name)
	}
	e := loopIn(run.State{Commit: "head", Markers: run.Markers{DeliveryOverride: &run.Override{Action: "apply"}}})
	e.in.Start.Workspace, e.in.Start.Task, e.in.Target.RunID = &run.Workspace{Branch: "b"}, " Do it\n", "run-1"
	in := e.deliveries.deliverInput("retry")
	require.Equal(t, "apply", in.Action)
	require.Equal(t, "head", in.Commit)
	require.Equal(t, run.Workspace{Branch: "b"}, in.Workspace)
	require.Equal(t, "Do it\n\nPassbook-Run: run-1\n", in.Message)
	require.False(t, in.DryRun)
	e.journal.now.Markers.DeliveryOverride = nil
	require.Equal(t, "retry", e.deliveries.deliverInput("retry").Action)
}

// TestAmendedMessage: when an amendment counts.
func TestAmendedMessage(t *testing.T) {
	waits := func(kind run.LimitKind) run.State {
		return run.State{Status: run.WaitingLimit, Limited: run.NewLimited([]run.LimitedCall{{Until: "noon",
			Limit: run.Limit{Kind: kind}}})}
	}
	for want, s := range map[string]run.State{
		"amended; in force for the next call, which waits for its turn": waits(run.LimitAtOnce),
		"amended; in force for the next call. The run still waits until noon; to try at once, run " +
			`"starter resume r1 --now"`: waits(
			run.LimitPlan),
		"amended; in force when the running step has completed or begins again": {Status: run.Running,
			Plan: &run.CurrentPlan{}},
		"amended; in force for the next step": {Status: run.Running,
			Plan: &run.CurrentPlan{From: &run.Place{}}},
	} {
		require.Equal(t, want, amendedMessage(s, "r1"))
	}
}

// TestConflictIsReadBack: the details of a refusal have the operations that are allowed.
func TestConflictIsReadBack(t *testing.T) {
	err := conflict(run.State{Status: run.Running}, run.Resume, "the run is %s", "running")
	c := ConflictFrom(err)
	require.NotNil(t, c)
	require.Equal(t, run.Resume, c.Operation)
	require.Contains(t, c.Allowed, run.Pause)
	for _, other := range []error{refuse("no"), unmet("no"), temporal.NewApplicationError("no", "x",
		run.ConflictError{}), nil} {
		require.Nil(t, ConflictFrom(other))
	}
}

// TestSearchAttributesOfARun: a server that accepts the query knows all of them, with their types.
func TestSearchAttributesOfARun(t *testing.T) {
	require.Equal(t,
		"PassbookCostUSD = 0 AND PassbookPipeline = 'no' AND PassbookRFCStatus = 'no' AND PassbookScore = 0 AND PassbookSource = 'no' AND "+
			"PassbookStage = 'no' AND PassbookStatus = 'no' AND PassbookThread = 'no'", SearchAttributesQuery())
	require.Equal(t, enumspb.INDEXED_VALUE_TYPE_DOUBLE, SearchAttributes()["PassbookScore"])
	start := run.RunStart{Pipeline: "small", ThreadID: "root"}
	for source, of := range map[string]*run.Source{"": nil, "their-run": {RunID: "their-run", Mode: run.ModeFork}} {
		start.Source = of
		a := InitialSearchAttributes(contract.Input{Start: start, Options: contract.Options{RFCStatus: true}})
		pipelineName, _ := a.GetKeyword(attrPipeline)
		thread, _ := a.GetKeyword(attrThread)
		from, _ := a.GetKeyword(attrSource)
		require.Equal(t, []string{"small", "root", source, "pending"}, []string{pipelineName, thread, from,
			string(StatusFromAttributes(a))})
		rfc, _ := a.GetKeyword(attrRFCStatus)
		require.Equal(t, "pending", rfc)
	}
	one, same, other := 1.0, 1.0, 2.0
	require.Equal(t, []bool{true, true, false, false, false}, []bool{sameScore(nil, nil), sameScore(&one, &same),
		sameScore(&one, nil), sameScore(nil, &one), sameScore(&one, &other)})
}

// TestOfferedActions: those of the open question, or all of a hand-off.
func TestOfferedActions(t *testing.T) {
	asks := func(actions ...string) run.State {
		return run.State{Status: run.AwaitingPhaseHandoff, Questions: []run.Question{{Kind: run.QuestionHandoff, ID: "h",
			Actions: actions}}}
	}
	require.Equal(t, []string{run.ActionHalt}, allowedActions(asks(run.ActionHalt)))
	require.Len(t, allowedActions(asks()), 4)
	require.Len(t, allowedActions(run.State{}), 4)
}

// TestDecisionNamesItsQuestion: a message without an id answers the open question implicitly.
func TestDecisionNamesItsQuestion(t *testing.T) {
	q := run.Question{ID: "q-1", Kind: run.QuestionGate}
	for name, row := range map[string]struct {
		m        contract.Message
		implicit bool
	}{
		"an id": {contract.Message{ID: "q-1"}, false}, "no id": {contract.Message{Reason: "why"}, true},
		"an id that was found": {contract.Message{ID: "q-1", Implicit: true}, true},
	} {
		e := loopIn(run.State{Seq: 6})
		inside(t, func(ctx workflow.Context) error {
			d := e.questions.decisionEvent(ctx, q, row.m)
			require.Equal(t, "q-1", d.ID, name)
			require.Equal(t, "q-1#7", d.DecisionID, name)
			require.Equal(t, row.implicit, d.Implicit, name)
			return nil
		})
	}
}

// TestAcceptedPlan: only a hand-off that continues accepts the output that it was about.
func TestAcceptedPlan(t *testing.T) {
	handoff := func(action, digest string) *run.Decided {
		return &run.Decided{Kind: run.QuestionHandoff, Action: action, Digest: digest}
	}
	for name, row := range map[string]struct {
		decided *run.Decided
		want    bool
	}{
		"continue":       {handoff(run.ActionContinue, "plan"), true},
		"a waiver":       {handoff(run.ActionContinueWithWaiver, "plan"), true},
		"another answer": {handoff(run.ActionHalt, "plan"), false},
		"another output": {handoff(run.ActionContinue, "other"), false},
		"no output":      {handoff(run.ActionContinue, ""), false},
		"no decision":    {nil, false},
		"a gate":         {&run.Decided{Kind: run.QuestionGate, Action: run.ActionContinue, Digest: "plan"}, false},
	} {
		e := loopIn(run.State{Decided: row.decided, Artifact: &run.Blob{Digest: "plan"}})
		require.Equal(t, row.want, e.deliveries.accepted(), name)
	}
}

// TestQuestionOfAGate: about the step, in its stage and round.
func TestQuestionOfAGate(t *testing.T) {
	e := loopIn(run.State{Status: run.Running, Phase: "work", PhaseOpen: true})
	e.round.Stage, e.round.Title = "work", "Work"
	p := passOf(e, testStep, contract.Role{}, "")
	p.at.Round = 3
	p.result = &contract.PassResult{ExitCode: 2, Reply: &run.Blob{Digest: "output", Size: 9}}
	away := func(contract.ProjectInput) (contract.ProjectResult, error) {
		return contract.ProjectResult{}, temporal.NewNonRetryableApplicationError("it is elsewhere", contract.ErrNewer, nil)
	}
	withWorkflow(t, map[string]any{contract.Project: away}, func(ctx workflow.Context) error {
		e.journal.mu = workflow.NewMutex(ctx)
		var stale *temporal.ApplicationError
		require.ErrorAs(t, p.askGate(ctx, p), &stale)
		require.Equal(t, contract.ErrNewer, stale.Type())
		return nil
	})
	ask := run.PayloadOf[run.QuestionRequested](e.journal.pending[0])
	require.Equal(t, run.QuestionGate.Spec().Requested, e.journal.pending[0].Kind)
	require.Equal(t, "work", ask.Phase)
	require.Equal(t, 3, ask.Round)
	require.Equal(t, run.TriggerCheckFailed, ask.Trigger)
	require.Equal(t, "output", ask.Digest)
	require.Equal(t, []run.Attached{{Name: "output", Digest: "output"}}, ask.Artifacts)
}
