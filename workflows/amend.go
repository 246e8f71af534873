package workflows

import (
	"cmp"
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// validateAmend checks an amendment as far as that is possible without reading the plans.
func (hs *handlers) validateAmend(m contract.Message) error {
	switch {
	case m.Plan == nil || m.Plan.Plan == "" || m.Plan.Inputs == "":
		return refuse("the plan is missing: run \"starter amend %s --config FILE\"", shell.Quote(hs.runID()))
	case hs.asked.Revert != nil:
		return unmet("the run is being reverted to %s: send the message again after that", hs.asked.Revert.To)
	}
	return nil
}

// amend compares the plan in a message with the run's, and journals it. It counts for every step that begins later.
func (hs *handlers) amend(ctx workflow.Context, m contract.Message) (contract.Ack, error) {
	next := *m.Plan
	var res contract.AmendResult
	for {
		s := hs.state()
		if s.PlanInForce(hs.in.Start) == next {
			return hs.ack("the definition is in force already"), nil
		}
		var err error
		if res, err = hs.round.compare(ctx, next); err != nil {
			return contract.Ack{}, err
		}
		if err := cmp.Or(hs.accepts(contract.VerbAmend), hs.validateAmend(m)); err != nil {
			return contract.Ack{}, err
		}
		if now := hs.state(); now.Next == s.Next && now.PlanInForce(hs.in.Start) == s.PlanInForce(hs.in.Start) {
			break // a step may have completed during the comparison
		}
	}
	if len(res.Refused) > 0 {
		return contract.Ack{}, refuse("the run cannot adopt the definition: %s", strings.Join(res.Refused, "; "))
	}
	if b, total := res.Budget, hs.state().Total(); b != nil && b.CapUSD > 0 && b.CapUSD < total {
		return contract.Ack{}, refuse("a budget of %.2f USD is below the current cost (%.2f)", b.CapUSD, total)
	}
	ev := run.RunAmended{
		New: next, Terms: res.Terms, Budget: res.Budget, Differences: res.Differences, By: m.By,
		Note: m.Note,
	}
	hs.round.adopt(ctx, ev)
	hs.journal.soon()
	return hs.ack(amendedMessage(hs.state(), hs.in.Target.RunID)), nil
}

// amendedMessage describes from when an amendment counts.
func amendedMessage(s run.State, id string) string {
	switch {
	case s.Status == run.WaitingLimit && s.Limited != nil && s.Limited.Kind == run.LimitAtOnce:
		return "amended; in force for the next call, which waits for its turn"
	case s.Status == run.WaitingLimit && s.Limited != nil:
		return fmt.Sprintf("amended; in force for the next call. The run still waits until %s; to try at once, run "+
			`"starter resume %s --now"`, s.Limited.Until, shell.Quote(id))
	case s.Plan.From == nil:
		return "amended; in force when the running step has completed or begins again"
	}
	return "amended; in force for the next step"
}

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

// adopt journals an amendment and puts it in force. The cached round belongs to the plan before; see [round.read].
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
