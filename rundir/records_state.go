package rundir

import (
	"maps"
	"slices"
	"strconv"

	"github.com/passbook-run/passbook/run"
)

// ledger is state.json while events are folded over it.
type ledger struct{ *PipelineState }

// Fold folds one event over the records; s is the small state after it.
func FoldRecords(b *PipelineState, e run.Event, s *run.State) { ledger{b}.fold(e, s) }

// fold folds one event into the records, after the small state was folded over it. It is the second layer of the fold,
// on disk only.
func (b ledger) fold(e run.Event, s *run.State) {
	switch e.Kind {
	case run.KindRunStart:
		b.start(e)
	case run.KindRunAmended:
		b.amend(e)
	case run.KindPhaseStart:
		b.openCycle(e)
	case run.KindPhaseEnd:
		b.closeCycle(e)
	case run.KindPassStart:
		b.startPass(e)
	case run.KindPassAttempt:
		b.attempt(e, s.Wording)
	case run.KindPassEnd:
		b.endPass(e, s)
	case run.KindChildEnded:
		b.countCalls(run.PayloadOf[run.ChildEnd](e).Cost)
	case run.KindChildSkipped:
		b.countCalls(run.PayloadOf[run.ChildSkip](e).Cost)
	case run.KindScreenshots:
		b.pictures(e)
	case run.KindScoreRecorded:
		b.score(e)
	}
	b.errors(e, s.Wording)
	b.refresh(s)
}

func (b ledger) start(e run.Event) {
	var p run.RunStart
	e.Decode(&p)
	b.RunID, b.ConfigHash, b.StartedAt = p.RunID, p.ConfigHash, e.TS
	b.TotalCorpusPasses, b.MaxPACycles, b.PAScoreThreshold = p.TotalPasses, p.MaxRounds, p.Threshold
	if p.Artifact != nil {
		b.CurrentArtifactPath = p.Artifact.File
	}
	for i, n := range p.Notes {
		switch i {
		case 0:
			b.ConvictionLayerPath = NoteFile(n.File)
		case 1:
			b.DiscoveryLogPath = NoteFile(n.File)
		}
	}
}

// amend copies the plan in force. The hash of the start stays: the directory belongs to it.
func (b ledger) amend(e run.Event) {
	var a run.RunAmended
	e.Decode(&a)
	b.TotalCorpusPasses, b.MaxPACycles, b.PAScoreThreshold = a.Terms.TotalPasses, a.Terms.MaxRounds, a.Terms.Threshold
}

// refresh copies the small state into the fields that mirror it.
func (b ledger) refresh(s *run.State) {
	b.LastSeq, b.LastSavedAt = s.Seq, s.TS
	if !s.Status.Closed() {
		b.CompletedAt = nil
	} else if s.FinishedAt != "" {
		b.CompletedAt = text(s.FinishedAt)
	}
	b.phase(s)
	b.LastCompletedCorpusPass, b.CompletedPACycles, b.LastPAScore = s.Passes.LastSettled, s.Rounds, s.Score
	b.CurrentSubsetID = text(s.Set)
	if s.Artifact != nil {
		b.CurrentArtifactHash = s.Artifact.Digest
	}
	if len(s.Notes) > 0 {
		b.ConvictionEntryCount = s.Notes[0].Entries
	}
	if len(s.Notes) > 1 {
		b.DiscoveryEntryCount = s.Notes[1].Entries
	}
	b.Generation, b.SunkCostUSD = s.Generation, s.SunkUSD
	b.inFlight(s)
	b.costs(s)
}

// phase returns requirement 002's currentPhase: the stage's name while the run lives, else complete, paused or failed.
func (b ledger) phase(s *run.State) {
	b.PhaseReason, b.PausedFrom = nil, nil
	switch {
	case s.Status == run.Done:
		b.CurrentPhase = "complete"
	case s.Status.Closed():
		b.CurrentPhase, b.PhaseReason = "failed", text(s.Reason)
		if s.Reason == "" {
			b.PhaseReason = text(string(s.Status))
		}
	case s.Status.Class() == run.OperatorPause:
		b.CurrentPhase, b.PhaseReason, b.PausedFrom = "paused", text(s.Reason), text(s.Phase)
		if s.Reason == "" {
			b.PhaseReason = text(string(s.Status))
		}
	default:
		b.CurrentPhase = s.Phase
	}
}

func (b ledger) inFlight(s *run.State) {
	keep := b.InFlightPass
	b.InFlightPass = nil
	if keep == nil {
		return
	}
	for _, f := range s.InFlight {
		if f.Member == "" && f.Step == stepKey(keep.GlobalPassNumber) {
			b.InFlightPass = keep
		}
	}
}

func stepKey(number int) string {
	s := strconv.Itoa(number)
	for len(s) < 3 {
		s = "0" + s
	}
	return s
}

func (b ledger) costs(s *run.State) {
	c := &b.Cost
	t := s.Spent.Tokens
	c.TotalInputTokens, c.TotalOutputTokens, c.TotalCacheReadTokens, c.TotalCacheWriteTokens = t.Input, t.Output,
		t.CacheRead, t.CacheWrite
	c.TotalEstimatedCostUSD = s.Spent.USD
	c.BudgetWarningThresholdUSD, c.BudgetHardCapUSD = s.Budget.WarnUSD, s.Budget.CapUSD
	c.WarningThresholdHit = s.Warned
	c.HardCapHit = s.BudgetShort() // reached, or what remains does not cover the next call
	for _, r := range s.ByRole {
		passes := c.ByRole[r.Name].PassCount // of passes, where the small state counts calls
		c.ByRole[r.Name] = RoleCost{InputTokens: r.Tokens.Input, OutputTokens: r.Tokens.Output, CostUSD: r.USD,
			PassCount: passes, UnknownCalls: r.Unknown}
	}
	if len(c.ByRole) > len(s.ByRole) { // a revert went back to before the first call of a role
		maps.DeleteFunc(c.ByRole, func(role string, _ RoleCost) bool {
			return !slices.ContainsFunc(s.ByRole, func(r run.Named) bool { return r.Name == role })
		})
	}
}

// addCost counts one pass in one row of a breakdown; unknown counts its calls without a known cost.
func addCost(rows map[string]RoleCost, name string, c run.Spend, unknown int) {
	r := rows[name]
	r.InputTokens += c.Tokens.Input
	r.OutputTokens += c.Tokens.Output
	r.CostUSD = run.Cents(r.CostUSD + c.USD)
	r.PassCount++
	r.UnknownCalls += unknown
	rows[name] = r
}

func (b ledger) errors(e run.Event, t run.Wording) {
	o := decideErrors(e, t, b.PendingErrors)
	b.PendingErrors, b.ErrorHistory = o.pending, append(b.ErrorHistory, o.records...)
}

// text is a nullable string: empty is null.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
