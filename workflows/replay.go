package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// replaySource returns the source of a replay, or nil.
func (x *execution) replaySource() *run.Source {
	if s := x.in.Start.Source; s != nil && s.Mode == run.ModeReplay {
		return s
	}
	return nil
}

// recordedRun returns the run whose results are reused, or "".
func (x *execution) recordedRun() (runID string, generations int) {
	s := x.replaySource()
	if s == nil || s.Replay == run.Reexecute {
		return "", 0
	}
	return s.RunID, s.Generation
}

// startReplay journals that results are taken from a record.
func (x *execution) startReplay(ctx workflow.Context) {
	if s := x.replaySource(); s == nil || s.Replay != run.UseRecorded {
		return
	}
	x.journal.emit(ctx, run.KindRunReplaying, "", run.Source{})
}

// leaveReplay journals the end of the recorded part, before the first call that no record answers.
func (x *execution) leaveReplay(ctx workflow.Context) {
	if x.state().Status != run.Replaying {
		return
	}
	ev := run.RunResumed{Epoch: x.state().Epoch, From: run.Replaying}
	x.journal.emit(ctx, run.KindRunResumed, x.state().Phase, ev)
}

func (x *execution) replayPolicy() string {
	if s := x.replaySource(); s != nil {
		return s.Replay
	}
	return ""
}

// replay is what operators have permitted a replay to do.
type replay struct {
	permits    map[string]string // actions, by [permission.key]
	unrecorded map[string]bool   // external actions without a recorded result, by the same key
	asking     string            // key that the open question is about
}

func (rp *replay) load(s *contract.Snapshot) { rp.permits = s.Permits }

func (rp *replay) save(s *contract.Snapshot) { s.Permits = rp.permits }

func (rp *replay) grant(permit, action string) {
	if rp.permits == nil {
		rp.permits = map[string]string{}
	}
	rp.permits[permit] = action
}

func (rp *replay) granted(permit string) string { return rp.permits[permit] }

func (rp *replay) ask(permit string) { rp.asking = permit }

func (rp *replay) asked() string { return rp.asking }

// missing notes an external action without a recorded result: what was permitted counts no longer.
func (rp *replay) missing(permit string) {
	if rp.unrecorded == nil {
		rp.unrecorded = map[string]bool{}
	}
	rp.unrecorded[permit] = true
	delete(rp.permits, permit)
}

func (rp *replay) isMissing(permit string) bool { return rp.unrecorded[permit] }

// permission is that of a call of a replay.
type permission struct{ *call }

// needed reports whether a call of a replay waits for an operator: each call of a step with an effect, if the
// policy requires it, and a declared external action without a recorded result.
func (pm permission) needed() bool {
	if pm.replaySource() == nil || pm.replay.granted(pm.key()) != "" {
		return false
	}
	return pm.replayPolicy() == run.RequireHuman && pm.step.Effect != run.EffectNone ||
		pm.acts() && pm.replay.isMissing(pm.key())
}

// withoutRecord continues after a call whose result is not recorded. ask: an operator decides before it is executed.
func (pm permission) withoutRecord(ctx workflow.Context) (ask bool, err error) {
	pm.leaveReplay(ctx)
	if err := pm.journal.flush(ctx); err != nil || !pm.acts() { // the switch to live calls is on disk before the call
		return false, err
	}
	pm.replay.missing(pm.key())
	return true, nil
}

// ask asks before a call of a replay that needs it. false: do not make the call now.
func (pm permission) ask(ctx workflow.Context) (bool, error) {
	if !pm.needed() {
		return true, nil
	}
	ask := run.QuestionRequested{
		Kind: run.QuestionGate, Question: pm.text(), Phase: pm.round.Stage,
		Round: pm.at.Round, Trigger: pm.trigger(), Digest: pm.composed.Prompt.Digest,
		Deadlines: pm.questions.deadlines(ctx, nil),
		Artifacts: []run.Attached{{Name: "prompt", Digest: pm.composed.Prompt.Digest}},
	}
	blocked := run.Effect{
		Step: pm.step.Key, Call: pm.nextCallID(), Class: pm.effectClass(), Policy: pm.replayPolicy(), Status: "blocked",
		Source: pm.replaySource().RunID,
	}
	pm.journal.emit(ctx, run.KindEffectBlocked, pm.round.Stage, blocked)
	pm.replay.ask(pm.key())
	defer func() { pm.replay.ask("") }()
	if err := pm.questions.ask(ctx, ask, routes{}); err != nil {
		return false, err
	}
	d := pm.state().Decided
	if !pm.active() || d == nil || d.Kind != run.QuestionGate {
		return false, nil
	}
	pm.replay.grant(pm.key(), d.Action)
	return true, nil
}

// trigger returns why an operator is asked before a call of a replay.
func (pm permission) trigger() string {
	switch {
	case pm.replay.isMissing(pm.key()):
		return run.TriggerUnrecorded
	case pm.acts():
		return run.TriggerAction
	}
	return run.TriggerEffect
}

// text asks whether a call of a replay may be made, with what that does.
func (pm permission) text() string {
	switch pm.trigger() {
	case run.TriggerUnrecorded:
		return fmt.Sprintf("%s is an external action, and the replayed run has no result of it. May this replay execute it?",
			pm.title())
	case run.TriggerAction:
		return fmt.Sprintf("%s is an external action. May it be executed again? apply takes the recorded result, if there "+
			"is one.", pm.title())
	}
	return fmt.Sprintf("May %s be called? approve calls it, apply takes the recorded answer, if there is one.", pm.title())
}

// recordedOnly reports whether the call may only be answered from a record.
func (pm permission) recordedOnly() bool {
	if pm.state().Status == run.Replaying {
		return true
	}
	policy := pm.replayPolicy()
	return pm.acts() && (policy == run.UseRecorded || policy == run.RequireHuman) &&
		pm.replay.granted(pm.key()) != run.ActionApprove
}

// key identifies a permission: the step, the round and the prompt.
func (pm permission) key() string {
	return fmt.Sprintf("%s %d %s %s", pm.Key, pm.at.Round, pm.member, pm.composed.Prompt.Digest)
}
