package rundir

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/run"
)

func (l *logbook) passStarted(e entry) {
	var p run.PassStart
	e.Decode(&p)
	if p.Attempt == 1 {
		l.header(e, p)
	}
	l.line(e.Event, info, "  Invoking %s (attempt %d/%d)...", p.Agent, p.Attempt, p.Attempts)
}

func (l *logbook) header(e entry, p run.PassStart) {
	if p.Number > 0 {
		l.line(e.Event, info, "═══════════════════════════════════════")
		l.line(e.Event, info, "PASS %d/%d: %s", p.Number, e.after.Passes.Total, p.Title)
	} else {
		l.line(e.Event, info, "%s", p.Description)
	}
	if p.Gives == "artifact" {
		l.line(e.Event, info, "  Artifact backed up to %s", backupFile(p.Pass, e.book.CurrentArtifactPath))
	}
	l.line(e.Event, info, "  Prompt written (%s chars, ~%s tokens)", thousands(p.Prompt.Chars), thousands(tokens(p.Prompt.Chars)))
	l.decide(e, decision{Decision: "execute-pass", Role: p.Role, Subset: p.Set, Rotation: p.Order, Files: p.Files}.about(p.Pass))
}

// attempted is an attempt that did not settle its pass.
func (l *logbook) attempted(e entry) {
	var p run.PassAttempt
	e.Decode(&p)
	l.traceAttempt(e, p)
	if p.Spend != nil {
		l.cost(e, p.Pass, *p.Spend)
	}
	switch p.Category {
	case "lost":
		l.line(e.Event, warn, "Detected in-flight %s -- %s during execution.", passWords(p.Pass), p.Message)
		if p.Number > 0 {
			l.line(e.Event, info, "Resuming from pass %d/%d (previous run crashed at pass %d)", p.Number, e.after.Passes.Total, p.Number)
		}
		l.decide(e, decision{Decision: "resume", Reason: p.Message}.about(p.Pass))
		return
	case "cancelled", "superseded":
		l.line(e.Event, warn, "  %s", p.Message)
		return
	}
	level, then := fault, "no attempt is left"
	if p.RetryInMS > 0 {
		level, then = warn, fmt.Sprintf("the next in %.1fs", seconds(p.RetryInMS))
	}
	l.line(e.Event, level, "  Attempt %d failed (%s): %s; %s", p.Attempt, p.Category, p.Message, then)
	if p.RetryInMS > 0 {
		l.decide(e, decision{Decision: "retry-pass", Attempt: p.Attempt + 1, Reason: p.Category, ExitCode: &p.ExitCode, DelayMS: p.RetryInMS}.about(p.Pass))
	}
}

func passWords(p run.Pass) string {
	if p.Number > 0 {
		return fmt.Sprintf("pass %d (%s)", p.Number, p.Role)
	}
	return p.Context()
}

func (l *logbook) passEnded(e entry) {
	var p run.PassEnd
	e.Decode(&p)
	l.trace(e, p)
	l.cost(e, p.Pass, p.Spend)
	if p.Outcome == "ok" {
		l.accepted(e, p)
	} else {
		l.givenUp(e, p)
	}
	l.complete(e, p)
	if p.Number > 0 {
		l.summary(e, p)
		l.quality(e, p)
	}
	for _, w := range p.Validation.Warnings {
		l.line(e.Event, warn, "  %s from %s output", w, p.Role)
	}
}

// givenUp is a pass that settles without an answer that can be used. Of a group the others suffice.
func (l *logbook) givenUp(e entry, p run.PassEnd) {
	if p.Member != "" {
		l.line(e.Event, warn, "  %s given up (%s); the run goes on with the other reports", p.Context(), p.Outcome)
	} else {
		l.line(e.Event, fault, "  %s given up (%s); the artifact stays as it was and the run goes on", passWords(p.Pass), p.Outcome)
	}
	l.decide(e, decision{Decision: "continue-after-failure", Reason: p.Outcome}.about(p.Pass))
}

