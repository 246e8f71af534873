package run

import "fmt"

func (l *Log) phase(e *Entry, p PhaseStart) {
	l.info("═══════════════════════════════════════")
	most, repeats := e.MaxRounds, p.Dir != ""
	if l.wording == WordingStages {
		most = e.After.MaxRounds()
		repeats = most > 0
	}
	if !repeats {
		l.info("STAGE %s", p.Title)
		return
	}
	if text := e.After.AfterLastRound(l.wording.Words().Round, most); text != "" {
		l.info("STAGE %s, %s", p.Title, text)
		return
	}
	l.info("STAGE %s, %s %d/%d", p.Title, l.wording.Words().Round, p.Round, most)
}

// phaseEnded is about a loop that ends although its condition does not hold.
func (l *Log) phaseEnded(_ *Entry, p PhaseEnd) {
	if p.Unmet == "" {
		return
	}
	l.warn("%s ends after %d rounds without %s", p.Title, p.Round, p.Unmet)
	l.decide(LogDecision{Decision: "end-loop", Reason: "unmet: " + p.Unmet})
}

func (l *Log) pictures(_ *Entry, p Screenshots) {
	if !p.Degraded {
		l.info("  Screenshots captured (%d pictures in %.1fs)", p.Count, seconds(p.DurationMS))
		return
	}
	l.warn("  No screenshots after %s: %s. The %s get the source; quality may be degraded",
		Plural(p.Attempts, "attempt"), p.Message, l.wording.Words().Judges)
	l.decide(LogDecision{
		Decision: "continue-without-screenshots", Reason: p.Message, Context: l.wording.ShotsContext(p.Dir, p.Round),
	})
}

// picturesFailed is an attempt at pictures that gave none.
func (l *Log) picturesFailed(_ *Entry, p ShotsAttempt) {
	then := "no attempt is left"
	if p.RetryInMS > 0 {
		then = fmt.Sprintf("the next in %.1fs", seconds(p.RetryInMS))
		l.decide(LogDecision{
			Decision: "retry-screenshots", Attempt: p.Attempt + 1, Reason: p.Message,
			Context: l.wording.ShotsContext(p.Dir, p.Round), DelayMS: p.RetryInMS,
		})
	}
	l.warn("  Attempt %d at the screenshots failed: %s; %s", p.Attempt, p.Message, then)
}

// noted logs an error outside of an attempt.
func (l *Log) noted(_ *Entry, p ErrorNoted) {
	if p.Kept != "" {
		l.warn("%s", p.Message)
		return
	}
	level := LevelError
	if p.Recovered {
		level = LevelWarn
	}
	l.line(level, "%s: %s", p.Category.In(l.wording), p.Message)
}

func (l *Log) damaged(_ *Entry, p JournalDamage) {
	level := LevelError
	if p.Repaired {
		level = LevelWarn
	}
	l.line(level, "Journal damaged: %s", p)
}

func (l *Log) scored(_ *Entry, p ScoreRecorded) {
	if p.Score == nil {
		l.warn("  No %s score: %s", p.Name, p.Why)
		return
	}
	l.info("  %s score: %.1f/4", p.Name, *p.Score)
}

func (l *Log) checkpointed(e *Entry, p CheckpointCreated) {
	l.info("  Checkpoint %s created", p.ID)
	d := LogDecision{Decision: "create-checkpoint", ID: p.ID, AtPass: &p.AtPass}
	if e.After.Artifact != nil {
		d.ArtifactHash = e.After.Artifact.Digest
	}
	l.decide(d)
}

func (l *Log) artifact(_ *Entry, p ArtifactUpdated) {
	switch p.Cause {
	case CauseEdited:
		l.warn("Artifact modified outside orchestrator. Updating hash.")
		l.acceptEdit(p.Artifact)
	case "restored":
		l.warn("Artifact missing. Restored.")
		l.decide(LogDecision{
			Decision: "restore-artifact", Reason: "the file was missing", ArtifactHash: p.Artifact.Digest,
		})
	}
}

func (l *Log) workspace(_ *Entry, p WorkspaceUpdated) {
	if p.Cause == CauseProjects {
		l.info("The stages get the trees of all projects")
		return
	}
	if p.Cause == CauseBase {
		l.info("The base of the pull request was merged into the workspace: %s", Plural(p.Changed, "file"))
		return
	}
	if p.Cause == CauseEdited {
		l.warn("The workspace was changed outside of the run, which adopts the changes: %s", Plural(p.Changed, "file"))
		l.acceptEdit(p.Tree)
	} else {
		l.info("  %s changed", Plural(p.Changed, "file"))
	}
}

func (l *Log) acceptEdit(of Blob) {
	const reason = "nothing was in flight, so it is an edit from outside"
	l.decide(LogDecision{Decision: "accept-edit", Reason: reason, ArtifactHash: of.Digest})
}

func (l *Log) skipped(_ *Entry, p StepSkipped) {
	l.info("  %s is skipped: %s", p.Step, p.Why)
	l.decide(LogDecision{Decision: "skip-step", Reason: p.Why, Context: p.Step})
}
