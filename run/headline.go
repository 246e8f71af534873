package run

import "fmt"

// Headline is one line about an event for those who watch a run; empty: none. It may hold control characters of agents
// and people.
func Headline(e Entry) string {
	if r := kinds()[e.Kind]; r != nil {
		return r.headline(&e)
	}
	return ""
}

// Headlines makes the headlines of a stream, in which a pass costs what all its attempts do.
type Headlines struct {
	tried map[string]Totals // failed attempts of passes that are not settled
}

// Of is the headline of the next event.
func (h *Headlines) Of(e Entry) string {
	if e.Kind != KindPassAttempt && e.Kind != KindPassEnd {
		return Headline(e)
	}
	p := decoded[PassAttempt](&e.Event)
	call := p.Step + "/" + p.Member
	if e.Kind == KindPassEnd {
		e.Tried = h.tried[call]
		delete(h.tried, call)
		return Headline(e)
	}
	if p.Spend != nil {
		if h.tried == nil {
			h.tried = map[string]Totals{}
		}
		t := h.tried[call]
		t.Add(*p.Spend)
		h.tried[call] = t
	}
	return Headline(e)
}

// noHeadline is the headline of events that have none.
func noHeadline[P any](*Entry, P) string { return "" }

func phaseHeadline(e *Entry, p PhaseStart) string {
	if most := e.After.MaxRounds(); most > 0 {
		return p.Title + ", " + e.After.RoundWords(e.After.Wording.Words().Round, most)
	}
	if p.Dir != "" {
		return fmt.Sprintf("%s, %s %d", p.Title, e.After.Wording.Words().Round, p.Round)
	}
	return p.Title
}

func attemptHeadline(e *Entry, p PassAttempt) string {
	if p.Category == CategoryLost { // no failure: the next worker joins the call, continues its session or makes it again
		return fmt.Sprintf("  … %s: worker restarted (%s)", p.Pass.label(), p.Message)
	}
	return fmt.Sprintf("  ! %s attempt %d: %s — %s", p.Pass.label(), p.Attempt, p.Category.In(e.After.Wording),
		p.Message)
}

func limitedHeadline(e *Entry, _ RunLimited) string {
	return "  … " + e.After.LimitText(e.clock())
}

func passHeadline(e *Entry, p PassEnd) string {
	extra := ""
	if p.Artifact != nil && !p.Modified {
		extra = "  unchanged"
	}
	if p.Joined {
		extra += "  worker restarted"
	}
	if p.Reused {
		extra += "  reused"
	}
	if p.Verdict != "" {
		extra += "  verdict " + p.Verdict
	}
	if p.Value != "" && p.Verdict == "" && p.Role == commandRole {
		extra += "  " + p.Value
	}
	spent := e.Tried
	spent.Add(p.Spend)
	cost := CostPhrase(spent.USD, spent.Unknown)
	if total := e.After.Total(); total > 0 || e.After.UnknownCalls() == 0 {
		extra = "  " + ShortCost(total, e.After.UnknownCalls()) + extra
	}
	sign := "✓"
	if !p.Validation.Passed {
		sign = "✗"
	}
	return fmt.Sprintf("  %s %-22s %6.1fs  %6s  %s%s", sign, p.Pass.label(), seconds(p.DurationMS), cost,
		PassOrFail(p.Validation.Passed), extra)
}

// label names a pass in few characters.
func (p Pass) label() string {
	if p.Number > 0 {
		place := ""
		if p.Set != "" {
			place = fmt.Sprintf("%s/%d%s ", p.Set, p.InRound, p.Order)
		}
		return fmt.Sprintf("%3d %s%s", p.Number, place, p.Role)
	}
	return p.Who()
}

func picturesHeadline(e *Entry, p Screenshots) string {
	if p.Degraded {
		return "  ! no screenshots, the " + e.After.Wording.Words().Judges + " get the source instead: " + p.Message
	}
	return fmt.Sprintf("  ✓ %d screenshots %.1fs", p.Count, seconds(p.DurationMS))
}

func picturesFailedHeadline(_ *Entry, p ShotsAttempt) string {
	return fmt.Sprintf("  ! screenshots attempt %d: %s", p.Attempt, p.Message)
}

func scoreHeadline(_ *Entry, p ScoreRecorded) string {
	if p.Score == nil {
		return fmt.Sprintf("  ! no %s score: %s", p.Name, p.Why)
	}
	target := ""
	if p.Threshold != nil {
		target = fmt.Sprintf(" (target %.1f)", *p.Threshold)
	}
	return fmt.Sprintf("  ◆ %s %.1f%s", p.Name, *p.Score, target)
}

func budgetHeadline(e *Entry, _ BudgetEvent) string {
	return fmt.Sprintf("  ! %s of %s are spent", e.After.CostText(), dollars(e.After.Budget.CapUSD))
}

func checkpointHeadline(_ *Entry, p CheckpointCreated) string { return "  ● checkpoint " + p.ID }

func errorHeadline(e *Entry, p ErrorNoted) string {
	return fmt.Sprintf("  ! %s — %s", p.Category.In(e.After.Wording), p.Message)
}

func damageHeadline(_ *Entry, p JournalDamage) string { return "  ! journal damaged: " + p.String() }

func revertHeadline(*Entry, RunReverted) string {
	return "  ! the journal continues after lines that were abandoned"
}

func dollars(v float64) string { return fmt.Sprintf("$%.2f", v) }
