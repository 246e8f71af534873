package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/passbook-run/passbook/run"
)

// Describe describes a status in plain words: as recorded, and as Temporal reports it where these differ.
func Describe(s run.EffectiveStatus) string {
	switch {
	case s.Status != s.Recorded:
		return fmt.Sprintf("%s (recorded: %s; %s)", s.Status.Words(), s.Recorded.Words(), s.Detail)
	case differs(s):
		return fmt.Sprintf("%s (as recorded; its workflow is %s, and the directory follows when it can be written)",
			s.Status.Words(), s.Live.Words())
	case s.NoWorker != nil:
		return fmt.Sprintf("%s (waits for a worker)", s.Status.Words())
	case s.Pausing != "":
		return fmt.Sprintf("%s (%s)", s.Status.Words(), s.Pausing)
	case s.Liveness == run.LiveUnknown && !s.Status.Closed():
		return fmt.Sprintf("%s (as recorded; whether it is alive is unknown: %s)", s.Status.Words(), s.Detail)
	}
	return s.Status.Words()
}

// Brief is Describe for a column. until is the end of a wait for a limit.
func Brief(s run.EffectiveStatus, notApproved bool, until string) string {
	switch {
	case s.NoWorker != nil:
		return s.Status.Words() + ", no worker" + until
	case s.Pausing != "":
		return s.Status.Words() + ", pausing" + until
	case s.Liveness == run.LiveUnknown && !s.Status.Closed():
		return s.Status.Words() + "?" + until
	case differs(s):
		return s.Status.Words() + " → " + s.Live.Words()
	case notApproved && s.Status == run.Done:
		return s.Status.Words() + ", not approved"
	}
	return s.Status.Words() + until
}

// differs reports whether the workflow of an open run is ahead of its directory.
func differs(s run.EffectiveStatus) bool {
	return s.Live != "" && s.Live != s.Recorded && s.Recorded.Class() == run.Live
}

// NoWorker names the queues of a run that no worker polls, and since when.
func NoWorker(n run.NoWorker) string {
	since := "for more than five minutes"
	if n.Since != "" {
		since = "since " + formatted(n.Since, "2006-01-02 15:04:05 UTC")
	}
	return fmt.Sprintf("no %s polls %s %s", n.Needed(), strings.Join(n.Queues, ", "), since)
}

// Minute formats a time of the journal: 2026-11-21 15:23 UTC.
func Minute(ts string) string { return formatted(ts, "2006-01-02 15:04 UTC") }

func formatted(ts, layout string) string {
	t, err := time.Parse(run.TimeFormat, ts)
	if err != nil {
		return ts
	}
	return t.Format(layout)
}

func age(ts string, now time.Time) string {
	t, err := time.Parse(run.TimeFormat, ts)
	if err != nil {
		return "?"
	}
	return Duration(now.Sub(t))
}

// prefixed returns text after its introduction; "" if text is empty.
func prefixed(intro, text string) string {
	if text == "" {
		return ""
	}
	return intro + text
}

// bracketed returns text in parentheses; "" if text is empty.
func bracketed(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}
