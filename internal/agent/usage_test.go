package agent

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/price"
	"github.com/passbook-run/passbook/run"
)

// TestUsageInPlainText: the last match counts, in standard output or error.
func TestUsageInPlainText(t *testing.T) {
	const both = `tokens: (?P<input>[0-9,]+) in, (?P<output>[0-9,]+) out`
	own := &price.Price{Input: 10, Output: 100}
	for name, row := range map[string]struct {
		find, stdout, stderr string
		exit                 Exit
		own                  *price.Price
		tokens               run.Tokens
		usd                  float64
		known                run.CostKnown
	}{
		"tokens and a price": {both, "Done.\ntokens: 1,000 in, 50 out\n", "", Exit{}, own,
			run.Tokens{Input: 1000, Output: 50}, 0.015, run.CostExact},
		"tokens without a price": {both, "tokens: 1,000 in, 50 out", "", Exit{}, nil,
			run.Tokens{Input: 1000, Output: 50}, 0, run.CostUnknown},
		"in standard error, last": {both, "Done. tokens: 1 in, 1 out", "tokens: 1 in, 2 out\ntokens: 2000 in, 3 out", Exit{},
			own, run.Tokens{Input: 2000, Output: 3}, 0.0203, run.CostExact},
		"USD": {`(?P<usd>[0-9.]+) USD`, "12345678 and 0.25 USD", "", Exit{}, nil, run.Tokens{Input: 10, Output: 5}, 0.25,
			run.CostExact},
		"ended": {both, "tokens: 1,000 in, 50 out", "", Exit{Code: -1, TimedOut: true}, own,
			run.Tokens{Input: 1000, Output: 50}, 0.015, run.CostAtLeast},
		"nothing is found": {both, "12345678", "", Exit{}, own, run.Tokens{Input: 10, Output: 2}, 0.0003, run.CostExact},
		"no number": {`in (?P<input>.*)`, "in many", "", Exit{}, nil, run.Tokens{Input: 10, Output: 2}, 0,
			run.CostUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			prices := Prices{Own: row.own, Usage: regexp.MustCompile(row.find)}
			r, _ := ReadReply(adapter.Text, []byte(row.stdout), row.exit, row.stderr, prices, 40)
			require.Equal(t, row.tokens, r.Tokens)
			require.InDelta(t, row.usd, r.CostUSD, 1e-9)
			require.Equal(t, row.known, r.Known)
		})
	}
}
