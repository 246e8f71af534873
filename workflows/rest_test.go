package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// The calls of a group share the rest of each budget.
func TestRestOfBudgetsIsShared(t *testing.T) {
	s := run.State{Budget: run.Budget{CapUSD: 10, Tokens: 100, Calls: 5}, Spent: run.Totals{USD: 4},
		Used: run.Used{Tokens: 40, Calls: 2}}
	for name, row := range map[string]struct {
		budget   run.Budget
		need     run.Need
		taken    int // calls that are covered one after another
		ofTokens bool
	}{
		"dollars":   {run.Budget{CapUSD: 10}, run.Need{USD: 2, Tokens: 900}, 3, false},
		"tokens":    {run.Budget{Tokens: 100}, run.Need{USD: 900, Tokens: 30}, 2, true},
		"calls":     {run.Budget{Calls: 3}, run.Need{USD: 900, Tokens: 900}, 1, false},
		"all":       {s.Budget, run.Need{USD: 1, Tokens: 1}, 3, false},
		"too much":  {s.Budget, run.Need{USD: 6.01}, 0, false},
		"no budget": {run.Budget{}, run.Need{USD: 900}, 9, false},
	} {
		s.Budget = row.budget
		left, n := restOf(s), 0
		need := row.need
		for n < 9 && left.covers(&need) {
			left.take(need.USD, need.Tokens)
			n++
		}
		require.Equal(t, row.taken, n, name)
		require.Equal(t, row.ofTokens, need.OfTokens, name)
	}
}
