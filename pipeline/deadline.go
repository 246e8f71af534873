package pipeline

import (
	"fmt"
	"strings"
	"time"
)

// ParseDeadline reads a time of RFC 3339, or a local time with its zone: 2026-11-25 18:00 Europe/Berlin.
func ParseDeadline(text string) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at.UTC(), nil
	}
	wrong := fmt.Errorf("%q is not a time; write it as in 2026-11-25T18:00:00Z or 2026-11-25 18:00 Europe/Berlin", text)
	at := strings.LastIndexByte(text, ' ')
	if at < 0 {
		return time.Time{}, wrong
	}
	zone, err := time.LoadLocation(text[at+1:])
	if err != nil || zone == time.Local {
		return time.Time{}, wrong
	}
	local, err := time.ParseInLocation("2006-01-02 15:04", text[:at], zone)
	if err != nil {
		return time.Time{}, wrong
	}
	return local.UTC(), nil
}

// sentence lists the budgets of a run.
func (b Budget) sentence() string {
	var all []string
	add := func(set bool, format string, value any) {
		if set {
			all = append(all, fmt.Sprintf(format, value))
		}
	}
	add(b.USD > 0, "$%g", b.USD)
	add(b.Tokens > 0, "%d tokens", b.Tokens)
	add(b.Calls > 0, "%s", count(b.Calls, "call"))
	add(b.Hours > 0, "%g hours", b.Hours)
	add(b.Deadline != "", "until %s", b.Deadline)
	add(b.PerPass.USD > 0, "each call $%g", b.PerPass.USD)
	add(b.PerPass.Tokens > 0, "each call %d tokens", b.PerPass.Tokens)
	return strings.Join(all, ", ")
}
