package run

import (
	"fmt"
	"math"
)

// CostKnown is how an amount relates to what was spent.
type CostKnown string

// Amounts.
const (
	CostExact   CostKnown = "exact"    // the agent reported it, or its tokens have a price
	CostAtLeast CostKnown = "at_least" // some calls of a total, or some requests of a call, have no known cost
	CostUnknown           = CostKnown(CategoryUnknown)
)

// CostText writes an amount that lacks the cost of a number of calls, or a part of it: $1.20,
// "≥ $1.20 (2 calls not fully known)", unknown.
func CostText(usd float64, unknown int) string {
	text := ShortCost(usd, unknown)
	if unknown > 0 && usd > 0 {
		text += " (" + Plural(unknown, "call") + " not fully known)"
	}
	return text
}

// ShortCost is CostText for a column: $1.20, ≥ $1.20, unknown.
func ShortCost(usd float64, unknown int) string {
	switch {
	case unknown <= 0:
		return fmt.Sprintf("$%.2f", usd)
	case usd == 0:
		return string(CostUnknown)
	}
	return fmt.Sprintf("≥ $%.2f", usd)
}

// CostPhrase is ShortCost without a heading: $1.20, cost ≥ $1.20, cost unknown.
func CostPhrase(usd float64, unknown int) string {
	text := ShortCost(usd, unknown)
	if unknown > 0 {
		return "cost " + text
	}
	return text
}

// Text writes what a call cost, and why that is unknown.
func (c Spend) Text() string {
	text := CostPhrase(c.USD, c.UnknownCalls())
	if why := c.Why(); why != "" {
		return text + ": " + why
	}
	return text
}

// Why is the reason why the cost of a call is not fully known; empty: it is known.
func (c Spend) Why() string {
	switch {
	case c.UnknownCalls() <= 0:
		return ""
	case c.Known == CostAtLeast:
		return "the agent's report is incomplete"
	case c.Tokens == Tokens{}:
		return "the agent reported no usage"
	case c.Model == "":
		return "no price is set for the agent"
	}
	return "no price is known for " + c.Model
}

// Asked reports whether a model was asked. Commands and answers that were paid for elsewhere ask none.
func (c Spend) Asked() bool { return c.Known != "" || c.USD > 0 || c.Tokens != (Tokens{}) }

// UnknownCalls is what the call adds to the number of calls without a known cost: 1 if its cost, or that of a part of
// it, is unknown; negative if its cost contains that of earlier calls which were unknown.
func (c Spend) UnknownCalls() int {
	if c.Known == CostUnknown || c.Known == CostAtLeast {
		return 1 - c.Covers
	}
	return -c.Covers
}

// Plus adds what another call cost. The prices of both are left out.
func (c Spend) Plus(o Spend) Spend {
	c.Tokens.Input += o.Tokens.Input
	c.Tokens.Output += o.Tokens.Output
	c.Tokens.CacheRead += o.Tokens.CacheRead
	c.Tokens.CacheWrite += o.Tokens.CacheWrite
	c.USD, c.Prices = Cents(c.USD+o.USD), nil
	return c
}

// Without is the cost of a call whose total contains what is counted already, with a number of unknown calls.
func (c Spend) Without(counted Spend, unknown int) Spend {
	c.Tokens.Input = max(0, c.Tokens.Input-counted.Tokens.Input)
	c.Tokens.Output = max(0, c.Tokens.Output-counted.Tokens.Output)
	c.Tokens.CacheRead = max(0, c.Tokens.CacheRead-counted.Tokens.CacheRead)
	c.Tokens.CacheWrite = max(0, c.Tokens.CacheWrite-counted.Tokens.CacheWrite)
	c.USD, c.Covers = Cents(max(0, c.USD-counted.USD)), c.Covers+unknown
	return c
}

// Tokens are what a provider counted for one call.
type Tokens struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
}

// Sum is the number of all tokens.
func (t Tokens) Sum() int64 { return t.Input + t.Output + t.CacheRead + t.CacheWrite }

// Totals sum calls: tokens, and USD as the agent reported it or as it was estimated.
type Totals struct {
	Calls        int     `json:"calls"`
	Tokens       Tokens  `json:"tokens"`
	USD          float64 `json:"usd"`
	EstimatedUSD float64 `json:"estimated_usd"` // the part of USD that no agent reported
	// whether USD is all that the calls cost; empty where only an earlier version counted
	Known   CostKnown `json:"cost_known,omitempty"`
	Unknown int       `json:"unknown_calls,omitempty"` // calls without a known cost
}

// Add counts one call.
func (t *Totals) Add(c Spend) {
	t.Calls++
	t.Tokens.Input += c.Tokens.Input
	t.Tokens.Output += c.Tokens.Output
	t.Tokens.CacheRead += c.Tokens.CacheRead
	t.Tokens.CacheWrite += c.Tokens.CacheWrite
	t.USD = Cents(t.USD + c.USD)
	if c.Estimated {
		t.EstimatedUSD = Cents(t.EstimatedUSD + c.USD)
	}
	t.Unknown = max(0, t.Unknown+c.UnknownCalls())
	if c.Known != "" || t.Known != "" {
		t.Known = KnownOf(t.USD, t.Unknown)
	}
}

// Merge adds the calls of other totals.
func (t *Totals) Merge(o Totals) {
	t.Calls, t.Unknown = t.Calls+o.Calls, t.Unknown+o.Unknown
	t.Tokens.Input += o.Tokens.Input
	t.Tokens.Output += o.Tokens.Output
	t.Tokens.CacheRead += o.Tokens.CacheRead
	t.Tokens.CacheWrite += o.Tokens.CacheWrite
	t.USD, t.EstimatedUSD = Cents(t.USD+o.USD), Cents(t.EstimatedUSD+o.EstimatedUSD)
	t.Known = KnownOf(t.USD, t.Unknown)
}

// KnownOf reports whether an amount that lacks the cost of a number of calls is all that was spent.
func KnownOf(usd float64, unknown int) CostKnown {
	switch {
	case unknown <= 0:
		return CostExact
	case usd == 0:
		return CostUnknown
	}
	return CostAtLeast
}

// Cents rounds USD to a millionth of a cent, so that sums do not show binary dust and agree in every tool. No sum
// leaves what JSON can carry: a line that another program wrote must not make a state that cannot be written.
func Cents(usd float64) float64 {
	const unit, most = 1e8, 1e12
	return math.Round(max(-most, min(most, usd))*unit) / unit
}

// Named is one row of a breakdown. Breakdowns are lists, not maps: their order is the order of first appearance,
// everywhere.
type Named struct {
	Name string `json:"name"`
	Totals
}

// add counts one call in the row with this name. It changes the rows in place.
func add(rows []Named, name string, c Spend) []Named {
	for i := range rows {
		if rows[i].Name == name {
			rows[i].Add(c)
			return rows
		}
	}
	row := Named{Name: name}
	row.Add(c)
	return append(rows, row)
}
