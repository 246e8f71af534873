package view

import (
	"fmt"

	"github.com/passbook-run/passbook/run"
)

// Cost is the current and projected cost of a run in USD (TM-07).
type Cost struct {
	Total     float64
	Unknown   int     // calls that Total lacks
	Sunk      float64 // part of Total that a revert abandoned
	Estimated float64 // part of Total that no agent reported
	Budget    float64 // 0: no cap
	Warn      float64 // warning threshold; 0: none
	Percent   int     // of the budget, rounded half up; 0: no cap
	Roles     []Role
	Calls     int // settled calls
	Mean      *float64
	Projected *float64 // see [Projected]
}

// Role is one row of the costs: builder, verifier, and pa for all calls of a repeated stage.
type Role struct {
	Name  string
	USD   float64
	Calls int

	Unknown int // calls that USD lacks
}

func costOf(s Source) Cost {
	b := s.Records.Cost
	own := run.Cents(b.TotalEstimatedCostUSD + s.Records.SunkCostUSD)
	c := Cost{
		Total:     run.Cents(own + s.State.ProjectsUSD()),
		Sunk:      s.Records.SunkCostUSD,
		Estimated: s.State.Spent.EstimatedUSD, Unknown: s.State.UnknownCalls(),
		Budget: b.BudgetHardCapUSD, Warn: b.BudgetWarningThresholdUSD, Roles: rolesOf(s), Projected: Projected(s),
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
		mean := b.TotalEstimatedCostUSD / float64(c.Calls)
		c.Mean = &mean
	}
	return c
}

// rolesOf returns the roles in the order of their first call.
func rolesOf(s Source) []Role {
	var out []Role
	for _, r := range s.State.ByRole {
		if row, ok := s.Records.Cost.ByRole[r.Name]; ok {
			out = append(out, Role{Name: r.Name, USD: row.CostUSD, Calls: row.PassCount, Unknown: row.UnknownCalls})
		}
	}
	return out
}

// Projected returns the projected total cost (TM-08): the cost so far, plus the mean of a call times the remaining
// numbered passes, calls of lanes and calls of cycles (five per cycle of the seed's pipeline: three auditors, weaver,
// refine).
// Like [Remaining] it assumes that no loop ends early. Nil before the first call has settled.
func Projected(s Source) *float64 {
	b := s.Records.Cost
	total, settled := run.Cents(b.TotalEstimatedCostUSD+s.Records.SunkCostUSD+s.State.ProjectsUSD()), 0
	for _, r := range b.ByRole {
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
		total = run.Cents(total + float64(passes+cycles*calls+remainingInLanes(s))*b.TotalEstimatedCostUSD/float64(settled))
	}
	return &total
}

// USD formats an amount as $5.41.
func USD(v float64) string { return fmt.Sprintf("$%.2f", v) }
