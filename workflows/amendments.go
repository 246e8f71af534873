package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// compare compares the plan in force with another one.
func (rd *round) compare(ctx workflow.Context, next run.PlanRef) (contract.AmendResult, error) {
	old, at := rd.state().PlanInForce(rd.in.Start), rd.state().Next
	in := contract.AmendInput{RunID: rd.in.Target.RunID, Store: rd.in.Target.Store, Old: old, New: next, At: at}
	if from := rd.in.Start.From; from != nil {
		in.First = from.Stage
	}
	var res contract.AmendResult
	err := rd.host.readStore(ctx, contract.Amend, in, &res)
	if isType(err, contract.ErrBadInput) {
		return res, refuse("compare the definitions: %s", errorMessage(err))
	}
	if err != nil {
		return res, fmt.Errorf("compare the definitions: %w", err)
	}
	return res, nil
}

// adopt journals an amendment and puts it in force. The cached round belongs to the plan before; see readRound.
func (rd *round) adopt(ctx workflow.Context, ev run.RunAmended) {
	ev.Old, ev.Running = rd.state().PlanInForce(rd.in.Start), rd.running.inStep() || len(rd.children.openLanes()) > 0
	rd.journal.emit(ctx, run.KindRunAmended, rd.state().Phase, ev)
	rd.in.Start = rd.in.Start.Under(ev.New, ev.Terms)
	if ev.Terms.TimeScale > 0 {
		rd.in.Options.TimeScale = ev.Terms.TimeScale
	}
}

// repeatAmendments puts the amendments of a replay's source in force at the places where they were there.
func (rd *round) repeatAmendments(ctx workflow.Context, at run.Place) {
	source := rd.replaySource()
	if source == nil {
		return
	}
	for p := rd.state().Plan; p != nil && p.Replayed < len(rd.in.Start.Amendments); p = rd.state().Plan {
		next := rd.in.Start.Amendments[p.Replayed]
		if before(at, next.At) {
			return
		}
		ev := next.RunAmended
		ev.Source, ev.Budget = source.RunID, nil // a replay has its own budget
		rd.adopt(ctx, ev)
	}
}
