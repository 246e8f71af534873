package run

// Kinds of events about the work.
const (
	KindPhaseStart        Kind = "phase.start"
	KindPhaseEnd          Kind = "phase.end"
	KindPassStart         Kind = "pass.start"
	KindPassAttempt       Kind = "pass.attempt"
	KindPassEnd           Kind = "pass.end"
	KindStepSkipped       Kind = "step.skipped"
	KindArtifactUpdated   Kind = "artifact.updated"
	KindWorkspaceUpdated  Kind = "workspace.updated"
	KindWorkspaceTampered Kind = "workspace.tampered"
	KindNoteAppended      Kind = "note.appended"
	KindSnapshotCreated   Kind = "snapshot.created"
	KindCheckpointCreated Kind = "checkpoint.created"
	KindScreenshots       Kind = "screenshots.captured"
	KindShotsAttempt      Kind = "screenshots.attempt"
	KindScoreRecorded     Kind = "score.recorded"
	KindEffectReused      Kind = "effect.reused"
	KindEffectBlocked     Kind = "effect.blocked"
)

// workKinds leave the status alone.
func workKinds() []kindRow {
	follows := traits{follows: true}
	return []kindRow{
		{
			kind: KindPhaseStart, traits: traits{started: true},
			fold: (*folder).startPhase, foreign: (*folder).startForeignPhase, record: (*Recorder).phaseStarted,
			across: (*CrossWork).beginPhase, texts: about((*Log).phase, phaseHeadline, untold),
		},
		{
			kind: KindPhaseEnd, traits: traits{started: true},
			fold: (*folder).endPhase, foreign: (*folder).endForeignPhase, record: (*Recorder).phaseEnded,
			across: (*CrossWork).endPhase, texts: about((*Log).phaseEnded, quiet, untold),
		},
		{kind: KindPassStart, fold: (*folder).startPass, texts: about((*Log).passStarted, quiet, untold)},
		{kind: KindPassAttempt, fold: (*folder).attemptPass, texts: about((*Log).attempted, attemptHeadline, untold)},
		{kind: KindPassEnd, fold: (*folder).endPass, texts: about((*Log).passEnded, passHeadline, untold)},
		{kind: KindStepSkipped, fold: (*folder).skipStep, texts: about((*Log).skipped, quiet, untold)},
		{
			kind: KindArtifactUpdated, traits: follows, fold: (*folder).updateArtifact,
			texts: about((*Log).artifact, quiet, artifactStory),
		},
		{
			kind: KindWorkspaceUpdated, traits: follows, fold: (*folder).updateWorkspace,
			texts: about((*Log).workspace, quiet, workspaceStory),
		},
		{
			kind: KindWorkspaceTampered, traits: follows, fold: (*folder).tampered,
			texts: about((*Log).tampered, tamperedHeadline, untold),
		},
		{
			kind: KindNoteAppended, traits: follows, fold: (*folder).appendNote,
			texts: about[NoteAppended](unlogged, quiet, untold),
		},
		{kind: KindSnapshotCreated, fold: unchanged, texts: about[SnapshotCreated](unlogged, quiet, untold)},
		{
			kind: KindCheckpointCreated, fold: (*folder).checkpoint,
			texts: about((*Log).checkpointed, checkpointHeadline, untold),
		},
		{
			kind: KindShotsAttempt, fold: (*folder).attemptPictures,
			texts: about((*Log).picturesFailed, picturesFailedHeadline, untold),
		},
		{kind: KindScreenshots, fold: (*folder).takePictures, texts: about((*Log).pictures, picturesHeadline, untold)},
		{
			kind: KindScoreRecorded, traits: follows, fold: (*folder).recordScore,
			texts: about((*Log).scored, scoreHeadline, untold),
		},
		{
			kind: KindEffectReused, traits: follows,
			fold: func(f *folder, _ *Event) { f.Reused++ }, texts: about[Effect](unlogged, quiet, untold),
		},
		{kind: KindEffectBlocked, fold: unchanged, texts: about[Effect](unlogged, quiet, untold)},
	}
}
