package rundir

import (
	"fmt"

	"github.com/passbook-run/passbook/run"
)

func (l *logbook) started(e entry) {
	var p run.RunStart
	e.Decode(&p)
	l.line(e.Event, info, "Pipeline started. Run ID: %s", p.RunID)
	l.line(e.Event, info, "Config hash: %s", p.ConfigHash)
	reason := "no run was here"
	for _, w := range p.Warnings {
		l.line(e.Event, warn, "%s", w)
		reason = p.Warnings[0]
	}
	l.decide(e, decision{Decision: "fresh-start", Reason: reason})
}

// resumed says where the run goes on, and names every pass that is not done again.
func (l *logbook) resumed(e entry) {
	var p run.RunResumed
	e.Decode(&p)
	next := e.after.Passes.LastSettled + 1
	reason := "resumed after " + string(p.From)
	if e.before.Reason != "" {
		reason += " (" + e.before.Reason + ")"
	}
	l.line(e.Event, info, "Resuming from pass %d/%d (%s)", min(next, e.after.Passes.Total), e.after.Passes.Total, reason)
	l.decide(e, decision{Decision: "resume", Reason: reason, PassNumber: next, By: p.By})
	for n := 1; n < next; n++ {
		l.decide(e, decision{Decision: "skip-pass", Reason: "pass already completed", PassNumber: n})
	}
}

func (l *logbook) paused(e entry) {
	var p run.RunPaused
	e.Decode(&p)
	level, text := warn, fmt.Sprintf("Pipeline paused: %s. %s", p.Reason, p.Detail)
	if p.Reason == run.UserRequested {
		level, text = info, "Pipeline paused by user. Resume with the same configuration."
	}
	if p.Reason == run.PassFailed || p.Reason == run.ConsecutiveFailures {
		level = fault
	}
	l.line(e.Event, level, "%s", text)
	d := decision{Decision: "pause-pipeline", Reason: p.Reason, By: p.By}
	total := e.after.Total()
	d.Cost = &total
	if p.Reason == run.BudgetThreshold {
		d.Threshold = &e.after.Budget.CapUSD
	}
	l.decide(e, d)
}

func (l *logbook) ended(e entry) {
	s := e.after
	l.line(e.Event, info, "═══════════════════════════════════════")
	l.line(e.Event, info, "Pipeline %s: %d/%d passes, %d PA cycles, $%.2f", s.Status, s.Passes.LastSettled, s.Passes.Total, s.Rounds, s.Total())
	if t := e.book.PAScoreThreshold; t != nil && s.Score != nil && *s.Score < *t {
		l.line(e.Event, warn, "Score threshold not met (%.1f of %.1f)", *s.Score, *t)
	}
	l.decide(e, decision{Decision: "end-pipeline", Reason: string(s.Status)})
}

func (l *logbook) reverted(e entry) {
	var p run.RunReverted
	e.Decode(&p)
	l.line(e.Event, warn, "Went back to event %d (%s): events %d to %d are abandoned", p.To, p.Cause, p.Abandoned.First, p.Abandoned.Last)
	l.decide(e, decision{Decision: "revert", Reason: p.Cause, PassNumber: e.after.Passes.LastSettled})
}

func (l *logbook) phase(e entry) {
	var p run.PhaseStart
	e.Decode(&p)
	l.line(e.Event, info, "═══════════════════════════════════════")
	if p.Dir == "" {
		l.line(e.Event, info, "STAGE %s", p.Title)
		return
	}
	l.line(e.Event, info, "STAGE %s, cycle %d/%d", p.Title, p.Round, e.book.MaxPACycles)
}

// phaseEnded tells of a loop that ends although it did not come to what it was for.
func (l *logbook) phaseEnded(e entry) {
	var p run.PhaseEnd
	e.Decode(&p)
	if p.Unmet == "" {
		return
	}
	l.line(e.Event, warn, "%s ends after %d rounds without %s", p.Title, p.Round, p.Unmet)
	l.decide(e, decision{Decision: "end-loop", Reason: "unmet: " + p.Unmet})
}

func (l *logbook) pictures(e entry) {
	var p run.Screenshots
	e.Decode(&p)
	if !p.Degraded {
		l.line(e.Event, info, "  Screenshots captured (%d pictures in %.1fs)", p.Count, seconds(p.DurationMS))
		return
	}
	l.line(e.Event, warn, "  No screenshots after %d attempts: %s. The auditors get the source; quality may be degraded", p.Attempts, p.Message)
	l.decide(e, decision{Decision: "continue-without-screenshots", Reason: p.Message, Context: run.ShotsContext(p.Dir, p.Round)})
}

// picturesFailed is an attempt at pictures that gave none.
func (l *logbook) picturesFailed(e entry) {
	var p run.ShotsAttempt
	e.Decode(&p)
	then := "no attempt is left"
	if p.RetryInMS > 0 {
		then = fmt.Sprintf("the next in %.1fs", seconds(p.RetryInMS))
		l.decide(e, decision{Decision: "retry-screenshots", Attempt: p.Attempt + 1, Reason: p.Message, Context: run.ShotsContext(p.Dir, p.Round), DelayMS: p.RetryInMS})
	}
	l.line(e.Event, warn, "  Attempt %d at the screenshots failed: %s; %s", p.Attempt, p.Message, then)
}

