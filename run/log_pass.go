package run

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

func (l *Log) passStarted(e *Entry, p PassStart) {
	if p.Attempt == 1 && e.Before.Limited.Call(p.Member).N == 0 { // after a limit, the same attempt begins again
		l.header(e, p)
	}
	l.info("  Invoking %s (attempt %d/%d)...", p.Agent, p.Attempt, p.Attempts)
}

func (l *Log) header(e *Entry, p PassStart) {
	if p.Number > 0 {
		l.info("═══════════════════════════════════════")
		l.info("PASS %d/%d: %s", p.Number, e.After.Passes.Total, p.Title)
	} else {
		l.info("%s", p.Description)
	}
	if p.Gives == "artifact" {
		l.info("  Artifact backed up to %s", e.Backup)
	}
	l.info("  Prompt written (%s chars, ~%s tokens)", thousands(p.Prompt.Chars), thousands(tokens(p.Prompt.Chars)))
	d := LogDecision{Decision: "execute-pass", Role: p.Role, Subset: p.Set, Rotation: p.Order, Files: p.Files}
	l.decide(d.about(p.Pass, l.wording))
}

// attempted is an attempt that did not settle its pass.
func (l *Log) attempted(e *Entry, p PassAttempt) {
	switch p.Category {
	case CategoryLost:
		l.warn("Detected in-flight %s -- %s during execution.", passWords(p.Pass, l.wording), p.Message)
		if p.Number > 0 {
			l.info("Resuming from pass %d/%d (previous run crashed at pass %d)",
				p.Number, e.After.Passes.Total, p.Number)
		}
		l.decide(LogDecision{Decision: ResumeRun, Reason: p.Message}.about(p.Pass, l.wording))
		if next := e.After.Passes.LastSettled + 1; p.Number == next { // once, where several passes were in flight
			l.skip(next)
		}
		return
	case CategoryCancelled, CategorySuperseded:
		l.warn("  %s", p.Message)
		return
	}
	if p.Limit != nil {
		l.limit(p)
		return
	}
	level, then := LevelError, "no attempt is left"
	if p.Attempt < p.Attempts {
		then = fmt.Sprintf("%d of %d attempts are left, and another one would fail too", p.Attempts-p.Attempt, p.Attempts)
	}
	if p.RetryInMS > 0 {
		level, then = LevelWarn, fmt.Sprintf("the next in %.1fs", seconds(p.RetryInMS))
	}
	l.line(level, "  Attempt %d failed (%s): %s; %s", p.Attempt, p.Category.In(l.wording), p.Message, then)
	if p.RetryInMS > 0 {
		l.decide(LogDecision{
			Decision: "retry-pass", Attempt: p.Attempt + 1, Reason: string(p.Category.In(l.wording)),
			ExitCode: &p.ExitCode, DelayMS: p.RetryInMS,
		}.about(p.Pass, l.wording))
	}
}

// limit is a call that met a limit. It does not count as an attempt.
func (l *Log) limit(p PassAttempt) {
	if p.Limit.Kind == LimitAtOnce {
		l.info("  %s", p.Message)
		l.decide(LogDecision{Decision: "wait-for-turn", Attempt: p.Attempt, Reason: p.Message}.about(p.Pass, l.wording))
		return
	}
	then := "the attempt is not counted"
	if p.Fallback != "" {
		then += "; next: " + p.Fallback
	}
	l.warn("  %s (%s): %s; %s", p.Limit.Whose(), p.Limit.Kind.noun(), p.Message, then)
	l.decide(LogDecision{Decision: "repeat-after-limit", Attempt: p.Attempt, Reason: string(p.Limit.Kind),
		ExitCode: &p.ExitCode}.about(p.Pass, l.wording))
}

func passWords(p Pass, t Wording) string {
	if p.Number > 0 {
		return fmt.Sprintf("pass %d (%s)", p.Number, p.Role)
	}
	return p.Context(t)
}

