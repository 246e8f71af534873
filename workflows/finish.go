package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/work"
)

// finish is what follows the last stage: a person's review of a plan, or the delivery of the work. It gives how the run is to end; nil: it goes on.
func (e *engine) finish(ctx workflow.Context) (*run.RunEnd, error) {
	if err := e.leaveRecord(ctx); err != nil {
		return nil, err
	}
	s := e.j.state
	planOnly := pipeline.PlanOnly(e.in.Start.Kind)
	switch run.BeforeDelivery(s.Status == run.Halted, planOnly, s.Status == run.Done || planOnly && e.accepted(ctx)) {
	case run.Halted:
		return &run.RunEnd{Status: run.Halted, Reason: s.Reason}, nil
	case run.AwaitingHumanReview:
		return nil, e.reviewPlan(ctx)
	}
	if s.Status == run.Done || !e.in.Start.Delivers {
		return &run.RunEnd{Status: run.Done, Reason: s.Reason}, nil
	}
	return e.deliver(ctx)
}

// reviewPlan rests the run for a person to review what it has planned.
func (e *engine) reviewPlan(ctx workflow.Context) error {
	lead, err := e.lastPlace(ctx)
	if err != nil {
		return err
	}
	judged, _ := e.lastOutput()
	ask := run.Asked{
		Question: fmt.Sprintf("The %s run is through. Is its result good?", e.in.Start.Kind), Phase: e.j.state.Phase, Round: 1,
		Trigger: run.TriggerPlanReady, Digest: judged, Patience: e.patience(ctx, nil),
	}
	if judged != "" {
		ask.Artifacts = append(ask.Artifacts, run.Attached{Name: "result", Digest: judged})
	}
	return e.askFor(ctx, run.QuestionReview, ask, lead)
}

// lastOutput is the last reply of the run, or its artifact.
func (e *engine) lastOutput() (digest, role string) {
	s := e.j.state
	if n := len(s.Replies); n > 0 {
		return s.Replies[n-1].Reply.Digest, s.Replies[n-1].Role
	}
	if s.Artifact != nil {
		return s.Artifact.Digest, ""
	}
	return "", ""
}

// lastPlace is where a round more begins: the last place of the plan at which a role is asked, or, where changes are delivered, the last one
// that changes anything, so that what follows judges it again. A round of a loop is done as a whole, and only of the last one: no earlier loop's
// rounds are counted any more.
func (e *engine) lastPlace(ctx workflow.Context) (places, error) {
	var last places
	for stage := len(e.in.Start.Stages) - 1; stage >= 0; stage-- {
		at := run.Place{Stage: stage, Round: 1}
		if err := e.read(ctx, at); err != nil {
			return places{}, err
		}
		if e.round.Rounds > 1 {
			at.Round = e.round.Rounds
			if err := e.read(ctx, at); err != nil {
				return places{}, err
			}
		}
		step, works, ok := e.lastCall(e.round.Steps)
		if !ok || last.again != nil && e.repeats() {
			continue
		}
		at.Step = step
		lead := places{again: &at, redo: run.RedoStep}
		if e.repeats() {
			at, lead.redo = run.Place{Stage: stage, Round: e.j.state.Round + 1}, run.RedoRound
		}
		if works || !e.in.Start.Delivers {
			return lead, nil
		}
		if last.again == nil {
			last = lead
		}
	}
	return last, nil
}

// delivering is the phase under which deliveries are journaled.
const delivering = "delivery"

// deliver brings the work to where the definition wants it. Rejected work, and a target that was changed meanwhile, are a person's decision first.
func (e *engine) deliver(ctx workflow.Context) (*run.RunEnd, error) {
	verdict, action := e.verdict(ctx), e.deliveryAction()
	override := e.j.state.Markers.DeliveryOverride
	if action == run.ActionSkip {
		return e.undelivered(ctx, verdict, action)
	}
	in := e.delivery(action)
	in.Look = true
	var found work.DeliverResult
	if err := e.onTree(ctx, "look at what is to be delivered", work.Deliver, &in, &found); err != nil {
		return nil, fmt.Errorf("look at what is to be delivered: %w", err)
	}
	if s := e.source(); s != nil && s.Replay != run.Reexecute && found.Diff != nil && action == "" && override == nil {
		return e.deliverOnce(ctx, s, found)
	}
	switch {
	case found.Diff == nil:
		return e.ended(ctx, found, run.Delivery{Verdict: verdict})
	case verdict.Rejected() && override == nil:
		return nil, e.askToDeliver(ctx, run.TriggerRejected, found, notApproved(verdict)+". What is to become of the changes?")
	}
	in.Look = false
	var done work.DeliverResult
	if err := e.onTree(ctx, "deliver the changes", work.Deliver, &in, &done); err != nil {
		return nil, fmt.Errorf("deliver the changes: %w", err)
	}
	if !done.Delivered {
		return nil, e.askToDeliver(ctx, run.TriggerDirtyTarget, done, done.Why)
	}
	if override != nil {
		action = override.Action
	}
	return e.ended(ctx, done, run.Delivery{Verdict: verdict, Diff: true, Action: action})
}

