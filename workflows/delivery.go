package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// finish does what follows the last stage: review of a plan or delivery of the work. It returns how the run ends,
// or nil if it continues.
func (e *engine) finish(ctx workflow.Context) (*run.RunEnd, error) {
	if err := e.leaveReplay(ctx); err != nil {
		return nil, err
	}
	if e.in.Start.Lane != nil {
		return e.finishLane(ctx)
	}
	s := e.j.state
	if len(s.Projects) > 0 {
		return e.finishProjects(ctx)
	}
	planOnly := pipeline.PlanOnly(e.in.Start.Kind)
	switch run.BeforeDelivery(s.Status == run.Halted, planOnly, s.Status == run.Done || planOnly && e.accepted()) {
	case run.Halted:
		return &run.RunEnd{Status: run.Halted, Reason: s.Reason}, nil
	case run.AwaitingHumanReview:
		return nil, e.askPlanReview(ctx)
	}
	if s.Status == run.Done || !e.in.Start.Delivers {
		return &run.RunEnd{Status: run.Done, Reason: s.Reason}, nil
	}
	return e.deliver(ctx)
}

// askPlanReview pauses the run for a review of its plan.
func (e *engine) askPlanReview(ctx workflow.Context) error {
	lead, err := e.redoRoutes(ctx)
	if err != nil {
		return err
	}
	judged, _ := e.lastOutput()
	ask := run.QuestionRequested{
		Kind: run.QuestionReview, Question: fmt.Sprintf("The %s run is finished. Do you approve its result?",
			e.in.Start.Kind), Phase: e.j.state.Phase, Round: 1,
		Trigger: run.TriggerPlanReady, Digest: judged, Deadlines: e.deadlines(ctx, nil),
	}
	if judged != "" {
		ask.Artifacts = append(ask.Artifacts, run.Attached{Name: "result", Digest: judged})
	}
	return e.askQuestion(ctx, ask, lead)
}

// lastOutput returns the last reply of the run, or its artifact.
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

// deliveryPhase is the phase of delivery events.
const deliveryPhase = "delivery"

// deliver delivers the work as defined. Rejected work, and a target that changed meanwhile, need a decision first.
func (e *engine) deliver(ctx workflow.Context) (*run.RunEnd, error) {
	verdict, action := e.verdict(), e.deliveryAction()
	override := e.j.state.Markers.DeliveryOverride
	if action == run.ActionSkip {
		return e.skipDelivery(ctx, verdict, action)
	}
	in := e.deliverInput(action)
	in.DryRun = true
	var found contract.DeliverResult
	if err := e.runCheckoutActivity(ctx, "inspect the changes to deliver", contract.Deliver, &in, &found); err != nil {
		return nil, fmt.Errorf("inspect the changes to deliver: %w", err)
	}
	if s := e.replaySource(); s != nil && s.Replay != run.Reexecute && found.Diff != nil && action == "" &&
		override == nil {
		return e.deliverReplay(ctx, s, found)
	}
	switch {
	case found.Diff == nil:
		return e.completeDelivery(ctx, found, run.Delivery{Verdict: verdict})
	case verdict.Rejected() && override == nil:
		return nil, e.askToDeliver(ctx, run.TriggerRejected, found,
			notApproved(verdict)+". What should happen to the changes?")
	case len(found.Definition) > 0 && override == nil:
		return nil, e.askToDeliver(ctx, run.TriggerDefinition, found, "The changes include files that the next start "+
			"of the pipeline reads: "+strings.Join(found.Definition, ", ")+". What should happen to them?")
	}
	if of := e.in.Start.MemberOf; of != nil {
		found.Reason = "the run across projects " + of.RunID + " delivers the changes"
		if override != nil {
			action = override.Action
		}
		return e.completeDelivery(ctx, found, run.Delivery{Verdict: verdict, Diff: true, Action: action})
	}
	in.DryRun = false
	var done contract.DeliverResult
	if err := e.runCheckoutActivity(ctx, "deliver the changes", contract.Deliver, &in, &done); err != nil {
		return nil, fmt.Errorf("deliver the changes: %w", err)
	}
	if !done.Delivered {
		return nil, e.askToDeliver(ctx, run.TriggerDirtyTarget, done, done.Reason)
	}
	if override != nil {
		action = override.Action
	}
	return e.completeDelivery(ctx, done, run.Delivery{Verdict: verdict, Diff: true, Action: action})
}

