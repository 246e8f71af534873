package rundir

import (
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/passbook-run/passbook/run"
)

func (b *PipelineState) startPass(e run.Event) {
	var p run.PassStart
	e.Decode(&p)
	if p.Gives == "artifact" && p.Before != "" {
		b.addBackup(backupFile(p.Pass, b.CurrentArtifactPath))
	}
	if p.Number > 0 {
		b.InFlightPass = &InFlightPass{GlobalPassNumber: p.Number, StartedAt: e.TS, AgentRole: p.Role, SubsetID: p.Set}
	}
}

func (b *PipelineState) addBackup(file string) {
	if !slices.Contains(b.ArtifactBackups, file) && !b.older.holds("artifactBackups", file) {
		b.ArtifactBackups = append(b.ArtifactBackups, file)
	}
}

func (b *PipelineState) endPass(e run.Event, s run.State) {
	var p run.PassEnd
	e.Decode(&p)
	p.Spend = b.takeSpend(p.Context(), p.Spend)
	if p.Number > 0 {
		b.PassRecords[strconv.Itoa(p.Number)] = b.record(p)
		b.InFlightPass = nil
	}
	b.countPass(p.Pass)
	if p.Turn() {
		b.Turns++
	}
	if p.Set != "" {
		addCost(b.Cost.BySubset, p.Set, p.Spend)
	}
	if b.OpenCycle != nil && p.Number == 0 {
		b.cycleCall(p)
	}
}

// countPass counts a pass in its role. Passes without a number are "pa", as in the small state.
func (b *PipelineState) countPass(p run.Pass) {
	role := p.Role
	if p.Number == 0 {
		role = "pa"
	}
	r := b.Cost.ByRole[role]
	r.PassCount++
	b.Cost.ByRole[role] = r
}

func (b *PipelineState) record(p run.PassEnd) PassRecord {
	r := PassRecord{
		GlobalPassNumber: p.Number, SubsetPassNumber: p.InRound, SubsetID: p.Set, Rotation: p.Order, AgentRole: p.Role,
		Description: p.Description, StartedAt: p.StartedAt, CompletedAt: p.CompletedAt, DurationMS: p.DurationMS,
		RetryCount: p.Attempts - 1, PromptPath: promptFile(p.Pass), RawOutputPath: replyFile(p.Pass, false),
		ValidationPassed: p.Validation.Passed, ValidationDetails: p.Validation,
		Tokens: PassTokens{
			InputTokens: p.Spend.Tokens.Input, OutputTokens: p.Spend.Tokens.Output, CacheReadTokens: p.Spend.Tokens.CacheRead,
			CacheWriteTokens: p.Spend.Tokens.CacheWrite, EstimatedCostUSD: p.Spend.USD, Estimated: p.Spend.Estimated,
		},
		CorpusFilesLoaded: list(p.Files), ReferenceFilesLoaded: list(p.References), Outcome: p.Outcome,
	}
	r.HasConvictionAddition, r.HasDiscoveryAddition = b.added(p.Notes)
	if p.Outcome != "ok" {
		r.RawOutputPath = failedFile(p.Pass, max(1, b.FailedOutputs[failedKey(p.Pass)]))
	}
	if p.Gives == "artifact" && p.Before != "" {
		r.BackupPath = text(backupFile(p.Pass, b.CurrentArtifactPath))
	}
	if p.Artifact != nil {
		r.ArtifactPath, r.ArtifactHash = text(b.CurrentArtifactPath), text(p.Artifact.Digest)
	}
	return r
}

// added says which of the first two notes a pass added to: conviction and discovery in the words of requirement 002.
func (b *PipelineState) added(notes []run.Added) (first, second bool) {
	for _, n := range notes {
		first = first || noteFile(n.File) == b.ConvictionLayerPath
		second = second || noteFile(n.File) == b.DiscoveryLogPath
	}
	return first, second
}

func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

func (b *PipelineState) attempt(e run.Event) {
	var p run.PassAttempt
	e.Decode(&p)
	if p.Output != nil && p.Late == 0 {
		b.FailedOutputs[failedKey(p.Pass)]++
	}
	if p.Spend != nil {
		b.PendingSpend = append(b.PendingSpend, PendingSpend{Context: p.Context(), Spend: *p.Spend})
	}
}

