package rundir

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/passbook-run/passbook/run"
)

func (b ledger) startPass(e run.Event) {
	var p run.PassStart
	e.Decode(&p)
	if p.Gives == "artifact" && p.Before != "" {
		b.addBackup(p.Number, BackupFile(p.Pass, b.CurrentArtifactPath))
	}
	if p.Number > 0 {
		b.InFlightPass = &InFlightPass{GlobalPassNumber: p.Number, StartedAt: e.TS, AgentRole: p.Role,
			SubsetID: p.Set}
	}
}

// addBackup lists a backup once. One of a numbered pass that has not ended is among the newest: a run may have
// thousands.
func (b ledger) addBackup(number int, file string) {
	const newest = 64
	list := b.ArtifactBackups
	if _, ended := b.PassRecords[strconv.Itoa(number)]; number > 0 && !ended {
		list = list[max(0, len(list)-newest):]
	}
	if !slices.Contains(list, file) {
		b.ArtifactBackups = append(b.ArtifactBackups, file)
	}
}

func (b ledger) endPass(e run.Event, s *run.State) {
	var p run.PassEnd
	e.Decode(&p)
	var unknown int
	p.Spend, unknown = b.takeSpend(p.Context(s.Wording), p.Spend)
	if p.Number > 0 {
		b.PassRecords[strconv.Itoa(p.Number)] = b.record(p, unknown, s.Wording)
	}
	b.countPass(s.Wording.CountedAs(p.Pass))
	if p.CountsAsTurn(s) {
		b.Turns++
	}
	if p.Set != "" {
		addCost(b.Cost.BySubset, p.Set, p.Spend, unknown)
	}
	if b.OpenCycle != nil && p.Number == 0 {
		b.cycleCall(p, unknown)
	}
}

// countCalls counts the calls of a lane in their roles.
func (b ledger) countCalls(c run.ChildCost) {
	for _, r := range c.ByRole {
		row := b.Cost.ByRole[r.Name]
		row.PassCount += r.Calls
		b.Cost.ByRole[r.Name] = row
	}
}

// countPass counts a pass in its role, as the small state does.
func (b ledger) countPass(role string) {
	r := b.Cost.ByRole[role]
	r.PassCount++
	b.Cost.ByRole[role] = r
}

func (b ledger) record(p run.PassEnd, unknown int, t run.Wording) PassRecord {
	r := PassRecord{
		GlobalPassNumber: p.Number, SubsetPassNumber: p.InRound, SubsetID: p.Set, Rotation: p.Order, AgentRole: p.Role,
		Description: p.Description, StartedAt: p.StartedAt, CompletedAt: p.CompletedAt, DurationMS: p.DurationMS,
		RetryCount: p.Attempts - 1, PromptPath: PromptFile(p.Pass),
		RawOutputPath:    b.outputFile(p),
		ValidationPassed: p.Validation.Passed, ValidationDetails: p.Validation,
		Tokens: PassTokens{
			InputTokens: p.Spend.Tokens.Input, OutputTokens: p.Spend.Tokens.Output,
			CacheReadTokens:  p.Spend.Tokens.CacheRead,
			CacheWriteTokens: p.Spend.Tokens.CacheWrite, EstimatedCostUSD: p.Spend.USD, Estimated: p.Spend.Estimated,
			UnknownCalls: unknown,
		},
		CorpusFilesLoaded: list(p.Files), ReferenceFilesLoaded: list(p.References), Outcome: p.Outcome.In(t),
	}
	r.HasConvictionAddition, r.HasDiscoveryAddition = b.added(p.Notes)
	if p.Gives == "artifact" && p.Before != "" {
		r.BackupPath = text(BackupFile(p.Pass, b.CurrentArtifactPath))
	}
	if p.Artifact != nil {
		r.ArtifactPath, r.ArtifactHash = text(b.CurrentArtifactPath), text(p.Artifact.Digest)
	}
	return r
}

// outputFile returns the reply of a pass, or of one that was given up the output of its last attempt; empty: none.
func (b ledger) outputFile(p run.PassEnd) string {
	if p.Outcome == run.CategoryOK {
		return ReplyFile(p.Pass)
	}
	if n := b.FailedOutputs[FailedKey(p.Pass)]; n > 0 {
		return FailedFile(p.Pass, n)
	}
	return ""
}

