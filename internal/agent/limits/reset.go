package limits

import (
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // the zones that messages name, on every host

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

// maxWait is the longest wait that a provider's report is trusted with: a month.
const maxWait = 40 * 24 * time.Hour

// clock reads reset times.
type clock struct {
	observed time.Time
	zone     *time.Location
}

// justPassed is how long after a reset a report of it means now: the provider may be late, and programs print the time
// cut to the minute.
const justPassed = 15 * time.Minute

// first returns the first known time after observed, to the second, or zero.
func (c clock) first(sources ...func() time.Time) time.Time {
	for _, source := range sources {
		at := source()
		if c.coming(at) && !at.After(c.observed) {
			at = c.observed.Add(time.Second)
		}
		if c.coming(at) && at.Sub(c.observed) <= maxWait {
			if whole := at.Truncate(time.Second); !whole.Equal(at) {
				at = whole.Add(time.Second) // never before the reset
			}
			return at.UTC()
		}
	}
	return time.Time{}
}

// coming reports whether a reset is still to come, or has just passed.
func (c clock) coming(at time.Time) bool { return at.After(c.observed.Add(-justPassed)) }

// unix reads seconds or milliseconds since 1970; 0: unknown.
func (c clock) unix(n float64) time.Time {
	switch {
	case n <= 0:
		return time.Time{}
	case n > 1e11:
		return time.UnixMilli(int64(n))
	}
	return time.Unix(int64(n), 0)
}

// document reads the fields of providers in JSON documents. An absolute time is more exact than a wait.
func (c clock) document(documents []map[string]any) time.Time {
	for _, keys := range [][]string{{"resets_at", "resetsAt", "X-Codex-Primary-Reset-At"},
		{"resets_in_seconds", "retryDelay", "retry-after", "retry_after"}} {
		for _, doc := range documents {
			for _, key := range keys {
				if at := c.value(key, lookUp(doc, key)); !at.IsZero() {
					return at
				}
			}
		}
	}
	return time.Time{}
}

func (c clock) value(key string, value any) time.Time {
	absolute := strings.HasSuffix(strings.ToLower(key), "at")
	n, isNumber := value.(float64)
	text, _ := value.(string)
	if !isNumber {
		if wait, err := time.ParseDuration(text); err == nil && wait > 0 {
			return c.observed.Add(wait)
		}
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			return at
		}
		var err error
		if n, err = strconv.ParseFloat(text, 64); err != nil {
			return time.Time{}
		}
	}
	switch {
	case absolute:
		return c.unix(n)
	case n > 0 && n <= maxWait.Seconds():
		return c.observed.Add(time.Duration(n * float64(time.Second)))
	}
	return time.Time{}
}

// lookUp returns the first value of a key in a document, at any depth.
func lookUp(doc any, key string) any {
	switch d := doc.(type) {
	case map[string]any:
		for name, value := range d {
			if strings.EqualFold(name, key) {
				return value
			}
		}
		for _, value := range d {
			if v := lookUp(value, key); v != nil {
				return v
			}
		}
	case []any:
		for _, value := range d {
			if v := lookUp(value, key); v != nil {
				return v
			}
		}
	}
	return nil
}