// takeSpend adds what earlier attempts of a pass have cost to what its last call cost: the total is the sum of the records.
func (b *PipelineState) takeSpend(of string, last run.Spend) run.Spend {
	rest := []PendingSpend{}
	for _, w := range b.PendingSpend {
		if w.Context != of {
			rest = append(rest, w)
			continue
		}
		last.Tokens.Input += w.Spend.Tokens.Input
		last.Tokens.Output += w.Spend.Tokens.Output
		last.Tokens.CacheRead += w.Spend.Tokens.CacheRead
		last.Tokens.CacheWrite += w.Spend.Tokens.CacheWrite
		last.USD = run.Cents(last.USD + w.Spend.USD)
		last.Estimated = last.Estimated || w.Spend.Estimated
	}
	b.PendingSpend = rest
	return last
}

func failedKey(p run.Pass) string { return failedFile(p, 1) }

func (b *PipelineState) openCycle(e run.Event) {
	var p run.PhaseStart
	e.Decode(&p)
	b.OpenCycle, b.InFlightPACycle = nil, nil
	if p.Dir == "" {
		return
	}
	b.OpenCycle = &PACycleRecord{CycleNumber: p.Round, StartedAt: e.TS, ScreenshotDir: path.Join(orchestrator, p.Dir), Auditors: []AuditorRecord{}}
	b.InFlightPACycle = &InFlightCycle{Cycle: p.Round, StartedAt: e.TS, Done: map[string]bool{}}
}

func (b *PipelineState) pictures(e run.Event) {
	var p run.Screenshots
	e.Decode(&p)
	if b.OpenCycle == nil {
		return
	}
	b.OpenCycle.ScreenshotCount = p.Count
	b.InFlightPACycle.Done["screenshots"] = true
}

func (b *PipelineState) cycleCall(p run.PassEnd) {
	c := b.OpenCycle
	tokens := CallTokens{InputTokens: p.Spend.Tokens.Input, OutputTokens: p.Spend.Tokens.Output, EstimatedCostUSD: p.Spend.USD}
	c.TotalCycleCostUSD = run.Cents(c.TotalCycleCostUSD + p.Spend.USD)
	addCost(b.Cost.ByPACycle, strconv.Itoa(c.CycleNumber), p.Spend)
	b.InFlightPACycle.Done[member(p.Pass)] = true
	switch {
	case p.Member != "":
		c.Auditors = append(c.Auditors, AuditorRecord{ID: p.Member, ReportPath: replyFile(p.Pass, false), Tokens: tokens, DurationMS: p.DurationMS, Score: p.Score})
		slices.SortFunc(c.Auditors, func(x, y AuditorRecord) int { return compare(x.ID, y.ID) })
	case p.Gives == "artifact":
		c.Refine = &RefineRecord{
			ArtifactPath: nil, BackupPath: backupFile(p.Pass, b.CurrentArtifactPath), Tokens: tokens, DurationMS: p.DurationMS,
			ValidationPassed: p.Validation.Passed,
		}
		if p.Artifact != nil {
			c.Refine.ArtifactPath = text(b.CurrentArtifactPath)
		}
	default:
		c.Weaver = &ReportRecord{ReportPath: replyFile(p.Pass, true), Tokens: tokens, DurationMS: p.DurationMS}
	}
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (b *PipelineState) score(e run.Event) {
	var p run.ScoreRecorded
	e.Decode(&p)
	if b.OpenCycle != nil {
		b.OpenCycle.PAScore, b.OpenCycle.MetThreshold = p.Score, p.Met
	}
}

func (b *PipelineState) closeCycle(e run.Event) {
	var p run.PhaseEnd
	e.Decode(&p)
	if b.OpenCycle == nil || !p.Repeats {
		return
	}
	c := *b.OpenCycle
	c.CompletedAt, c.DurationMS = e.TS, between(c.StartedAt, e.TS)
	b.PACycleRecords[strconv.Itoa(c.CycleNumber)] = c
	b.OpenCycle, b.InFlightPACycle = nil, nil
}

// between gives the milliseconds from one time of our format to another; 0 where one of them is of a foreign format.
func between(from, to string) int64 {
	a, err1 := time.Parse(run.TimeFormat, from)
	b, err2 := time.Parse(run.TimeFormat, to)
	if err1 != nil || err2 != nil {
		return 0
	}
	return b.Sub(a).Milliseconds()
}
