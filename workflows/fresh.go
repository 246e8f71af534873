package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// checkDue returns the next place at which a command has to pass once more in a fresh folder: at the end of a loop whose
// condition is met, and before a delivery.
func (e *engine) checkDue(at run.Place) (run.Place, bool) {
	own := len(e.round.Steps)
	if e.in.Start.Lane != nil {
		return at, false
	}
	if own > 0 && !e.conditionMet() {
		return at, false
	}
	for i, s := range e.round.Fresh {
		if place := own + i; place >= at.Step && e.unchecked(s, place == at.Step) {
			at.Step = place
			return at, true
		}
	}
	return at, false
}

// unchecked reports whether a command passes in the workspace, and the work as it is was not checked in a fresh folder.
// next: it is the step to do next, which an operator may repeat.
func (e *engine) unchecked(s contract.Step, next bool) bool {
	last, ran := e.j.state.Command(s.Fresh)
	switch {
	case !ran:
		return false
	case !last.Passed:
		return next && e.j.state.Again != ""
	}
	return !last.Fresh || last.Tree != run.DigestOf(e.j.state.Tree)
}

// skipTo skips and journals the steps before a check in a fresh folder.
func (e *engine) skipTo(ctx workflow.Context, at, check run.Place) error {
	skipped, _ := e.round.At(at.Step)
	ev := run.StepSkipped{Step: skipped.Key, Why: "the work is complete and checked in a fresh folder next", Next: &check}
	if skipped.Fresh != "" {
		ev.Why = "the work was checked in a fresh folder already"
	}
	return e.j.emit(ctx, run.KindStepSkipped, e.round.Stage, ev)
}

// before returns the output of a command in the workspace, for one that repeats it in a fresh folder.
func (p *pass) before() *run.Blob {
	if p.step.Fresh == "" {
		return nil
	}
	return p.e.j.state.ReplyOf(p.step.Fresh)
}
