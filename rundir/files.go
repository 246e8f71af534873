package rundir

import (
	"encoding/json"
	"fmt"
	"path"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// derive sets the files that follow from one event, after the header was folded over it and before the records are.
// before is the small state before the event.
func (f *Fold) derive(e run.Event, before run.State) error {
	if c := CrossCheckpointOf(&f.Header.State); c != nil {
		if err := f.json(CrossFile, c); err != nil {
			return err
		}
	}
	if _, answers := e.Kind.Answers(); answers {
		return f.decision(e)
	}
	artifact := f.State.CurrentArtifactPath
	switch e.Kind {
	case run.KindRunStart:
		return f.start(run.PayloadOf[run.RunStart](e))
	case run.KindRunAmended:
		return f.given(e.Seq, run.PayloadOf[run.RunAmended](e).New)
	case run.KindPassStart:
		s := run.PayloadOf[run.PassStart](e)
		f.evidence(PromptFile(s.Pass), s.Prompt.Digest)
		if s.Gives == "artifact" {
			f.evidence(BackupFile(s.Pass, artifact), s.Before)
		}
	case run.KindPassAttempt:
		f.attempt(run.PayloadOf[run.PassAttempt](e))
	case run.KindPassEnd:
		f.passEnd(run.PayloadOf[run.PassEnd](e), before)
	case run.KindArtifactUpdated:
		u := run.PayloadOf[run.ArtifactUpdated](e)
		// a repeated pass replaces the backup of its first input with the edit
		if u.Cause == "edited" && before.Artifact != nil {
			f.blob(BeforeEdit(e.Seq, artifact), before.Artifact.Digest)
		}
		f.edited(artifact, u.Artifact.Digest)
	case run.KindNoteAppended:
		n := run.PayloadOf[run.NoteAppended](e)
		f.blob(NoteFile(n.File), n.Whole.Digest)
	case run.KindScreenshots:
		return f.pictures(run.PayloadOf[run.Screenshots](e))
	case run.KindCheckpointCreated:
		return f.checkpoint(e, before)
	case run.KindRunInterrupted:
		if len(before.InFlight) > 0 {
			f.restoreInput()
		}
	case run.KindDeliveryRequested:
		q, _ := e.Question()
		f.blob(DeliveryPatch, q.Digest) // the question is about the patch
	case run.KindDeliveryCompleted:
		f.blob(DeliveryPatch, run.PayloadOf[run.DeliveryCompleted](e).Diff)
	case run.KindRunReverted:
		return f.revert(e)
	case run.KindRunEnd:
		if r, any := ResultOf(f.Header.State, artifact, f.Tail.Chain); any {
			return f.json(ResultFile, r)
		}
	}
	return nil
}

// blob sets a file whose bytes are a blob of the store; an empty digest sets none.
func (f *Fold) blob(name, digest string) { f.fileOf(name, digest, Derived) }

func (f *Fold) evidence(name, digest string) { f.fileOf(name, digest, Evidence) }

func (f *Fold) edited(name, digest string) { f.fileOf(name, digest, Edited) }

func (f *Fold) fileOf(name, digest string, role Role) {
	if digest != "" && name != "" {
		f.set(name, File{Digest: digest, Role: role})
	}
}

// json sets a file that follows from the state. It is not touched if it is the same.
func (f *Fold) json(name string, v any) error {
	raw, err := disk.Marshal(v)
	if file := (File{Text: raw}); err == nil && !f.Files[name].same(file) {
		f.set(name, file)
	}
	return err
}

func (f *Fold) start(s run.RunStart) error {
	f.set(SpendFile, File{Link: CostLog})
	if err := f.given(0, s.PlanRef()); err != nil {
		return err
	}
	f.blob(ParentFile, run.DigestOf(s.Brief))
	if s.Workspace != nil && s.Lane == nil { // that of a lane is one of its run
		f.snapshot(0, s.Workspace.Tree.Digest)
	}
	if s.State != nil { // it continues the result of another run
		return f.restore(ArtifactFile(s), f.Header.State)
	}
	if s.Artifact != nil {
		f.edited(s.Artifact.File, s.Artifact.Seed.Digest)
	}
	return nil
}

// given sets what the run was given: at its start, or with an amendment, in a separate folder.
func (f *Fold) given(seq int64, ref run.PlanRef) error {
	for name, digest := range map[string]string{DefinitionFile: ref.Definition, PlanFile: ref.Plan,
		PolicyFile: ref.Policy, InputsFile: ref.Inputs} {
		f.blob(InForceFile(seq, name), digest)
	}
	var in Inputs
	if err := f.list(ref.Inputs, &in); err != nil {
		return fmt.Errorf("list of inputs: %w", err)
	}
	for _, file := range in.Files {
		f.blob(path.Join(InForceFile(seq, InputsDir), file.Path), file.Digest)
	}
	return nil
}

// list reads a list of files. A lost one is empty; the file with the list itself is missed.
func (f *Fold) list(digest string, v any) error {
	if digest == "" {
		return nil
	}
	raw, err := f.source.List(digest)
	if Unreadable(err) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(raw, v)
	}
	return err
}

func (f *Fold) attempt(a run.PassAttempt) {
	if a.Category == run.CategoryLost {
		f.restoreInput()
	}
	if a.Category == run.CategoryLost || a.Output == nil {
		return
	}
	nth := AttemptNumber(a, f.State.FailedOutputs[FailedKey(a.Pass)])
	f.evidence(FailedFile(a.Pass, nth), a.Output.Digest)
	f.evidence(FailedPrompt(a.Pass, nth), run.DigestOf(a.Prompt))
	f.evidence(FailedEnvelope(a.Pass, nth), run.DigestOf(a.Envelope))
}