// noted is something that went wrong outside of an attempt.
func (l *logbook) noted(e entry) {
	var p run.ErrorNoted
	e.Decode(&p)
	level := fault
	if p.Recovered {
		level = warn
	}
	l.line(e.Event, level, "%s: %s", p.Category, p.Message)
}

func (l *logbook) damaged(e entry) {
	var p run.JournalDamage
	e.Decode(&p)
	level := fault
	if p.Repaired {
		level = warn
	}
	l.line(e.Event, level, "Journal damaged: %s", p)
}

func (l *logbook) scored(e entry) {
	var p run.ScoreRecorded
	e.Decode(&p)
	row := struct {
		TS        string   `json:"ts"`
		PACycle   int      `json:"paCycle"`
		Type      string   `json:"type"`
		Score     *float64 `json:"score"`
		Threshold *float64 `json:"threshold"`
		Auditors  int      `json:"auditorCount"`
		Met       bool     `json:"metThreshold,omitempty"`
		Why       string   `json:"why,omitempty"`
		Seq       int64    `json:"seq"`
	}{e.TS, p.Round, "pa-score", p.Score, p.Threshold, p.Auditors, p.Met, p.Why, e.Seq}
	l.row(QualityLog, row)
	if p.Score == nil {
		l.line(e.Event, warn, "  No %s score: %s", p.Name, p.Why)
		return
	}
	l.line(e.Event, info, "  %s score: %.1f/4", p.Name, *p.Score)
}

func (l *logbook) checkpointed(e entry) {
	var p run.CheckpointCreated
	e.Decode(&p)
	l.line(e.Event, info, "  Checkpoint %s created", p.ID)
	d := decision{Decision: "create-checkpoint", ID: p.ID, AtPass: &p.AtPass}
	if e.after.Artifact != nil {
		d.ArtifactHash = e.after.Artifact.Digest
	}
	l.decide(e, d)
}

func (l *logbook) budget(e entry) {
	var p run.BudgetEvent
	e.Decode(&p)
	if e.Kind == run.KindBudgetRaised {
		l.line(e.Event, info, "Budget set to $%.2f by %s", p.CapUSD, p.By)
		l.decide(e, decision{Decision: "set-budget", Reason: "asked for", Threshold: &p.CapUSD, By: p.By})
		return
	}
	l.line(e.Event, warn, "Budget warning: $%.2f of $%.2f are spent (%s)", p.TotalUSD, p.CapUSD, breakdown(e.after))
}

func breakdown(s run.State) string {
	text := ""
	for i, r := range s.ByRole {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s $%.2f", r.Name, r.USD)
	}
	return text
}

func (l *logbook) refused(e entry) {
	var p run.DecisionRefused
	e.Decode(&p)
	if p.Count > 1 {
		l.line(e.Event, warn, "%d more messages refused, the last one %s: %s", p.Count, p.Verb, p.Reason)
	} else {
		l.line(e.Event, warn, "Message %s refused: %s", p.Verb, p.Reason)
	}
	l.decide(e, decision{Decision: "refuse-" + p.Verb, Reason: p.Reason, By: p.By})
}

func (l *logbook) rehomed(e entry) {
	var p run.RunRehomed
	e.Decode(&p)
	l.line(e.Event, info, "Directory moved from %s to %s", p.From, p.To)
	l.decide(e, decision{Decision: "rehome", Reason: "moved from " + p.From + " to " + p.To, By: p.By})
}

// artifact is one row of provenance.jsonl: which turn changed which file from what to what.
func (l *logbook) artifact(e entry) {
	var p run.ArtifactUpdated
	e.Decode(&p)
	switch p.Cause {
	case "edited":
		l.line(e.Event, warn, "Artifact modified outside orchestrator. Updating hash.")
		l.decide(e, decision{Decision: "accept-edit", Reason: "nothing was in flight, so it is somebody's edit", ArtifactHash: p.Artifact.Digest})
	case "restored":
		l.line(e.Event, warn, "Artifact missing. Restored.")
		l.decide(e, decision{Decision: "restore-artifact", Reason: "the file was missing", ArtifactHash: p.Artifact.Digest})
	}
	before := ""
	if e.before.Artifact != nil {
		before = e.before.Artifact.Digest
	}
	l.row(ProvenanceFile, struct {
		Seq    int64  `json:"seq"`
		TS     string `json:"ts"`
		Turn   string `json:"turn"`
		Call   string `json:"call"`
		Path   string `json:"path"`
		Before string `json:"hash_before"`
		After  string `json:"hash_after"`
	}{e.Seq, e.TS, p.Step, p.Call, e.book.CurrentArtifactPath, before, p.Artifact.Digest})
}

func seconds(ms int64) float64 { return float64(ms) / 1000 }
