package workflows

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// askOperator runs a step that asks: it pauses the run until an operator decides. The decision determines where the run
// continues.
func (st *step) askOperator(ctx workflow.Context) error {
	judged, verdict := st.round.reviewSubject()
	if approves(st.state().Verdict) && st.AskType != "" && st.AskType != run.HandoffFeedbackAlways {
		st.skipAsk(ctx)
		return nil
	}
	req := run.QuestionRequested{
		Type: st.AskType, Trigger: triggerOf(verdict), Round: st.at.Round, Verdict: verdict, Digest: judged,
		LastOutput: judged,
		Deadlines:  st.questions.deadlines(ctx, st.Questions),
	}
	if st.AskType == "" {
		req.Type = run.HandoffFeedbackAlways
	}
	if approves(verdict) {
		yes := true
		req.Approved = &yes
	}
	if st.AskType == run.HandoffBypass && verdict != "" {
		req.Trigger = run.TriggerBypass
	}
	lead, err := st.round.askRoutes(ctx, st.at)
	if err != nil {
		return err
	}
	if lead.back == nil || st.AskType == run.HandoffBypass { // there is no step to redo, or none is to be
		req.Actions = slices.DeleteFunc(run.Offered(run.QuestionHandoff, req.Trigger),
			func(a string) bool { return a == run.ActionRetryFeedback })
	}
	if err := st.questions.askHandoff(ctx, st.Ask, req, lead); err != nil {
		return err
	}
	if d := st.state().Decided; st.state().Status != run.Running || d == nil || d.Action == run.ActionRetryFeedback {
		return nil
	}
	st.round.endRound(ctx, st.at)
	return nil
}

// skipAsk skips and journals a question that is only asked when the work was not approved.
func (st *step) skipAsk(ctx workflow.Context) {
	ev := run.StepSkipped{Step: st.Key, Why: "the last verdict approves the work", Next: st.round.nextPlace(st.at)}
	st.journal.emit(ctx, run.KindStepSkipped, st.round.Stage, ev)
	st.round.endRound(ctx, st.at)
}

// askGate pauses the run after a failed command or check until an operator decides. The run stays at the step:
// only a waiver leads past it.
func (st *step) askGate(ctx workflow.Context, p *call) error {
	ask := run.QuestionRequested{
		Kind: run.QuestionGate, Question: gateQuestion(p), Phase: st.round.Stage, Round: st.at.Round,
		Trigger: run.TriggerCheckFailed, Deadlines: st.questions.deadlines(ctx, p.step.Questions),
	}
	if r := p.result.Reply; r != nil {
		ask.Digest = r.Digest
		ask.Artifacts = append(ask.Artifacts, run.Attached{Name: "output", Digest: r.Digest})
	}
	if err := st.questions.ask(ctx, ask, routes{forward: st.round.nextPlace(st.at)}); err != nil {
		return err
	}
	if st.state().Status == run.Running && st.state().Next != st.at {
		st.round.endRound(ctx, st.at)
		return nil
	}
	return nil
}

func gateQuestion(p *call) string {
	if p.result.Unjudged {
		return unjudgedQuestion(p)
	}
	if p.step.Fresh != "" {
		return fmt.Sprintf("%s passes only in the workspace; in a fresh folder it failed with exit code %d. Continue?",
			oneLine(p.step.Run), p.result.ExitCode)
	}
	if p.step.Kind == pipeline.KindRun {
		return fmt.Sprintf("%s failed with exit code %d. Continue?", oneLine(p.step.Run), p.result.ExitCode)
	}
	failed := ""
	for _, c := range p.result.Validation.Checks {
		if !c.Passed {
			failed += " " + c.Name
		}
	}
	return fmt.Sprintf("The reply of %s failed its checks:%s. Continue?", p.role.Name, failed)
}

// unjudgedQuestion asks what to do with a step whose role returned no verdict, or no JSON that fits.
func unjudgedQuestion(p *call) string {
	what := "no verdict"
	if p.role.Schema != "" && !p.role.HasVerdict {
		what = "no JSON that fits " + p.role.Schema
	}
	return fmt.Sprintf("%s returned %s in %d attempts: %s. Continue without it?", p.role.Name, what, p.attempt,
		p.result.Message)
}
