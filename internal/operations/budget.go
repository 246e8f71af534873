package operations

import (
	"cmp"
	"fmt"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/pipeline"
)

// BudgetWarnings lists the agents of a plan whose cost depends on a model that only a run can show.
func BudgetWarnings(plan *pipeline.Plan) []string {
	if plan.Budget.USD <= 0 {
		return nil
	}
	var out []string
	for _, a := range plan.Agents {
		kind, _ := adapter.Find(a.Reply)
		if kind.Cost == adapter.ReportsTokens && a.Price == nil && adapter.Model(a.Run) == "" {
			out = append(out, fmt.Sprintf("the budget counts calls of agent %s only if the price of its model is known; "+
				"name the model in its command (-m MODEL), or write price: {input: ..., output: ...}",
				cmp.Or(a.Name, kind.Program)))
		}
	}
	return out
}
