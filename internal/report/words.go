package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
)

// usd formats an amount, small ones with enough digits to differ from zero.
func usd(v float64) string {
	if v != 0 && v < 0.01 && v > -0.01 {
		return fmt.Sprintf("$%.4f", v)
	}
	return view.USD(v)
}

// costText formats an amount that lacks the cost of a number of calls.
func costText(v float64, unknown int) string {
	if unknown == 0 {
		return usd(v)
	}
	return run.CostText(v, unknown)
}

// seconds formats milliseconds: 14ms, 1.7s, 4m 32s, 4h 23m.
func seconds(ms int64) string { return brief(time.Duration(ms) * time.Millisecond) }

func brief(d time.Duration) string {
	switch {
	case d < 0:
		return "?"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return view.Duration(d)
}

// when parses a time of the journal, or one in whole seconds; zero: not a time.
func when(ts string) time.Time {
	t, err := time.Parse(time.RFC3339, ts)
	if err != nil {
		return time.Time{}
	}
	return t
}

// clock formats a time of the journal as 2026-11-21 15:23:41 UTC.
func clock(ts string) string {
	t := when(ts)
	if t.IsZero() {
		return ts
	}
	return t.UTC().Format("2006-01-02 15:04:05") + " UTC"
}

// plural formats a number and a noun, whose first word gets the plural form.
func plural(n int, what string) string {
	what, rest, _ := strings.Cut(what, " ")
	if rest != "" {
		rest = " " + rest
	}
	switch {
	case n == 1:
		return "1 " + what + rest
	case strings.HasSuffix(what, "s"):
		return fmt.Sprintf("%d %ses%s", n, what, rest)
	case strings.HasSuffix(what, "y"):
		return fmt.Sprintf("%d %sies%s", n, strings.TrimSuffix(what, "y"), rest)
	}
	return fmt.Sprintf("%d %ss%s", n, what, rest)
}

// tenths formats a score.
func tenths(v *float64) string { return fmt.Sprintf("%.1f", *v) }
