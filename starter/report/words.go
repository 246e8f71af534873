package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/passbook-run/passbook/figures"
)

// usd writes an amount, small ones with as many digits as they need to be told from nothing.
func usd(v float64) string {
	if v != 0 && v < 0.01 && v > -0.01 {
		return fmt.Sprintf("$%.4f", v)
	}
	return figures.USD(v)
}

// seconds writes milliseconds as people say them: 14ms, 1.7s, 4m 32s, 4h 23m.
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
	return figures.Duration(d)
}

// clock writes a time of the journal as 2026-11-21 15:23:41 UTC.
func clock(ts string) string {
	t := when(ts)
	if t.IsZero() {
		return ts
	}
	return t.UTC().Format("2006-01-02 15:04:05") + " UTC"
}

// plural writes a number and what it counts, by its first word.
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

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// tenths writes a score.
func tenths(v *float64) string { return fmt.Sprintf("%.1f", *v) }
