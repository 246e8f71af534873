package workflows

import (
	"cmp"
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// deliveries delivers the work of the run.
type deliveries struct{ *execution }

// askPlanReview pauses the run for a review of its plan.
func (ds *deliveries) askPlanReview(ctx workflow.Context) error {
	lead, err := ds.round.redoRoutes(ctx)
	if err != nil {
		return err
	}
	judged, _ := ds.lastOutput()
	ask := run.QuestionRequested{
		Kind: run.QuestionReview, Question: fmt.Sprintf("The %s run is finished. Do you approve its result?",
			ds.in.Start.Kind), Phase: ds.state().Phase, Round: 1,
		Trigger: run.TriggerPlanReady, Digest: judged, Deadlines: ds.questions.deadlines(ctx, nil),
	}
	if judged != "" {
		ask.Artifacts = append(ask.Artifacts, run.Attached{Name: "result", Digest: judged})
	}
	return ds.questions.ask(ctx, ask, lead)
}

// deliveryPhase is the phase of delivery events.
const deliveryPhase = "delivery"

// deliver delivers the work as defined. Rejected work, and a target that changed meanwhile, need a decision first.
func (ds *deliveries) deliver(ctx workflow.Context) (*run.RunEnd, error) {
	verdict, action := ds.verdict(), ds.deliveryAction()
	override := ds.state().Markers.DeliveryOverride
	if ds.pushed() {
		return ds.follow(ctx, action)
	}
	if action == run.ActionSkip {
		return ds.skipDelivery(ctx, verdict, action)
	}
	in := ds.deliverInput(action)
	in.DryRun = true
	var found contract.DeliverResult
	if err := ds.checkout.run(ctx, "inspect the changes to deliver", contract.Deliver, same(&in), &found); err != nil {
		return nil, fmt.Errorf("inspect the changes to deliver: %w", err)
	}
	if s := ds.replaySource(); s != nil && s.Replay != run.Reexecute && found.Diff != nil && action == "" &&
		override == nil {
		return ds.deliverReplay(ctx, s, found)
	}
	switch {
	case found.Diff == nil:
		if v := ds.state().Judgement(); v.Word == "" && v.Approved == nil && ds.state().Judged == nil {
			verdict = v // nothing was changed, and no role was asked to judge it
		}
		return ds.completeDelivery(ctx, found, run.Delivery{Verdict: verdict})
	case verdict.Rejected() && override == nil:
		return nil, ds.askToDeliver(ctx, run.TriggerRejected, found,
			notApproved(verdict)+". What should happen to the changes?")
	case len(found.Definition) > 0 && override == nil:
		return nil, ds.askToDeliver(ctx, run.TriggerDefinition, found, "The changes include files that the next start "+
			"of the pipeline reads: "+strings.Join(found.Definition, ", ")+". What should happen to them?")
	}
	if of := ds.in.Start.MemberOf; of != nil {
		found.Reason = "the run across projects " + of.RunID + " delivers the changes"
		if override != nil {
			action = override.Action
		}
		return ds.completeDelivery(ctx, found, run.Delivery{Verdict: verdict, Diff: true, Action: action})
	}
	in.DryRun = false
	if in.Forge != nil { // the pull request has the evidence of the run
		if err := ds.journal.flush(ctx); err != nil {
			return nil, err
		}
	}
	var done contract.DeliverResult
	if err := ds.checkout.run(ctx, "deliver the changes", contract.Deliver, same(&in), &done); err != nil {
		return nil, fmt.Errorf("deliver the changes: %w", err)
	}
	if done.RetryAt != "" {
		ds.limited(ctx, done.RetryAt)
		return nil, nil
	}
	if !done.Delivered {
		return nil, ds.askToDeliver(ctx, run.TriggerDirtyTarget, done, done.Reason)
	}
	if override != nil {
		action = override.Action
	}
	return ds.completeDelivery(ctx, done, run.Delivery{Verdict: verdict, Diff: true, Action: action})
}

// deliverReplay does not repeat a delivery of the replayed run. If there was none, or the policy requires it, an
// operator decides.
func (ds *deliveries) deliverReplay(ctx workflow.Context, s *run.Source, found contract.DeliverResult) (*run.RunEnd, error) {
	ev := run.Effect{Step: deliveryPhase, Class: run.EffectExternal, Policy: s.Replay, Status: "blocked",
		Source: s.RunID}
	if s.Replay != run.UseRecorded || s.Delivered == nil || !s.Delivered.Delivered {
		ds.journal.emit(ctx, run.KindEffectBlocked, deliveryPhase, ev)
		return nil, ds.askToDeliver(ctx, run.TriggerEffect, found, "This run is a replay. Deliver its changes?")
	}
	ev.Status, ev.Result = "reused", s.Delivered.Commit
	ds.journal.emit(ctx, run.KindEffectReused, deliveryPhase, ev)
	found.Reason = "already delivered by the replayed run " + s.RunID
	return ds.completeDelivery(ctx, found, run.Delivery{Diff: true, Action: run.ActionSkip})
}

// deliveryAction returns the decision about the delivery, or "" if there is none or more work comes first.
func (ds *deliveries) deliveryAction() string {
	d := ds.state().Decided
	if d == nil || d.Kind != run.QuestionDelivery || d.Action == run.ActionFix {
		return ""
	}
	return d.Action
}

func (ds *deliveries) deliverInput(action string) contract.DeliverInput {
	if o := ds.state().Markers.DeliveryOverride; o != nil {
		action = o.Action
	}
	s := ds.in.Start
	w, pull := *s.Workspace, 0
	if f := ds.state().Forge; f != nil && f.Pull != nil {
		w.Base = cmp.Or(f.Pull.Tip, w.Base)
		if !f.Pull.Merged && !f.Pull.Closed {
			pull = f.Pull.Number
		}
	}
	return contract.DeliverInput{
		Forge: s.Forge, Pull: pull, Target: ds.in.Target, Workspace: w, Commit: ds.state().Commit, Tree: ds.state().Tree,
		PlanUse: ds.planUse(), Action: action,
		Message: fmt.Sprintf("%s\n\nPassbook-Run: %s\n", strings.TrimSpace(s.Task), ds.in.Target.RunID),
	}
}

func (ds *deliveries) askToDeliver(ctx workflow.Context, trigger string, found contract.DeliverResult,
	question string) error {
	lead, err := ds.round.redoRoutes(ctx)
	if err != nil {
		return err
	}
	ask := run.QuestionRequested{
		Kind: run.QuestionDelivery, Question: question, Phase: deliveryPhase, Round: 1, Trigger: trigger,
		Digest: found.Diff.Digest, Deadlines: ds.questions.deadlines(ctx, nil),
		Artifacts: []run.Attached{{Name: "diff", Digest: found.Diff.Digest}},
	}
	if d, _ := ds.lastOutput(); d != "" {
		ask.Artifacts = append(ask.Artifacts, run.Attached{Name: "last output", Digest: d})
	}
	return ds.questions.ask(ctx, ask, lead)
}

// skipDelivery ends a run whose changes an operator withholds: they stay on its branch and in its directory.
func (ds *deliveries) skipDelivery(ctx workflow.Context, verdict run.Verdict, action string) (*run.RunEnd, error) {
	in := ds.deliverInput(action)
	in.DryRun = true
	var found contract.DeliverResult
	if err := ds.checkout.run(ctx, "keep the changes", contract.Deliver, same(&in), &found); err != nil {
		return nil, fmt.Errorf("keep the changes: %w", err)
	}
	found.Reason = "an operator decided not to deliver"
	past := ds.state().Decisions
	if ds.state().Markers.DeliveryOverride != nil ||
		len(past) > 0 && past[len(past)-1].Trigger == run.TriggerDirtyTarget { // only the target kept it from its delivery
		verdict = run.Verdict{}
	}
	return ds.completeDelivery(ctx, found, run.Delivery{Verdict: verdict, Diff: found.Diff != nil, Action: action})
}

// completeDelivery journals the outcome of the delivery and returns how the run ends.
func (ds *deliveries) completeDelivery(ctx workflow.Context, res contract.DeliverResult,
	d run.Delivery) (*run.RunEnd, error) {
	ev := run.DeliveryCompleted{
		Action: d.Action, Delivered: res.Delivered, Commit: res.Commit, To: res.To, Target: res.Location,
		Files:   res.Files,
		Message: res.Reason, Pull: res.Pull, Branch: res.Branch,
	}
	if res.Diff != nil {
		ev.Diff = res.Diff.Digest
	}
	if q := ds.state().Decided; q != nil && q.Kind == run.QuestionDelivery {
		ev.ID = q.ID
	}
	if err := ds.questions.awaitResumed(ctx); err != nil {
		return nil, err
	}
	ds.journal.emit(ctx, run.KindDeliveryCompleted, deliveryPhase, ev)
	if ds.pushed() && ds.in.Start.Forge.After != nil {
		return nil, nil // it is followed
	}
	r := run.AfterDelivery(run.Done, d)
	return &run.RunEnd{Status: r.Status, Reason: r.Reason, Outcome: r.Outcome}, nil
}

// verdict returns the last review's verdict as it counts for the delivery: if roles return verdicts, all but an
// approval is a rejection.
func (ds *deliveries) verdict() run.Verdict {
	v := ds.state().Judgement()
	verdict := run.Verdict{Word: v.Word}
	if verdict.Rejected() || v.Approves() || v.Word == "" && v.Approved == nil && !ds.in.Start.Judged {
		return verdict
	}
	no := false
	return run.Verdict{Word: v.Word, Approved: &no}
}

// notApproved describes why changes are not delivered without a question.
func notApproved(v run.Verdict) string {
	switch {
	case v.Word == "":
		return "No verdict approves the current changes"
	case run.Verdict{Word: v.Word}.Rejected():
		return "The last verdict is " + v.Word
	}
	return "The last verdict is " + v.Word + ", which does not approve the changes"
}

// accepted reports whether an operator accepted the result of a plan in a hand-off: it is not asked about again.
func (ds *deliveries) accepted() bool {
	d := ds.state().Decided
	if d == nil || d.Kind != run.QuestionHandoff || d.Digest == "" ||
		d.Action != run.ActionContinue && d.Action != run.ActionContinueWithWaiver {
		return false
	}
	last, _ := ds.lastOutput()
	return d.Digest == last
}
