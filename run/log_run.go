package run

import (
	"fmt"
	"slices"
	"strings"
)

func (l *Log) started(_ *Entry, p RunStart) {
	l.info("Pipeline started. Run ID: %s", p.RunID)
	l.info("Config hash: %s", p.ConfigHash)
	reason := "no run was here"
	for _, w := range p.Warnings {
		l.warn("%s", w)
		if strings.HasSuffix(w, ArchivedState) {
			reason = w
		}
	}
	l.decide(LogDecision{Decision: FreshStart, Reason: reason})
}

// resumed records where the run continues, and every pass that is not done again.
func (l *Log) resumed(e *Entry, p RunResumed) {
	if p.Waits {
		l.warn("Epoch %d continues from this directory: %s", p.Epoch, p.Why)
		l.decide(LogDecision{Decision: "continue-directory", Reason: p.Why, By: p.By})
		return
	}
	next := e.After.Passes.LastSettled + 1
	reason := "resumed after " + string(p.From)
	if e.Before.Reason != "" {
		reason += " (" + e.Before.Reason + ")"
	}
	l.info("Resuming from pass %d/%d (%s)", min(next, e.After.Passes.Total), e.After.Passes.Total, reason)
	l.decide(LogDecision{Decision: ResumeRun, Reason: reason, PassNumber: next, By: p.By})
	l.skip(next)
}

// skip records each pass before the one where a run continues.
func (l *Log) skip(next int) {
	for n := 1; n < next; n++ {
		l.decide(LogDecision{Decision: "skip-pass", Reason: "pass already completed", PassNumber: n})
	}
}

func (l *Log) paused(e *Entry, p RunPaused) {
	level, text := LevelWarn, fmt.Sprintf("Pipeline paused: %s. %s", p.Reason, p.Detail)
	if p.Reason == UserRequested {
		level, text = LevelInfo, "Pipeline paused by user. Resume with the same configuration."
	}
	if slices.Contains([]string{PassFailed, ConsecutiveFailures, GateFailed, SetupFailed}, p.Reason) {
		level = LevelError
	}
	l.line(level, "%s", text)
	d := LogDecision{Decision: "pause-pipeline", Reason: p.Reason, By: p.By}
	total := e.After.Total()
	d.Cost = &total
	if p.Reason == BudgetThreshold {
		d.Threshold = &e.After.Budget.CapUSD
	}
	l.decide(d)
}

func (l *Log) limited(e *Entry, _ RunLimited) {
	text := e.After.LimitText(Clock{})
	l.warn("Pipeline %s", text)
	l.decide(LogDecision{Decision: "wait-for-limit", Reason: text})
}

func (l *Log) unlimited(_ *Entry, p RunUnlimited) {
	l.info("Wait for the limit ended: %s", p.why())
	l.decide(LogDecision{Decision: "end-wait-for-limit", Reason: p.why(), By: p.By})
}

func (l *Log) ended(e *Entry, _ RunEnd) {
	s := e.After
	l.info("═══════════════════════════════════════")
	if s.Wording == WordingStages {
		l.info("Pipeline %s: %s, %s", s.Status, s.Progress(), s.CostWords())
	} else {
		l.info("Pipeline %s: %d/%d passes, %s, %s",
			s.Status, s.Passes.LastSettled, s.Passes.Total, Plural(s.Rounds, "PA cycle"), s.CostWords())
	}
	if t := e.Threshold; t != nil && s.Score != nil && *s.Score < *t {
		l.warn("Score threshold not met (%.1f of %.1f)", *s.Score, *t)
	}
	l.decide(LogDecision{Decision: "end-pipeline", Reason: string(s.Status)})
}

func (l *Log) reverted(e *Entry, p RunReverted) {
	l.warn("Reverted to event %d (%s): events %d to %d are abandoned",
		p.To, p.Cause, p.Abandoned.First, p.Abandoned.Last)
	l.decide(LogDecision{Decision: "revert", Reason: p.Cause, PassNumber: e.After.Passes.LastSettled})
}

func (l *Log) budgetRaised(_ *Entry, p BudgetEvent) {
	l.info("Budget set to %s by %s", p.Budget.Words(), p.By)
	l.decide(LogDecision{Decision: "set-budget", Reason: "asked for", Threshold: &p.CapUSD, By: p.By})
}

func (l *Log) budgetWarned(e *Entry, p BudgetEvent) {
	l.warn("Budget warning: %s of $%.2f are spent (%s)",
		CostText(p.TotalUSD, e.After.UnknownCalls()), p.CapUSD, breakdown(*e.After))
}

func breakdown(s State) string {
	text := ""
	for i, r := range s.ByRole {
		if i > 0 {
			text += ", "
		}
		text += r.Name + " " + ShortCost(r.USD, r.Unknown)
	}
	return text
}

func (l *Log) refused(_ *Entry, p DecisionRefused) {
	if p.Count > 1 {
		l.warn("%d more messages refused, the last one %s: %s", p.Count, p.Verb, p.Reason)
	} else {
		l.warn("Message %s refused: %s", p.Verb, p.Reason)
	}
	l.decide(LogDecision{Decision: "refuse-" + p.Verb, Reason: p.Reason, By: p.By})
}