func (f *Fold) passEnd(r run.PassEnd, before run.State) {
	if tree, ok := TreeAfter(r, before); ok {
		f.snapshot(f.State.Turns+1, tree)
	}
	if r.Outcome != run.CategoryOK {
		return // the pass has a failed output there
	}
	f.evidence(ReplyFile(r.Pass), run.DigestOf(r.Reply))
	f.evidence(VerdictFile(r.Pass), r.Findings.Blob())
	f.evidence(FoundFile(r.Pass), r.Found.Blob())
	f.evidence(EnvelopeFile(r.Pass), run.DigestOf(r.Envelope))
}

// snapshot sets the tree at the end of a turn. The number of a turn is never reused.
func (f *Fold) snapshot(n int, tree string) {
	if w := f.Header.Workspace; n > 0 && w != nil && w.Snapshots == run.SnapshotsFull {
		f.set(SnapshotTree(n), File{Tree: tree, Folder: true})
	}
	f.set(SnapshotManifest(n), File{Tree: tree})
}

// TreeAfter is the tree at the end of a turn; ok is false if the pass is not a turn.
func TreeAfter(end run.PassEnd, before run.State) (tree string, ok bool) {
	switch {
	case !end.Turn() || before.Tree == nil:
		return "", false
	case end.Tree != nil:
		return end.Tree.Digest, true
	}
	return before.Tree.Digest, true
}

func (f *Fold) pictures(s run.Screenshots) error {
	if s.Count == 0 {
		return nil
	}
	f.evidence(path.Join(ShotsDir(s), ShotsFile), s.Manifest.Digest)
	var shots []run.Shot
	if err := f.list(s.Manifest.Digest, &shots); err != nil {
		return fmt.Errorf("list of pictures: %w", err)
	}
	for _, shot := range shots {
		f.evidence(path.Join(ShotsDir(s), shot.Name), shot.Digest)
	}
	return nil
}

// checkpoint sets the folder of a named checkpoint (requirement 002 §5): the records before it, the artifact, the notes,
// and a manifest with their hashes, which the records contain too.
func (f *Fold) checkpoint(e run.Event, before run.State) error {
	c := run.PayloadOf[run.CheckpointCreated](e)
	rec, known := f.named[e.Seq]
	if !known {
		snapshot, err := disk.Marshal(f.State)
		if err == nil && f.keep != nil {
			err = f.keep(snapshot)
		}
		if err != nil {
			return err
		}
		rec = CheckpointRecord{
			ID: c.ID, CreatedAt: e.TS, AtPassNumber: c.AtPass, AtPACycle: c.AtRound,
			CheckpointDir: CheckpointDir(c.ID), StateHash: disk.Digest(snapshot), CostAtCheckpoint: c.USD,
			QualitySnapshot: QualitySnapshot{
				LastPAScore: before.Score, ValidationFailureCount: before.Passes.Invalid,
				ConvictionEntries: f.State.ConvictionEntryCount, DiscoveryEntries: f.State.DiscoveryEntryCount,
			},
		}
		if before.Artifact != nil {
			rec.ArtifactHash = before.Artifact.Digest
		}
		f.named[e.Seq] = rec
	}
	f.State.Checkpoints = append(f.State.Checkpoints, rec)
	role := Evidence
	if Lasting(c.ID) {
		role = Aside
	}
	f.fileOf(path.Join(rec.CheckpointDir, "artifact"+path.Ext(f.State.CurrentArtifactPath)), rec.ArtifactHash, role)
	for _, n := range before.Notes {
		f.fileOf(path.Join(rec.CheckpointDir, n.File), n.Whole.Digest, role)
	}
	f.fileOf(path.Join(rec.CheckpointDir, StateSnapshot), rec.StateHash, role)
	manifest, err := disk.Marshal(rec)
	f.set(path.Join(rec.CheckpointDir, "manifest.json"), File{Text: manifest, Role: role})
	return err
}

// Lasting reports whether a checkpoint's name contains its time, so that no other checkpoint will have it.
func Lasting(id string) bool {
	return len(id) > 9 && (id[:9] == "cp-PAUSE-" || len(id) > 10 && id[:10] == "cp-REVERT-")
}

// decision sets the file of an accepted decision.
func (f *Fold) decision(e run.Event) error {
	d := f.Header.State.Decided
	if f.Header.State.InvalidTransition != "" || d == nil {
		return nil
	}
	var a struct { // for a hand-off or another question
		DecidedAt string `json:"decided_at"`
		DecidedBy string `json:"decided_by"`
	}
	e.Decode(&a)
	return f.json(DecisionFile(d.ID), Decision{
		RunID: f.Header.RunID, HandoffID: d.ID, Phase: d.Phase, Action: d.Action, Feedback: d.Feedback, Note: d.Note,
		DecidedAt: a.DecidedAt, DecidedBy: a.DecidedBy,
	})
}

// restoreInput restores the artifact that a pass received before its worker was lost. Other contents are not an
// operator's edit, because operators edit only while no call is in flight (requirement 002 §3.1).
func (f *Fold) restoreInput() {
	if a := f.Header.State.Artifact; a != nil {
		f.edited(f.State.CurrentArtifactPath, a.Digest)
	}
}

// restore sets the current files of a carried state.
func (f *Fold) restore(artifact string, s run.State) error {
	if s.Artifact != nil {
		f.edited(artifact, s.Artifact.Digest)
	}
	for _, n := range s.Notes {
		if n.Whole.Digest == "" { // the first entry was superseded
			f.set(NoteFile(n.File), File{})
		} else {
			f.blob(NoteFile(n.File), n.Whole.Digest)
		}
	}
	return nil
}
