package run

import "math"

// Tokens are what a provider counted for one call.
type Tokens struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
}

// Totals sum calls: tokens, and USD as the agent reported it or as it was estimated.
type Totals struct {
	Calls        int     `json:"calls"`
	Tokens       Tokens  `json:"tokens"`
	USD          float64 `json:"usd"`
	EstimatedUSD float64 `json:"estimated_usd"` // the part of USD that no agent reported
}

// Add counts one call.
func (t *Totals) Add(tok Tokens, usd float64, estimated bool) {
	t.Calls++
	t.Tokens.Input += tok.Input
	t.Tokens.Output += tok.Output
	t.Tokens.CacheRead += tok.CacheRead
	t.Tokens.CacheWrite += tok.CacheWrite
	t.USD = Cents(t.USD + usd)
	if estimated {
		t.EstimatedUSD = Cents(t.EstimatedUSD + usd)
	}
}

// Cents rounds USD to a millionth of a cent, so that sums do not show binary dust and agree in every tool. No sum leaves what JSON can carry:
// a line that another program wrote must not make a state that cannot be written.
func Cents(usd float64) float64 {
	const unit, most = 1e8, 1e12
	return math.Round(max(-most, min(most, usd))*unit) / unit
}

// Named is one row of a breakdown. Breakdowns are lists, not maps: their order is the order of first appearance, everywhere.
type Named struct {
	Name string `json:"name"`
	Totals
}

// add counts one call in the row with this name. It changes the rows in place.
func add(rows []Named, name string, c Spend) []Named {
	for i := range rows {
		if rows[i].Name == name {
			rows[i].Add(c.Tokens, c.USD, c.Estimated)
			return rows
		}
	}
	row := Named{Name: name}
	row.Add(c.Tokens, c.USD, c.Estimated)
	return append(rows, row)
}
