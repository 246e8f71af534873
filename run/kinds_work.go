package run

import "strings"

// Kinds of events about the work.
const (
	KindPhaseStart        Kind = "phase.start"
	KindPhaseEnd          Kind = "phase.end"
	KindPassStart         Kind = "pass.start"
	KindPassAttempt       Kind = "pass.attempt"
	KindPassEnd           Kind = "pass.end"
	KindStepSkipped       Kind = "step.skipped"
	KindCondition         Kind = "condition.evaluated"
	KindLoopStalled       Kind = "loop.stalled"
	KindArtifactUpdated   Kind = "artifact.updated"
	KindWorkspaceUpdated  Kind = "workspace.updated"
	KindWorkspaceTampered Kind = "workspace.tampered"
	KindWorkspaceSetup    Kind = "workspace.setup"
	KindNoteAppended      Kind = "note.appended"
	KindCheckpointCreated Kind = "checkpoint.created"
	KindScreenshots       Kind = "screenshots.captured"
	KindShotsAttempt      Kind = "screenshots.attempt"
	KindScoreRecorded     Kind = "score.recorded"
	KindEffectReused      Kind = "effect.reused"
	KindEffectBlocked     Kind = "effect.blocked"
)

// workKinds leave the status alone.
func workKinds() []kindRow {
	ofPass := traits{partOfPass: true}
	return []kindRow{
		{
			kind: KindPhaseStart, traits: traits{started: true},
			fold: (*folder).startPhase, record: (*Recorder).phaseStarted,
			texts: about((*Log).phase, phaseHeadline, noStory),
		},
		{
			kind: KindPhaseEnd, traits: traits{started: true},
			fold: (*folder).endPhase, record: (*Recorder).phaseEnded,
			texts: about((*Log).phaseEnded, noHeadline, noStory),
		},
		{kind: KindPassStart, fold: (*folder).startPass, texts: about((*Log).passStarted, noHeadline, noStory)},
		{kind: KindPassAttempt, fold: (*folder).attemptPass, texts: about((*Log).attempted, attemptHeadline, noStory)},
		{kind: KindPassEnd, fold: (*folder).endPass, texts: about((*Log).passEnded, passHeadline, noStory)},
		{kind: KindCondition, fold: (*folder).evaluated, texts: about((*Log).evaluated, noHeadline, noStory)},
		{kind: KindLoopStalled, fold: (*folder).stall, texts: about((*Log).stalled, stalledHeadline, noStory)},
		{kind: KindStepSkipped, fold: (*folder).skipStep, texts: about((*Log).skipped, noHeadline, noStory)},
		{
			kind: KindArtifactUpdated, traits: ofPass, fold: (*folder).updateArtifact,
			texts: about((*Log).artifact, noHeadline, artifactStory),
		},
		{
			kind: KindWorkspaceUpdated, traits: ofPass, fold: (*folder).updateWorkspace,
			texts: about((*Log).workspace, noHeadline, workspaceStory),
		},
		{
			kind: KindWorkspaceTampered, traits: ofPass, fold: (*folder).tampered,
			texts: about((*Log).tampered, tamperedHeadline, noStory),
		},
		{
			kind: KindWorkspaceSetup, traits: ofPass, fold: unchanged,
			texts: about((*Log).setUp, noHeadline, noStory),
		},
		{
			kind: KindNoteAppended, traits: ofPass, fold: (*folder).appendNote,
			texts: about[NoteAppended](noLog, noHeadline, noStory),
		},
		{
			kind: KindCheckpointCreated, fold: (*folder).checkpoint,
			texts: about((*Log).checkpointed, checkpointHeadline, noStory),
		},
		{
			kind: KindShotsAttempt, fold: (*folder).attemptPictures,
			texts: about((*Log).picturesFailed, picturesFailedHeadline, noStory),
		},
		{kind: KindScreenshots, fold: (*folder).takePictures, texts: about((*Log).pictures, picturesHeadline, noStory)},
		{
			kind: KindScoreRecorded, traits: ofPass, fold: (*folder).recordScore,
			texts: about((*Log).scored, scoreHeadline, noStory),
		},
		{
			kind: KindEffectReused, traits: ofPass,
			fold: func(f *folder, _ *Event) { f.Reused++ }, texts: about[Effect](noLog, noHeadline, noStory),
		},
		{kind: KindEffectBlocked, fold: unchanged, texts: about[Effect](noLog, noHeadline, noStory)},
	}
}

func (l *Log) setUp(_ *Entry, p WorkspaceSetup) {
	l.info("  Workspace set up in %.1f s: %s", float64(p.DurationMS)/1000, strings.Join(p.Commands, "; "))
	if p.Count > 0 {
		l.warn("  The setup changed %s of the tree, now restored: %s", Plural(p.Count, "file"), strings.Join(p.Undone, ", "))
	}
}