var (
	epoch   = lazyregexp.New(`\|(\d{10}|\d{13})\b`)
	instant = lazyregexp.New(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)`)
	wait    = lazyregexp.New(`(?i)\b(?:again|retry|resets?|wait)(?: in| after)? ((?:\d+(?:\.\d+)? ?` +
		`(?:days?|d|hours?|hrs?|h|minutes?|mins?|ms|m|seconds?|secs?|s)\b[ ,]*(?:and )?|\d+(?:\.\d+)?[dhms])+)`)
	date = lazyregexp.New(`\b(\d{4}-\d\d-\d\d) at (\d\d:\d\d) UTC\b`)
	unit = lazyregexp.New(`(?i)(\d+(?:\.\d+)?) ?(days?|d|hours?|hrs?|h|minutes?|mins?|ms|m|seconds?|secs?|s)`)
	when = lazyregexp.New(`(?i)\b(?:again|resets?)(?: at| on)? ` +
		`(?:(sun|mon|tue|wed|thu|fri|sat)[a-z]*,?(?: at)? )?` +
		`(?:(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* (\d{1,2})(?:st|nd|rd|th)?(?:,? (\d{4}))?,?(?: at)?)?` +
		` ?(?:(\d{1,2})(?::(\d\d))?(?::\d\d)? ?(?:([ap])\.?m\b\.?)?)?` +
		`(?: ?\(([A-Za-z][\w+\-/]*)\))?`)
)

// text reads the sentences of programs.
func (c clock) text(text string) time.Time {
	if m := epoch.FindStringSubmatch(text); m != nil {
		n, err := strconv.ParseFloat(m[1], 64)
		if err == nil {
			return c.unix(n)
		}
	}
	if m := wait.FindStringSubmatch(text); m != nil {
		return c.observed.Add(duration(m[1]))
	}
	if m := when.FindStringSubmatch(text); m != nil {
		if at := c.calendar(m); !at.IsZero() {
			return at
		}
	}
	if m := date.FindStringSubmatch(text); m != nil {
		if at, err := time.Parse("2006-01-02 15:04", m[1]+" "+m[2]); err == nil {
			return at
		}
	}
	if m := instant.FindString(text); m != "" {
		if at, err := time.Parse(time.RFC3339, m); err == nil {
			return at
		}
	}
	return time.Time{}
}

// duration adds the parts of a wait: 2 days 17 hours, 19h31m20s.
func duration(text string) time.Duration {
	var sum float64
	for _, m := range unit.FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			continue
		}
		each := time.Second
		switch u := strings.ToLower(m[2]); {
		case u == "ms":
			each = time.Millisecond
		case u[0] == 'd':
			each = 24 * time.Hour
		case u[0] == 'h':
			each = time.Hour
		case u[0] == 'm':
			each = time.Minute
		}
		sum += n * float64(each)
	}
	return time.Duration(min(sum, float64(2*maxWait)))
}

// calendar returns the next time of day, weekday or date that a sentence names.
func (c clock) calendar(m []string) time.Time {
	weekday, month, day, year, hour, minute, half, name := m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8]
	if hour == "" && month == "" || hour != "" && minute == "" && half == "" {
		return time.Time{} // no time: "resets 3" is a count
	}
	zone := c.zone
	if name != "" {
		named, err := time.LoadLocation(name)
		if err != nil {
			return time.Time{}
		}
		zone = named
	}
	h, min := number(hour), number(minute)
	if half != "" {
		h = h%12 + 12*strings.Index("ap", strings.ToLower(half))
	}
	if h > 23 || min > 59 || number(day) > 31 {
		return time.Time{}
	}
	today := c.observed.In(zone)
	at := func(y int, m time.Month, d int) time.Time { return time.Date(y, m, d, h, min, 0, 0, zone) }
	switch {
	case month != "":
		mon, err := time.Parse("Jan", strings.ToUpper(month[:1])+strings.ToLower(month[1:]))
		if err != nil {
			return time.Time{}
		}
		if year != "" {
			return at(number(year), mon.Month(), number(day))
		}
		if this := at(today.Year(), mon.Month(), number(day)); c.coming(this) {
			return this
		}
		return at(today.Year()+1, mon.Month(), number(day))
	case weekday != "":
		for d := range 8 {
			next := at(today.Year(), today.Month(), today.Day()+d)
			if strings.EqualFold(next.Weekday().String()[:3], weekday) && c.coming(next) {
				return next
			}
		}
		return time.Time{}
	}
	if now := at(today.Year(), today.Month(), today.Day()); c.coming(now) {
		return now
	}
	return at(today.Year(), today.Month(), today.Day()+1)
}

func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}
