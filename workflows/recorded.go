package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
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

// effectClass returns the class of a step's side effects: changes and artifacts are writes, a command may do
// anything.
func (p *pass) effectClass() string {
	switch {
	case p.step.Kind == pipeline.KindRun:
		return run.EffectExternal
	case p.role.Gives == "report":
		return run.EffectRead
	}
	return run.EffectWrite
}

func (e *engine) replayPolicy() string {
	if s := e.replaySource(); s != nil {
		return s.Replay
	}
	return ""
}

// askPermission asks before a call of a replay whose policy requires it. false: do not make the call now.
func (p *pass) askPermission(ctx workflow.Context) (bool, error) {
	e := p.e
	if e.replayPolicy() != run.RequireHuman || e.permits[p.permitKey()] != "" {
		return true, nil
	}
	ask := run.QuestionRequested{
		Kind: run.QuestionGate,
		Question: fmt.Sprintf("May %s be called? approve calls it, apply takes the recorded answer, if there is one.",
			p.title()), Phase: e.round.Stage,
		Round: p.at.Round, Trigger: run.TriggerEffect, Digest: p.composed.Prompt.Digest,
		Deadlines: e.deadlines(ctx, nil),
		Artifacts: []run.Attached{{Name: "prompt", Digest: p.composed.Prompt.Digest}},
	}
	blocked := run.Effect{
		Step: p.step.Key, Call: p.nextCallID(), Class: p.effectClass(), Policy: run.RequireHuman, Status: "blocked",
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