// added reports which of the first two notes a pass added to: conviction and discovery in the words of requirement 002.
func (b ledger) added(notes []run.Added) (first, second bool) {
	for _, n := range notes {
		first = first || NoteFile(n.File) == b.ConvictionLayerPath
		second = second || NoteFile(n.File) == b.DiscoveryLogPath
	}
	return first, second
}

func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

func (b ledger) attempt(e run.Event, t run.Wording) {
	var p run.PassAttempt
	e.Decode(&p)
	if p.Output != nil && p.Late == 0 {
		b.FailedOutputs[FailedKey(p.Pass)]++
	}
	if p.Spend != nil {
		b.PendingSpend = append(b.PendingSpend, PendingSpend{Context: p.Context(t), Spend: *p.Spend})
	}
}

// takeSpend adds what earlier attempts of a pass have cost to what its last call cost: the total is the sum of the
// records. unknown counts the calls whose cost the total lacks.
func (b ledger) takeSpend(of string, last run.Spend) (all run.Spend, unknown int) {
	rest := []PendingSpend{}
	unknown = last.UnknownCalls()
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
		unknown += w.Spend.UnknownCalls()
	}
	b.PendingSpend = rest
	return last, max(0, unknown)
}

func FailedKey(p run.Pass) string { return FailedFile(p, 1) }

func (b ledger) openCycle(e run.Event) {
	var p run.PhaseStart
	e.Decode(&p)
	b.OpenCycle, b.InFlightPACycle = nil, nil
	if p.Dir == "" {
		return
	}
	b.OpenCycle = &PACycleRecord{CycleNumber: p.Round, StartedAt: e.TS,
		ScreenshotDir: path.Join(Orchestrator, p.Dir), Auditors: []AuditorRecord{}}
	b.InFlightPACycle = &InFlightCycle{Cycle: p.Round, StartedAt: e.TS, Done: map[string]bool{}}
}

func (b ledger) pictures(e run.Event) {
	var p run.Screenshots
	e.Decode(&p)
	if b.OpenCycle == nil {
		return
	}
	b.OpenCycle.ScreenshotCount = p.Count
	b.InFlightPACycle.Done["screenshots"] = true
}

func (b ledger) cycleCall(p run.PassEnd, unknown int) {
	c := b.OpenCycle
	tokens := CallTokens{InputTokens: p.Spend.Tokens.Input, OutputTokens: p.Spend.Tokens.Output,
		EstimatedCostUSD: p.Spend.USD}
	c.TotalCycleCostUSD = run.Cents(c.TotalCycleCostUSD + p.Spend.USD)
	addCost(b.Cost.ByPACycle, strconv.Itoa(c.CycleNumber), p.Spend, unknown)
	b.InFlightPACycle.Done[Member(p.Pass)] = true
	switch {
	case p.Member != "":
		c.Auditors = append(c.Auditors, AuditorRecord{ID: p.Member, ReportPath: b.outputFile(p),
			Tokens: tokens, DurationMS: p.DurationMS, Score: p.Score})
		slices.SortFunc(c.Auditors, func(x, y AuditorRecord) int { return strings.Compare(x.ID, y.ID) })
	case p.Gives == "artifact":
		c.Refine = &RefineRecord{
			ArtifactPath: nil, BackupPath: BackupFile(p.Pass, b.CurrentArtifactPath), Tokens: tokens,
			DurationMS:       p.DurationMS,
			ValidationPassed: p.Validation.Passed,
		}
		if p.Artifact != nil {
			c.Refine.ArtifactPath = text(b.CurrentArtifactPath)
		}
	default:
		c.Weaver = &ReportRecord{ReportPath: b.outputFile(p), Tokens: tokens,
			DurationMS: p.DurationMS}
	}
}

func (b ledger) score(e run.Event) {
	var p run.ScoreRecorded
	e.Decode(&p)
	if b.OpenCycle != nil {
		b.OpenCycle.PAScore, b.OpenCycle.MetThreshold = p.Score, p.Met
	}
}

func (b ledger) closeCycle(e run.Event) {
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

// between returns the milliseconds from one time of our format to another; 0 where one of them is of a foreign format.
func between(from, to string) int64 {
	a, err1 := time.Parse(run.TimeFormat, from)
	b, err2 := time.Parse(run.TimeFormat, to)
	if err1 != nil || err2 != nil {
		return 0
	}
	return b.Sub(a).Milliseconds()
}