func (l *Log) passEnded(_ *Entry, p PassEnd) {
	if p.Outcome == CategoryOK {
		l.accepted(p)
	} else {
		l.givenUp(p)
	}
	l.complete(p)
	for _, w := range p.Validation.Warnings {
		if p.Gives == "outcome" {
			l.warn("  %s", w)
			continue
		}
		l.warn("  %s from %s output", w, p.Role)
	}
}

// givenUp is a pass that settles without an answer that can be used. Of a group the others suffice.
func (l *Log) givenUp(p PassEnd) {
	if p.Member != "" {
		l.warn("  %s given up (%s); the run continues with the other reports", p.Context(l.wording), p.Outcome.In(l.wording))
	} else {
		l.line(LevelError, "  %s given up (%s); the artifact is unchanged and the run continues",
			passWords(p.Pass, l.wording), p.Outcome.In(l.wording))
	}
	d := LogDecision{Decision: "continue-after-failure", Reason: string(p.Outcome.In(l.wording))}
	l.decide(d.about(p.Pass, l.wording))
}

// accepted is what was taken from a reply.
func (l *Log) accepted(p PassEnd) {
	if p.ResumedFrom != "" {
		l.info("  Continued the agent's session %s", p.ResumedFrom)
	}
	if p.Reply != nil {
		l.info("  Output received (%s chars, ~%s tokens)", thousands(p.Reply.Chars), thousands(tokens(p.Reply.Chars)))
	}
	passed, all := p.Validation.Count()
	level := LevelInfo
	if !p.Validation.Passed {
		level = LevelWarn
	}
	l.line(level, "  Validation: %s (%d/%d checks)", PassOrFail(p.Validation.Passed), passed, all)
	result := strings.ToLower(PassOrFail(p.Validation.Passed))
	l.decide(LogDecision{Decision: "accept-output", Validation: result, Checks: all}.about(p.Pass, l.wording))
	for _, n := range p.Notes {
		chars := n.Chars
		l.info("  %s addition appended (%s chars)", Capital(n.Name), thousands(chars))
		l.decide(LogDecision{Decision: "extract-" + n.Name, Length: &chars}.about(p.Pass, l.wording))
	}
	for _, name := range p.Lacks {
		d := LogDecision{Decision: "skip-" + name, Reason: "no " + name + " markers found in output"}
		l.decide(d.about(p.Pass, l.wording))
	}
	switch {
	case p.Artifact != nil && p.Modified:
		l.info("  Artifact updated (%s chars)", thousands(p.Artifact.Chars))
	case p.Artifact != nil:
		l.warn("  Artifact unchanged")
		l.decide(LogDecision{Decision: "accept-no-modification", Reason: fmt.Sprintf(
			"Pass produced artifact identical to input. Subset %s, rotation %s, pass %d/%d.",
			p.Set, p.Order, p.InRound, p.OfRound)}.about(p.Pass, l.wording))
	}
}

func (l *Log) complete(p PassEnd) {
	name := strings.ToUpper(p.Context(l.wording))
	if p.Number > 0 {
		name = "PASS " + strconv.Itoa(p.Number)
	}
	t := p.Spend.Tokens
	l.info("  %s COMPLETE in %.1fs | %s in / %s out | %s | validation: %s", name, seconds(p.DurationMS),
		thousands(int(t.Input)), thousands(int(t.Output)), p.Spend.Text(), PassOrFail(p.Validation.Passed))
}

// PassOrFail is the result of a validation in one word.
func PassOrFail(passed bool) string {
	if passed {
		return "PASS"
	}
	return "FAIL"
}

// Capital returns a text with a capital first letter.
func Capital(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	if first == utf8.RuneError {
		return s
	}
	return string(unicode.ToUpper(first)) + s[size:]
}

// tokens is the estimate where no count was reported: a quarter of the characters.
func tokens(chars int) int { return (chars + 2) / 4 }

// thousands writes 142891 as 142,891.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
