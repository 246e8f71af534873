package rundir

import (
	"strconv"

	"github.com/passbook-run/passbook/run"
)

// newState is state.json before any event.
func newState() PipelineState {
	return PipelineState{
		SchemaVersion:   StateSchema,
		PassRecords:     ByNumber[PassRecord]{},
		PACycleRecords:  ByNumber[PACycleRecord]{},
		ArtifactBackups: []string{},
		Checkpoints:     []CheckpointRecord{},
		ErrorHistory:    []ErrorRecord{},
		PendingErrors:   []ErrorRecord{},
		PendingSpend:    []PendingSpend{},
		FailedOutputs:   map[string]int{},
		Aside:           map[string]int{},
		Cost:            CostTracker{ByRole: map[string]RoleCost{}, BySubset: map[string]RoleCost{}, ByPACycle: ByNumber[RoleCost]{}},
	}
}

// apply folds one event into the records, after the small state was folded over it. It is the second layer of the fold, on disk only.
func (b *PipelineState) apply(e run.Event, s run.State) {
	switch e.Kind {
	case run.KindRunStart:
		b.start(e)
	case run.KindPhaseStart:
		b.openCycle(e)
	case run.KindPhaseEnd:
		b.closeCycle(e)
	case run.KindPassStart:
		b.startPass(e)
	case run.KindPassAttempt:
		b.attempt(e)
	case run.KindPassEnd:
		b.endPass(e, s)
	case run.KindScreenshots:
		b.pictures(e)
	case run.KindScoreRecorded:
		b.score(e)
	}
	b.errors(e)
	b.refresh(e, s)
}

func (b *PipelineState) start(e run.Event) {
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
			b.ConvictionLayerPath = noteFile(n.File)
		case 1:
			b.DiscoveryLogPath = noteFile(n.File)
		}
	}
}

// refresh copies what the small state says into the fields that mirror it.
func (b *PipelineState) refresh(e run.Event, s run.State) {
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

// phase gives requirement 002's currentPhase: the stage's name while the run lives, else complete, paused or failed.
func (b *PipelineState) phase(s run.State) {
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

func (b *PipelineState) inFlight(s run.State) {
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

func (b *PipelineState) costs(s run.State) {
	c := &b.Cost
	t := s.Spent.Tokens
	c.TotalInputTokens, c.TotalOutputTokens, c.TotalCacheReadTokens, c.TotalCacheWriteTokens = t.Input, t.Output, t.CacheRead, t.CacheWrite
	c.TotalEstimatedCostUSD = s.Spent.USD
	c.BudgetWarningThresholdUSD, c.BudgetHardCapUSD = s.Budget.WarnUSD, s.Budget.CapUSD
	c.WarningThresholdHit = s.Warned
	c.HardCapHit = s.Budget.CapUSD > 0 && s.Total() >= s.Budget.CapUSD
	counted := c.ByRole // passes, where the small state counts calls
	c.ByRole = map[string]RoleCost{}
	for _, r := range s.ByRole {
		c.ByRole[r.Name] = RoleCost{InputTokens: r.Tokens.Input, OutputTokens: r.Tokens.Output, CostUSD: r.USD, PassCount: counted[r.Name].PassCount}
	}
}

// addCost counts one call in one row of a breakdown.
func addCost(rows map[string]RoleCost, name string, c run.Spend) {
	r := rows[name]
	r.InputTokens += c.Tokens.Input
	r.OutputTokens += c.Tokens.Output
	r.CostUSD = run.Cents(r.CostUSD + c.USD)
	r.PassCount++
	rows[name] = r
}

func (b *PipelineState) errors(e run.Event) {
	o := decideErrors(e, b.PendingErrors)
	b.PendingErrors, b.ErrorHistory = o.pending, append(b.ErrorHistory, o.records...)
}

// text is a nullable string: empty is null.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