// deliverReplay does not repeat a delivery of the replayed run. If there was none, or the policy requires it, an
// operator decides.
func (e *engine) deliverReplay(ctx workflow.Context, s *run.Source, found contract.DeliverResult) (*run.RunEnd, error) {
	ev := run.Effect{Step: deliveryPhase, Class: run.EffectExternal, Policy: s.Replay, Status: "blocked",
		Source: s.RunID}
	if s.Replay != run.UseRecorded || s.Delivered == nil || !s.Delivered.Delivered {
		if err := e.j.emit(ctx, run.KindEffectBlocked, deliveryPhase, ev); err != nil {
			return nil, err
		}
		return nil, e.askToDeliver(ctx, run.TriggerEffect, found, "This run is a replay. Deliver its changes?")
	}
	ev.Status, ev.Result = "reused", s.Delivered.Commit
	if err := e.j.emit(ctx, run.KindEffectReused, deliveryPhase, ev); err != nil {
		return nil, err
	}
	found.Reason = "already delivered by the replayed run " + s.RunID
	return e.completeDelivery(ctx, found, run.Delivery{Diff: true, Action: run.ActionSkip})
}

// deliveryAction returns the decision about the delivery, or "" if there is none or more work comes first.
func (e *engine) deliveryAction() string {
	d := e.j.state.Decided
	if d == nil || d.Kind != run.QuestionDelivery || d.Action == run.ActionFix {
		return ""
	}
	return d.Action
}

func (e *engine) deliverInput(action string) contract.DeliverInput {
	if o := e.j.state.Markers.DeliveryOverride; o != nil {
		action = o.Action
	}
	s := e.in.Start
	return contract.DeliverInput{
		Target: e.in.Target, Workspace: *s.Workspace, Commit: e.j.state.Commit, Tree: e.j.state.Tree,
		PlanUse: e.planUse(), Action: action,
		Message: fmt.Sprintf("%s\n\nPassbook-Run: %s\n", strings.TrimSpace(s.Task), e.in.Target.RunID),
	}
}

func (e *engine) askToDeliver(ctx workflow.Context, trigger string, found contract.DeliverResult,
	question string) error {
	lead, err := e.redoRoutes(ctx)
	if err != nil {
		return err
	}
	ask := run.QuestionRequested{
		Kind: run.QuestionDelivery, Question: question, Phase: deliveryPhase, Round: 1, Trigger: trigger,
		Digest: found.Diff.Digest, Deadlines: e.deadlines(ctx, nil),
		Artifacts: []run.Attached{{Name: "diff", Digest: found.Diff.Digest}},
	}
	if d, _ := e.lastOutput(); d != "" {
		ask.Artifacts = append(ask.Artifacts, run.Attached{Name: "last output", Digest: d})
	}
	return e.askQuestion(ctx, ask, lead)
}

// skipDelivery ends a run whose changes an operator withholds: they stay on its branch and in its directory.
func (e *engine) skipDelivery(ctx workflow.Context, verdict run.Verdict, action string) (*run.RunEnd, error) {
	in := e.deliverInput(action)
	in.DryRun = true
	var found contract.DeliverResult
	if err := e.runCheckoutActivity(ctx, "keep the changes", contract.Deliver, &in, &found); err != nil {
		return nil, fmt.Errorf("keep the changes: %w", err)
	}
	found.Reason = "an operator decided not to deliver"
	past := e.j.state.Decisions
	if e.j.state.Markers.DeliveryOverride != nil ||
		len(past) > 0 && past[len(past)-1].Trigger == run.TriggerDirtyTarget { // only the target kept it from its delivery
		verdict = run.Verdict{}
	}
	return e.completeDelivery(ctx, found, run.Delivery{Verdict: verdict, Diff: found.Diff != nil, Action: action})
}

// completeDelivery journals the outcome of the delivery and returns how the run ends.
func (e *engine) completeDelivery(ctx workflow.Context, res contract.DeliverResult,
	d run.Delivery) (*run.RunEnd, error) {
	ev := run.DeliveryCompleted{
		Action: d.Action, Delivered: res.Delivered, Commit: res.Commit, To: res.To, Target: res.Location,
		Files:   res.Files,
		Message: res.Reason,
	}
	if res.Diff != nil {
		ev.Diff = res.Diff.Digest
	}
	if q := e.j.state.Decided; q != nil && q.Kind == run.QuestionDelivery {
		ev.ID = q.ID
	}
	if err := e.awaitResumed(ctx); err != nil {
		return nil, err
	}
	if err := e.j.emit(ctx, run.KindDeliveryCompleted, deliveryPhase, ev); err != nil {
		return nil, err
	}
	r := run.AfterDelivery(run.Done, d)
	return &run.RunEnd{Status: r.Status, Reason: r.Reason, Outcome: r.Outcome}, nil
}