// deliverOnce does not repeat what the source of a replay has delivered; where it has delivered nothing, or the policy wants it, a person decides.
func (e *engine) deliverOnce(ctx workflow.Context, s *run.Source, found work.DeliverResult) (*run.RunEnd, error) {
	ev := run.Effect{Step: delivering, Class: run.EffectExternal, Policy: s.Replay, Status: "blocked", Source: s.RunID}
	if s.Replay != run.UseRecorded || s.Delivered == nil || !s.Delivered.Delivered {
		if err := e.j.emit(ctx, run.KindEffectBlocked, delivering, ev); err != nil {
			return nil, err
		}
		return nil, e.askToDeliver(ctx, run.TriggerEffect, found, "This is a replay. Are its changes to be delivered?")
	}
	ev.Status, ev.Result = "reused", s.Delivered.Commit
	if err := e.j.emit(ctx, run.KindEffectReused, delivering, ev); err != nil {
		return nil, err
	}
	found.Why = "run " + s.RunID + ", which this one replays, has delivered it"
	return e.ended(ctx, found, run.Delivery{Diff: true, Action: run.ActionSkip})
}

// deliveryAction is what was decided about the delivery; empty: nothing, or that more is to be done first.
func (e *engine) deliveryAction() string {
	d := e.j.state.Decided
	if d == nil || d.Type != string(run.QuestionDelivery) || d.Action == run.ActionFix {
		return ""
	}
	return d.Action
}

func (e *engine) delivery(action string) work.DeliverInput {
	if o := e.j.state.Markers.DeliveryOverride; o != nil {
		action = o.Action
	}
	s := e.in.Start
	return work.DeliverInput{
		Target: e.in.Target, Workspace: *s.Workspace, Commit: e.j.state.Commit, Plan: s.Plan, Action: action,
		Message: fmt.Sprintf("%s\n\nPassbook-Run: %s\n", strings.TrimSpace(s.Task), e.in.Target.RunID),
	}
}

func (e *engine) askToDeliver(ctx workflow.Context, trigger string, found work.DeliverResult, question string) error {
	lead, err := e.lastPlace(ctx)
	if err != nil {
		return err
	}
	ask := run.Asked{
		Question: question, Phase: delivering, Round: 1, Trigger: trigger, Digest: found.Diff.Digest, Patience: e.patience(ctx, nil),
		Artifacts: []run.Attached{{Name: "diff", Digest: found.Diff.Digest}},
	}
	if d, _ := e.lastOutput(); d != "" {
		ask.Artifacts = append(ask.Artifacts, run.Attached{Name: "last output", Digest: d})
	}
	return e.askFor(ctx, run.QuestionDelivery, ask, lead)
}

// undelivered ends a run whose changes an operator keeps back: they stay on the run's branch, and in its directory.
func (e *engine) undelivered(ctx workflow.Context, verdict run.Verdict, action string) (*run.RunEnd, error) {
	in := e.delivery(action)
	in.Look = true
	var found work.DeliverResult
	if err := e.onTree(ctx, "keep the changes", work.Deliver, &in, &found); err != nil {
		return nil, fmt.Errorf("keep the changes: %w", err)
	}
	found.Why = "an operator decided not to deliver"
	if e.j.state.Markers.DeliveryOverride != nil {
		verdict = run.Verdict{}
	}
	return e.ended(ctx, found, run.Delivery{Verdict: verdict, Diff: found.Diff != nil, Action: action})
}

// ended writes down what became of the delivery, and says how the run ends.
func (e *engine) ended(ctx workflow.Context, res work.DeliverResult, d run.Delivery) (*run.RunEnd, error) {
	ev := run.DeliveryCompleted{Action: d.Action, Delivered: res.Delivered, Commit: res.Commit, To: res.To, Target: res.Where, Files: res.Files, Message: res.Why}
	if res.Diff != nil {
		ev.Diff = res.Diff.Digest
	}
	if q := e.j.state.Decided; q != nil && q.Type == string(run.QuestionDelivery) {
		ev.ID = q.ID
	}
	if err := e.rested(ctx); err != nil {
		return nil, err
	}
	if err := e.j.emit(ctx, run.KindDeliveryCompleted, delivering, ev); err != nil {
		return nil, err
	}
	r := run.AfterDelivery(run.Done, d)
	return &run.RunEnd{Status: r.Status, Reason: r.Reason, Outcome: outcomeOf(ctx, r.Outcome)}, nil
}

// outcomeOf is the outcome that a run journals. The two for a run without a diff once stood for each other: an execution that journaled one of them
// then, and is replayed, says the same again.
func outcomeOf(ctx workflow.Context, o run.Outcome) run.Outcome {
	noDiff := o == run.OutcomeNoOp || o == run.OutcomeNoChange
	if !noDiff || workflow.GetVersion(ctx, "no-diff outcome", workflow.DefaultVersion, 1) != workflow.DefaultVersion {
		return o
	}
	if o == run.OutcomeNoOp {
		return run.OutcomeNoChange
	}
	return run.OutcomeNoOp
}