// accepted is what was taken from a reply.
func (l *logbook) accepted(e entry, p run.PassEnd) {
	if p.Reply != nil {
		l.line(e.Event, info, "  Output received (%s chars, ~%s tokens)", thousands(p.Reply.Chars), thousands(tokens(p.Reply.Chars)))
	}
	passed, all := count(p.Validation)
	level := info
	if !p.Validation.Passed {
		level = warn
	}
	l.line(e.Event, level, "  Validation: %s (%d/%d checks)", verdict(p.Validation.Passed), passed, all)
	l.decide(e, decision{Decision: "accept-output", Validation: strings.ToLower(verdict(p.Validation.Passed)), Checks: all}.about(p.Pass))
	for _, n := range p.Notes {
		chars := n.Chars
		l.line(e.Event, info, "  %s addition appended (%s chars)", capital(n.Name), thousands(chars))
		l.decide(e, decision{Decision: "extract-" + n.Name, Length: &chars}.about(p.Pass))
	}
	for _, name := range p.Lacks {
		l.decide(e, decision{Decision: "skip-" + name, Reason: "no " + name + " markers found in output"}.about(p.Pass))
	}
	switch {
	case p.Artifact != nil && p.Modified:
		l.line(e.Event, info, "  Artifact updated (%s chars)", thousands(p.Artifact.Chars))
	case p.Artifact != nil:
		l.line(e.Event, warn, "  Artifact unchanged")
		l.decide(e, decision{Decision: "accept-no-modification", Reason: fmt.Sprintf(
			"Pass produced artifact identical to input. Subset %s, rotation %s, pass %d/%d.", p.Set, p.Order, p.InRound, p.OfRound)}.about(p.Pass))
	}
}

func (l *logbook) complete(e entry, p run.PassEnd) {
	name := strings.ToUpper(p.Context())
	if p.Number > 0 {
		name = "PASS " + strconv.Itoa(p.Number)
	}
	t := p.Spend.Tokens
	l.line(e.Event, info, "  %s COMPLETE in %.1fs | %s in / %s out | $%.2f | validation: %s", name, seconds(p.DurationMS),
		thousands(int(t.Input)), thousands(int(t.Output)), p.Spend.USD, verdict(p.Validation.Passed))
}

// cost is one row of cost.jsonl: one per invocation.
func (l *logbook) cost(e entry, p run.Pass, c run.Spend) {
	cycle := 0
	if p.Number == 0 {
		cycle = p.Round
	}
	l.row(CostLog, CostRow{
		TS: e.TS, Pass: p.Number, PACycle: cycle, Role: p.Role, Subset: p.Set, Model: c.Model, Input: c.Tokens.Input, Output: c.Tokens.Output,
		CacheRead: c.Tokens.CacheRead, CacheWrite: c.Tokens.CacheWrite, USD: c.USD, Cumulative: e.after.Total(), Estimated: c.Estimated, Seq: e.Seq,
	})
}

// summary is one row of passes.jsonl.
func (l *logbook) summary(e entry, p run.PassEnd) {
	r := e.book.PassRecords[strconv.Itoa(p.Number)]
	chars := 0
	if p.Artifact != nil {
		chars = p.Artifact.Chars
	}
	l.row(PassesLog, struct {
		Pass       int     `json:"pass"`
		Subset     string  `json:"subset"`
		SubsetPass int     `json:"subsetPass"`
		Rotation   string  `json:"rotation"`
		Role       string  `json:"role"`
		DurationMS int64   `json:"durationMs"`
		Input      int64   `json:"inputTokens"`
		Output     int64   `json:"outputTokens"`
		USD        float64 `json:"costUsd"`
		Valid      bool    `json:"validationPassed"`
		Retries    int     `json:"retries"`
		Conviction bool    `json:"conviction"`
		Discovery  bool    `json:"discovery"`
		Chars      int     `json:"artifactSizeChars"`
		TS         string  `json:"ts"`
		Seq        int64   `json:"seq"`
	}{p.Number, p.Set, p.InRound, p.Order, p.Role, p.DurationMS, r.Tokens.InputTokens, r.Tokens.OutputTokens, r.Tokens.EstimatedCostUSD,
		p.Validation.Passed, p.Attempts - 1, r.HasConvictionAddition, r.HasDiscoveryAddition, chars, e.TS, e.Seq})
}

