package workflows

import (
	"cmp"
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// replaySource returns the source of a replay, or nil.
func (e *engine) replaySource() *run.Source {
	if s := e.in.Start.Source; s != nil && s.Mode == run.ModeReplay {
		return s
	}
	return nil
}

// recordedRun returns the run whose results are reused, or "".
func (e *engine) recordedRun() (runID string, generations int) {
	s := e.replaySource()
	if s == nil || s.Replay == run.Reexecute {
		return "", 0
	}
	return s.RunID, s.Generation
}

// active reports whether the run makes progress, with its own calls or from a record.
func (e *engine) active() bool {
	s := e.j.state.Status
	return s == run.Running || s == run.Replaying
}

// startReplay journals that results are taken from a record.
func (e *engine) startReplay(ctx workflow.Context) error {
	if s := e.replaySource(); s == nil || s.Replay != run.UseRecorded {
		return nil
	}
	return e.j.emit(ctx, run.KindRunReplaying, "", run.Source{})
}

// leaveReplay journals the end of the recorded part, before the first call that no record answers.
func (e *engine) leaveReplay(ctx workflow.Context) error {
	if e.j.state.Status != run.Replaying {
		return nil
	}
	ev := run.RunResumed{Epoch: e.j.state.Epoch, From: run.Replaying}
	return e.j.emit(ctx, run.KindRunResumed, e.j.state.Phase, ev)
}

// journalReused journals a reused result.
func (p *pass) journalReused(ctx workflow.Context, res *contract.PassResult) error {
	if res.Source == "" {
		return nil
	}
	ev := run.Effect{
		Step: p.step.Key, Call: p.callID, Class: p.effectClass(), Policy: p.e.replayPolicy(), Status: "reused",
		Result: res.Source, USD: res.SourceUSD, Source: p.e.in.Start.Source.RunID,
	}
	return p.e.j.emit(ctx, run.KindEffectReused, p.e.round.Stage, ev)
}

// effectClass returns the class of a step's external effect, as declared or by its kind.
func (p *pass) effectClass() string { return cmp.Or(p.step.Effect, p.passRef().EffectClass()) }

// acts reports whether the step declares an external action. It is never executed a second time, or in a replay for the
// first time, without an operator.
func (p *pass) acts() bool { return p.step.Effect == run.EffectExternal }

func (e *engine) replayPolicy() string {
	if s := e.replaySource(); s != nil {
		return s.Replay
	}
	return ""
}

// needsPermission reports whether a call of a replay waits for an operator: each call of a step with an effect, if the
// policy requires it, and a declared external action without a recorded result.
func (p *pass) needsPermission() bool {
	if p.e.replaySource() == nil || p.e.permits[p.permitKey()] != "" {
		return false
	}
	return p.e.replayPolicy() == run.RequireHuman && p.step.Effect != run.EffectNone ||
		p.acts() && p.e.unrecorded[p.permitKey()]
}

// recordedOnly reports whether the call may only be answered from a record.
func (p *pass) recordedOnly() bool {
	if p.e.j.state.Status == run.Replaying {
		return true
	}
	policy := p.e.replayPolicy()
	return p.acts() && (policy == run.UseRecorded || policy == run.RequireHuman) &&
		p.e.permits[p.permitKey()] != run.ActionApprove
}

// withoutRecord continues after a call whose result is not recorded. ask: an operator decides before it is executed.
func (p *pass) withoutRecord(ctx workflow.Context) (ask bool, err error) {
	if err := p.e.leaveReplay(ctx); err != nil {
		return false, err
	}
	if err := p.e.j.flush(ctx); err != nil || !p.acts() { // the switch to live calls is on disk before the call
		return false, err
	}
	if p.e.unrecorded == nil {
		p.e.unrecorded = map[string]bool{}
	}
	p.e.unrecorded[p.permitKey()] = true
	delete(p.e.permits, p.permitKey())
	return true, nil
}

// askPermission asks before a call of a replay that needs it. false: do not make the call now.
func (p *pass) askPermission(ctx workflow.Context) (bool, error) {
	e := p.e
	if !p.needsPermission() {
		return true, nil
	}
	ask := run.QuestionRequested{
		Kind: run.QuestionGate, Question: p.permissionText(), Phase: e.round.Stage,
		Round: p.at.Round, Trigger: p.permissionTrigger(), Digest: p.composed.Prompt.Digest,
		Deadlines: e.deadlines(ctx, nil),
		Artifacts: []run.Attached{{Name: "prompt", Digest: p.composed.Prompt.Digest}},
	}
	blocked := run.Effect{
		Step: p.step.Key, Call: p.nextCallID(), Class: p.effectClass(), Policy: e.replayPolicy(), Status: "blocked",
		Source: e.replaySource().RunID,
	}
	if err := e.j.emit(ctx, run.KindEffectBlocked, e.round.Stage, blocked); err != nil {
		return false, err
	}
	e.permit = p.permitKey()
	defer func() { e.permit = "" }()
	if err := e.askQuestion(ctx, ask, routes{}); err != nil {
		return false, err
	}
	d := e.j.state.Decided
	if !e.active() || d == nil || d.Kind != run.QuestionGate {
		return false, nil
	}
	e.grant(p.permitKey(), d.Action)
	return true, nil
}

// permissionTrigger returns why an operator is asked before a call of a replay.
func (p *pass) permissionTrigger() string {
	switch {
	case p.e.unrecorded[p.permitKey()]:
		return run.TriggerUnrecorded
	case p.acts():
		return run.TriggerAction
	}
	return run.TriggerEffect
}

// permissionText asks whether a call of a replay may be made, with what that does.
func (p *pass) permissionText() string {
	switch p.permissionTrigger() {
	case run.TriggerUnrecorded:
		return fmt.Sprintf("%s is an external action, and the replayed run has no result of it. May this replay execute it?",
			p.title())
	case run.TriggerAction:
		return fmt.Sprintf("%s is an external action. May it be executed again? apply takes the recorded result, if there "+
			"is one.", p.title())
	}
	return fmt.Sprintf("May %s be called? approve calls it, apply takes the recorded answer, if there is one.", p.title())
}

func (e *engine) grant(permit, action string) {
	if e.permits == nil {
		e.permits = map[string]string{}
	}
	e.permits[permit] = action
}

// permitKey identifies a permission: the step, the round and the prompt.
func (p *pass) permitKey() string {
	return fmt.Sprintf("%s %d %s %s", p.step.Key, p.at.Round, p.member, p.composed.Prompt.Digest)
}
