package workflows

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// validateAmend checks an amendment as far as that is possible without reading the plans.
func (c *control) validateAmend(m contract.Message) error {
	switch {
	case m.Plan == nil || m.Plan.Plan == "" || m.Plan.Inputs == "":
		return refuse("the plan is missing: run \"starter amend %s --config FILE\"", shell.Quote(c.runID()))
	case c.Revert != nil:
		return unmet("the run is being reverted to %s: send the message again after that", c.Revert.To)
	}
	return nil
}

// amend compares the plan in a message with the run's, and journals it. It counts for every step that begins later.
func (c *control) amend(ctx workflow.Context, m contract.Message) (contract.Ack, error) {
	e, next := c.e, *m.Plan
	var res contract.AmendResult
	for {
		s := e.j.state
		if s.PlanInForce(e.in.Start) == next {
			return c.ack("the definition is in force already"), nil
		}
		var err error
		if res, err = e.compare(ctx, next); err != nil {
			return contract.Ack{}, err
		}
		if err := cmp.Or(c.accepts(contract.VerbAmend), c.validateAmend(m)); err != nil {
			return contract.Ack{}, err
		}
		if now := e.j.state; now.Next == s.Next && now.PlanInForce(e.in.Start) == s.PlanInForce(e.in.Start) {
			break // a step may have completed during the comparison
		}
	}
	if len(res.Refused) > 0 {
		return contract.Ack{}, refuse("the run cannot adopt the definition: %s", strings.Join(res.Refused, "; "))
	}
	if b, total := res.Budget, e.j.state.Total(); b != nil && b.CapUSD > 0 && b.CapUSD < total {
		return contract.Ack{}, refuse("a budget of %.2f USD is below the current cost (%.2f)", b.CapUSD, total)
	}
	ev := run.RunAmended{
		New: next, Terms: res.Terms, Budget: res.Budget, Differences: res.Differences, By: m.By,
		Note: m.Note,
	}
	if err := e.adopt(ctx, ev); err != nil {
		return contract.Ack{}, err
	}
	c.unflushed = true
	return c.ack(amendedMessage(e.j.state, e.in.Target.RunID)), nil
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
func (e *engine) compare(ctx workflow.Context, next run.PlanRef) (contract.AmendResult, error) {
	old, at := e.j.state.PlanInForce(e.in.Start), e.j.state.Next
	in := contract.AmendInput{RunID: e.in.Target.RunID, Store: e.in.Target.Store, Old: old, New: next, At: at}
	if from := e.in.Start.From; from != nil {
		in.First = from.Stage
	}
	var res contract.AmendResult
	err := e.readStore(ctx, contract.Amend, in, &res)
	if isType(err, contract.ErrBadInput) {
		return res, refuse("compare the definitions: %s", errorMessage(err))
	}
	if err != nil {
		return res, fmt.Errorf("compare the definitions: %w", err)
	}
	return res, nil
}

// adopt journals an amendment and puts it in force. The cached round belongs to the plan before; see readRound.
func (e *engine) adopt(ctx workflow.Context, ev run.RunAmended) error {
	ev.Old, ev.Running = e.j.state.PlanInForce(e.in.Start), e.inStep || len(e.openLanes()) > 0
	if err := e.j.emit(ctx, run.KindRunAmended, e.j.state.Phase, ev); err != nil {
		return fmt.Errorf("journal the amendment: %w", err)
	}
	e.in.Start = e.in.Start.Under(ev.New, ev.Terms)
	if ev.Terms.TimeScale > 0 {
		e.in.Options.TimeScale = ev.Terms.TimeScale
	}
	return nil
}

// repeatAmendments puts the amendments of a replay's source in force at the places where they were there.
func (e *engine) repeatAmendments(ctx workflow.Context, at run.Place) error {
	source := e.replaySource()
	if source == nil {
		return nil
	}
	for p := e.j.state.Plan; p != nil && p.Replayed < len(e.in.Start.Amendments); p = e.j.state.Plan {
		next := e.in.Start.Amendments[p.Replayed]
		if before(at, next.At) {
			return nil
		}
		ev := next.RunAmended
		ev.Source, ev.Budget = source.RunID, nil // a replay has its own budget
		if err := e.adopt(ctx, ev); err != nil {
			return err
		}
	}
	return nil
}

// before reports whether a place comes before another one.
func before(a, b run.Place) bool {
	return slices.Compare([]int{a.Stage, a.Round, a.Step}, []int{b.Stage, b.Round, b.Step}) < 0
}

// amendReopened puts the plan in force with which an operator opened the epoch. A refusal pauses the run.
func (e *engine) amendReopened(ctx workflow.Context, m *contract.Message) error {
	if m == nil {
		return nil
	}
	_, err := e.control.amend(ctx, *m)
	if err == nil || ctx.Err() != nil {
		return err
	}
	ev := run.DecisionRefused{Verb: contract.VerbAmend, Reason: errorMessage(err), By: m.By}
	if err := e.j.emit(ctx, run.KindDecisionRefused, e.j.state.Phase, ev); err != nil {
		return err
	}
	return e.pause(ctx, run.UserRequested, "the definition was not adopted: "+errorMessage(err), m.By)
}
