package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/work"
)

// source is where a replay comes from; nil for every other run.
func (e *engine) source() *run.Source {
	if s := e.in.Start.Source; s != nil && s.Mode == run.ModeReplay {
		return s
	}
	return nil
}

// recorded is the run whose answers are taken; empty: none.
func (e *engine) recorded() (runID string, generations int) {
	s := e.source()
	if s == nil || s.Replay == run.Reexecute {
		return "", 0
	}
	return s.RunID, s.Generation
}

// live says that the run works: on its own, or from the record of another one.
func (e *engine) live() bool {
	s := e.j.state.Status
	return s == run.Running || s == run.Replaying
}

// replaying writes down that what follows is taken from a record.
func (e *engine) replaying(ctx workflow.Context) error {
	if s := e.source(); s == nil || s.Replay != run.UseRecorded {
		return nil
	}
	return e.j.emit(ctx, run.KindRunReplaying, "", run.Source{})
}

// leaveRecord writes down that the recorded part is over, before the first thing that no record answers.
func (e *engine) leaveRecord(ctx workflow.Context) error {
	if e.j.state.Status != run.Replaying {
		return nil
	}
	ev := run.RunResumed{Epoch: e.j.state.Epoch, From: run.Replaying}
	return e.j.emit(ctx, run.KindRunResumed, e.j.state.Phase, ev)
}

// reused writes down that an outside call was not made again.
func (p *pass) reused(ctx workflow.Context, res *work.PassResult) error {
	if res.Source == "" {
		return nil
	}
	ev := run.Effect{
		Step: p.step.Key, Call: p.id, Class: p.effect(), Policy: p.e.policy(), Status: "reused", Result: res.Source, USD: res.SourceUSD, Source: p.e.in.Start.Source.RunID,
	}
	return p.e.j.emit(ctx, run.KindEffectReused, p.e.round.Stage, ev)
}

// effect is the class of what a step does outside: a role that gives changes or an artifact writes, a command may do anything.
func (p *pass) effect() string {
	switch {
	case p.step.Kind == "run":
		return run.EffectExternal
	case p.role.Gives == "report":
		return run.EffectRead
	}
	return run.EffectWrite
}

func (e *engine) policy() string {
	if s := e.source(); s != nil {
		return s.Replay
	}
	return ""
}

// permitted asks a person before a call of a replay whose policy wants it. false: it is not to be made now.
func (p *pass) permitted(ctx workflow.Context) (bool, error) {
	e := p.e
	if e.policy() != run.RequireHuman || e.permits[p.permit()] != "" {
		return true, nil
	}
	ask := run.Asked{
		Question: fmt.Sprintf("May %s be called? approve calls it, apply takes the recorded answer, if there is one.", p.title()), Phase: e.round.Stage,
		Round: p.at.Round, Trigger: run.TriggerEffect, Digest: p.asked.Prompt.Digest, Patience: e.patience(ctx, nil),
		Artifacts: []run.Attached{{Name: "prompt", Digest: p.asked.Prompt.Digest}},
	}
	blocked := run.Effect{Step: p.step.Key, Call: p.nextCall(), Class: p.effect(), Policy: run.RequireHuman, Status: "blocked", Source: e.source().RunID}
	if err := e.j.emit(ctx, run.KindEffectBlocked, e.round.Stage, blocked); err != nil {
		return false, err
	}
	e.permit = p.permit()
	defer func() { e.permit = "" }()
	if err := e.askFor(ctx, run.QuestionGate, ask, places{}); err != nil {
		return false, err
	}
	d := e.j.state.Decided
	if !e.live() || d == nil || d.Type != string(run.QuestionGate) {
		return false, nil
	}
	e.allow(p.permit(), d.Action)
	return true, nil
}

func (e *engine) allow(permit, action string) {
	if e.permits == nil {
		e.permits = map[string]string{}
	}
	e.permits[permit] = action
}

// permit names what a permission is for: this step of this round, with this prompt.
func (p *pass) permit() string {
	return fmt.Sprintf("%s %d %s %s", p.step.Key, p.at.Round, p.member, p.asked.Prompt.Digest)
}