// quality is what a pass says about the quality of the work (requirement 002 §2.6).
func (l *logbook) quality(e entry, p run.PassEnd) {
	_, all := count(p.Validation)
	l.row(QualityLog, struct {
		TS       string   `json:"ts"`
		Pass     int      `json:"pass"`
		Type     string   `json:"type"`
		Result   string   `json:"result"`
		Checks   int      `json:"checks"`
		Warnings int      `json:"warnings"`
		Details  []string `json:"warningDetails"`
		Seq      int64    `json:"seq"`
	}{e.TS, p.Number, "validation", strings.ToLower(verdict(p.Validation.Passed)), all, len(p.Validation.Warnings), list(p.Validation.Warnings), e.Seq})
	if len(p.Tally) > 0 {
		row := map[string]any{"ts": e.TS, "pass": p.Number, "type": "verifier-depth", "seq": e.Seq}
		for _, t := range p.Tally {
			row[t.Name] = t.Count
		}
		l.row(QualityLog, row)
	}
	if p.Artifact != nil && !p.Modified {
		l.row(QualityLog, map[string]any{"ts": e.TS, "pass": p.Number, "type": "no-modification", "subset": p.Set, "rotation": p.Order, "seq": e.Seq})
	}
}

// trace is one row of traces.jsonl: a call by reference.
func (l *logbook) trace(e entry, p run.PassEnd) {
	if p.Attempted {
		return // its last call has a row already
	}
	row := TraceRow{
		Seq: e.Seq, TS: e.TS, Call: p.Call, Turn: p.Step, Role: path.Base(member(p.Pass)), PromptPath: promptFile(p.Pass), Reply: run.DigestOf(p.Reply),
		Outcome: p.Outcome, DurationMS: p.DurationMS, Reused: p.Reused, Joined: p.Joined,
	}
	if p.Reply != nil {
		row.ReplyPath = replyFile(p.Pass, scored(p))
	}
	if p.Envelope != nil {
		row.AgentPath = envelopeFile(p.Pass)
	}
	l.row(TracesFile, row)
}

// traceAttempt is the row of a call that was answered and could not be used.
func (l *logbook) traceAttempt(e entry, p run.PassAttempt) {
	if p.Prompt == nil {
		return
	}
	nth := attemptNumber(p, e.book.FailedOutputs[failedKey(p.Pass)]-1) // it is counted
	row := TraceRow{
		Seq: e.Seq, TS: e.TS, Call: attemptCall(p), Turn: p.Step, Role: path.Base(member(p.Pass)), PromptPath: failedPrompt(p.Pass, nth),
		ReplyPath: failedFile(p.Pass, nth), Reply: run.DigestOf(p.Output), Outcome: p.Category, DurationMS: p.DurationMS,
	}
	if p.Envelope != nil {
		row.AgentPath = failedEnvelope(p.Pass, nth)
	}
	l.row(TracesFile, row)
}

// errorRow is one line of errors.jsonl: an error record whose time is called ts.
func errorRow(r ErrorRecord) any {
	return struct {
		TS          string `json:"ts"`
		Context     string `json:"context"`
		Category    string `json:"category"`
		Message     string `json:"message"`
		Recovered   bool   `json:"recovered"`
		RecoveredAt *int   `json:"recoveredAtAttempt"`
		Diagnostics string `json:"diagnostics"`
	}{r.Timestamp, r.Context, r.Category, r.Message, r.Recovered, r.RecoveredAtAttempt, r.Diagnostics}
}

func count(v run.Validation) (passed, all int) {
	for _, c := range v.Checks {
		if c.Passed {
			passed++
		}
	}
	return passed, len(v.Checks)
}

func verdict(passed bool) string {
	if passed {
		return "PASS"
	}
	return "FAIL"
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// tokens is the estimate where nobody counted: a quarter of the characters.
func tokens(chars int) int { return (chars + 2) / 4 }

// thousands writes 142891 as 142,891.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
