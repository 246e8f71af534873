package view

import (
	"fmt"

	"github.com/passbook-run/passbook/run"
)

// Cost is the current and projected cost of a run in USD (TM-07).
type Cost struct {
	Total     float64
	Unknown   int        // calls that Total lacks
	Sunk      float64    // part of Total that a revert abandoned
	Estimated float64    // part of Total that no agent reported
	Budget    float64    // 0: no cap
	Warn      float64    // warning threshold; 0: none
	Percent   int        // of the budget, rounded half up; 0: no cap
	Roles     []RoleCost // builder, verifier, and pa for all calls of a repeated stage
	Calls     int        // settled calls
	Mean      *float64
	Projected *float64 // see [Projected]
}

func costOf(s Source) Cost {
	c := Cost{
		Total: s.State.Total(), Sunk: s.State.SunkUSD,
		Estimated: s.State.Spent.EstimatedUSD, Unknown: s.State.UnknownCalls(),
		Budget: s.State.Budget.CapUSD, Warn: s.State.Budget.WarnUSD, Roles: rolesOf(s), Projected: Projected(s),
	}
	if c.Budget > 0 {
		c.Percent = int(round(100 * c.Total / c.Budget))
	}
	for _, r := range c.Roles {
		c.Calls += r.Calls
	}
	if c.Unknown > 0 {
		c.Projected = nil
	} else if c.Calls > 0 {
		mean := s.State.Spent.USD / float64(c.Calls)
		c.Mean = &mean
	}
	return c
}

// rolesOf returns the roles in the order of their first call, with their settled calls.
func rolesOf(s Source) []RoleCost {
	var out []RoleCost
	for _, r := range s.State.ByRole {
		out = append(out, RoleCost{Role: r.Name, USD: r.USD, Unknown: r.Unknown,
			Calls: s.Records.Cost.ByRole[r.Name].PassCount})
	}
	return out
}

// Projected returns the projected total cost (TM-08): the cost so far, plus the mean of a call times the remaining
// numbered passes, calls of lanes and calls of cycles (five per cycle of the seed's pipeline: three auditors, weaver,
// refine).
// Like [Remaining] it assumes that no loop ends early. Nil before the first call has settled.
func Projected(s Source) *float64 {
	total, settled := s.State.Total(), 0
	for _, r := range s.Records.Cost.ByRole {
		settled += r.PassCount
	}
	if settled == 0 {
		return nil
	}
	if !s.State.Status.Closed() {
		for _, l := range s.Lanes { // those that have ended are part of the cost so far
			if l.Live != nil && l.Outcome == "" {
				total += l.Live.Total()
			}
		}
		passes, cycles := remainingPasses(s)
		_, calls := cycleSize(s)
		total = run.Cents(total + float64(passes+cycles*calls+remainingInLanes(s))*s.State.Spent.USD/float64(settled))
	}
	return &total
}

// USD formats an amount as $5.41.
func USD(v float64) string { return fmt.Sprintf("$%.2f", v) }
