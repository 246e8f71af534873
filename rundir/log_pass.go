package rundir

import (
	"path"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/run"
)

// attempted is an attempt that did not settle its pass.
func (l *logbook) attempted(e entry) {
	var p run.PassAttempt
	e.Decode(&p)
	l.traceAttempt(e, p)
	if p.Spend != nil {
		l.cost(e, p.Pass, *p.Spend)
	}
}

func (l *logbook) passEnded(e entry) {
	var p run.PassEnd
	e.Decode(&p)
	l.trace(e, p)
	l.cost(e, p.Pass, p.Spend)
	if p.Number > 0 {
		l.summary(e, p)
		l.quality(e, p)
	}
}

// cost is one row of cost.jsonl: one per invocation.
func (l *logbook) cost(e entry, p run.Pass, c run.Spend) {
	cycle := 0
	if p.Number == 0 {
		cycle = p.Round
	}
	l.row(CostLog, CostRow{
		TS: e.TS, Pass: p.Number, PACycle: cycle, Role: p.Role, Subset: p.Set, Model: c.Model, Input: c.Tokens.Input,
		Output:    c.Tokens.Output,
		CacheRead: c.Tokens.CacheRead, CacheWrite: c.Tokens.CacheWrite, USD: c.USD, Cumulative: e.After.Total(),
		Estimated: c.Estimated, Known: string(c.Known), Covers: c.Covers, Seq: e.Seq,
	})
}

// childCost has one row of cost.jsonl for each role of a lane.
func (l *logbook) childCost(e entry, c run.ChildCost) {
	for i, r := range c.ByRole {
		after := e.After.Total()
		for _, later := range c.ByRole[i+1:] {
			after = run.Cents(after - later.USD)
		}
		l.row(CostLog, CostRow{TS: e.TS, Role: r.Name, Input: r.Tokens.Input, Output: r.Tokens.Output,
			CacheRead: r.Tokens.CacheRead, CacheWrite: r.Tokens.CacheWrite, USD: r.USD, Cumulative: after,
			Estimated: r.EstimatedUSD > 0, Known: string(r.Known), Seq: e.Seq})
	}
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
	}{p.Number, p.Set, p.InRound, p.Order, p.Role, p.DurationMS, r.Tokens.InputTokens, r.Tokens.OutputTokens,
		r.Tokens.EstimatedCostUSD,
		p.Validation.Passed, p.Attempts - 1, r.HasConvictionAddition, r.HasDiscoveryAddition, chars, e.TS, e.Seq})
}

// quality is what a pass reports about the quality of the work (requirement 002 §2.6).
func (l *logbook) quality(e entry, p run.PassEnd) {
	l.row(QualityLog, struct {
		TS       string   `json:"ts"`
		Pass     int      `json:"pass"`
		Type     string   `json:"type"`
		Result   string   `json:"result"`
		Checks   int      `json:"checks"`
		Warnings int      `json:"warnings"`
		Details  []string `json:"warningDetails"`
		Seq      int64    `json:"seq"`
	}{e.TS, p.Number, "validation", strings.ToLower(run.PassOrFail(p.Validation.Passed)), len(p.Validation.Checks),
		len(p.Validation.Warnings), list(p.Validation.Warnings), e.Seq})
	if len(p.Tally) > 0 {
		row := map[string]any{"ts": e.TS, "pass": p.Number, "type": "verifier-depth", "seq": e.Seq}
		for _, t := range p.Tally {
			row[t.Name] = t.Count
		}
		l.row(QualityLog, row)
	}
	if p.Artifact != nil && !p.Modified {
		l.row(QualityLog, map[string]any{"ts": e.TS, "pass": p.Number, "type": "no-modification",
			"subset": p.Set, "rotation": p.Order, "seq": e.Seq})
	}
}

// trace is one row of traces.jsonl: a call by reference.
func (l *logbook) trace(e entry, p run.PassEnd) {
	if p.Attempted {
		return // its last call has a row already
	}
	row := TraceRow{
		Seq: e.Seq, TS: e.TS, Call: p.Call, Turn: e.turn(), Step: p.Step, Role: path.Base(Member(p.Pass)),
		PromptPath: PromptFile(p.Pass), Reply: run.DigestOf(p.Reply),
		Outcome: p.Outcome.In(e.After.Wording), DurationMS: p.DurationMS, Reused: p.Reused, Joined: p.Joined,
	}
	if p.Reply != nil {
		row.ReplyPath = ReplyFile(p.Pass)
	}
	if p.Envelope != nil {
		row.AgentPath = EnvelopeFile(p.Pass)
	}
	l.row(TracesFile, row)
	l.traceTools(row, p.Tools)
}

// traceTools are the rows of the tool calls in a call.
func (l *logbook) traceTools(call TraceRow, tools *run.ToolUses) {
	if tools == nil {
		return
	}
	for _, t := range tools.First {
		l.row(TracesFile, ToolRow{Seq: call.Seq, TS: call.TS, Call: call.Call, Turn: call.Turn, Step: call.Step,
			Role: call.Role, Tool: t.Name, Input: t.Input, InputDigest: t.Digest, State: t.State})
	}
}

// traceAttempt is the row of a call that was answered and could not be used.
func (l *logbook) traceAttempt(e entry, p run.PassAttempt) {
	if p.Prompt == nil {
		return
	}
	nth := AttemptNumber(p, e.book.FailedOutputs[FailedKey(p.Pass)]-1) // it is counted
	turn := e.turn()
	if p.CountsAsTurn(e.After) && p.Late == 0 {
		turn++ // the number that it has when it settles
	}
	row := TraceRow{
		Seq: e.Seq, TS: e.TS, Call: AttemptCall(p), Turn: turn, Step: p.Step, Role: path.Base(Member(p.Pass)),
		PromptPath: FailedPrompt(p.Pass, nth),
		ReplyPath:  FailedFile(p.Pass, nth), Reply: run.DigestOf(p.Output), Outcome: p.Category.In(e.After.Wording),
		DurationMS: p.DurationMS,
	}
	if p.Envelope != nil {
		row.AgentPath = FailedEnvelope(p.Pass, nth)
	}
	l.row(TracesFile, row)
	l.traceTools(row, p.Tools)
}
