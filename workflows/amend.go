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
