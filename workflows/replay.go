package workflows

import (
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
