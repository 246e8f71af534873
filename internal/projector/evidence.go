package projector

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/journal"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/records"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// evidence queues the files that follow from one event. before is the small state before the event.
func (p *Projector) evidence(w *batchWriter, e run.Event, before run.State) error {
	if c := records.CrossCheckpoint(&p.meta.State); c != nil {
		raw, err := disk.Marshal(c)
		if err != nil {
			return err
		}
		w.add(wholeFile{name: layout.CrossFile, data: raw, verify: disk.VerifyState()})
	}
	if _, answers := e.Kind.Answers(); answers {
		return p.decision(w, e)
	}
	switch e.Kind {
	case run.KindRunStart:
		return p.inputs(w, e)
	case run.KindRunAmended:
		var a run.RunAmended
		e.Decode(&a)
		return p.given(w, e.Seq, a.New)
	case run.KindPassStart:
		return p.prompt(w, e)
	case run.KindPassAttempt:
		return p.failedOutput(w, e)
	case run.KindPassEnd:
		if err := p.snapshot(w, e, before); err != nil {
			return err
		}
		return p.reply(w, e)
	case run.KindArtifactUpdated:
		var u run.ArtifactUpdated
		e.Decode(&u)
		// a repeated pass replaces the backup of its first input with the edit
		if u.Cause == "edited" && before.Artifact != nil {
			if err := p.put(w, layout.BeforeEdit(e.Seq, p.records.CurrentArtifactPath),
				before.Artifact.Digest); err != nil {
				return err
			}
		}
		return p.put(w, p.records.CurrentArtifactPath, u.Artifact.Digest)
	case run.KindNoteAppended:
		var n run.NoteAppended
		e.Decode(&n)
		return p.put(w, layout.NoteFile(n.File), n.Whole.Digest)
	case run.KindScreenshots:
		return p.shots(w, e)
	case run.KindCheckpointCreated:
		return p.checkpoint(w, e, before)
	case run.KindRunInterrupted:
		if len(before.InFlight) > 0 {
			return p.restoreInput(w)
		}
	case run.KindDeliveryRequested:
		q, _ := e.Question()
		return p.put(w, layout.DeliveryPatch, q.Digest) // the question is about the patch
	case run.KindDeliveryCompleted:
		var c run.DeliveryCompleted
		e.Decode(&c)
		return p.put(w, layout.DeliveryPatch, c.Diff)
	case run.KindRunReverted:
		return p.restore(w, p.records.CurrentArtifactPath, p.meta.State)
	case run.KindRunEnd:
		return p.result(w)
	}
	return nil
}

// put queues a file whose bytes are a blob of the store.
func (p *Projector) put(w *batchWriter, name, digest string) error {
	return queue(w, wholeFile{name: name, digest: digest})
}

// exhibit is put for evidence of a pass or a checkpoint.
func (p *Projector) exhibit(w *batchWriter, name, digest string) error {
	return queue(w, wholeFile{name: name, digest: digest, evidence: true})
}

func queue(w *batchWriter, f wholeFile) error {
	if f.digest != "" && f.name != "" {
		w.add(f)
	}
	return nil
}

func (p *Projector) inputs(w *batchWriter, e run.Event) error {
	var s run.RunStart
	e.Decode(&s)
	if err := p.given(w, 0, s.PlanRef()); err != nil {
		return err
	}
	if err := p.put(w, layout.ParentFile, run.DigestOf(s.Brief)); err != nil {
		return err
	}
	if s.Workspace != nil {
		p.manifest(w, 0, s.Workspace.Tree.Digest)
	}
	if s.State != nil { // it continues the result of another run
		return p.restore(w, layout.ArtifactFile(s), p.meta.State)
	}
	return p.put(w, layout.ArtifactFile(s), seedOf(s))
}

// given queues what the run was given: at its start, or with an amendment, in a separate folder.
func (p *Projector) given(w *batchWriter, seq int64, ref run.PlanRef) error {
	for _, f := range []struct{ name, digest string }{{layout.DefinitionFile, ref.Definition},
		{layout.PlanFile, ref.Plan}, {layout.PolicyFile, ref.Policy}, {layout.InputsFile, ref.Inputs}} {
		if err := p.put(w, layout.InForce(seq, f.name), f.digest); err != nil {
			return err
		}
	}
	if ref.Inputs == "" {
		return nil
	}
	return p.inputFiles(w, layout.InForce(seq, layout.InputsDir), ref.Inputs)
}

func (p *Projector) inputFiles(w *batchWriter, folder, manifest string) error {
	raw, err := p.Blobs.Get(p.Ctx, manifest)
	if p.Spares && journal.Unreadable(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var in rundir.Inputs
	if err := json.Unmarshal(raw, &in); err != nil {
		return fmt.Errorf("manifest of inputs %s: %w", manifest, err)
	}
	for _, f := range in.Files {
		if err := p.put(w, path.Join(folder, f.Path), f.Digest); err != nil {
			return err
		}
	}
	return nil
}

func (p *Projector) prompt(w *batchWriter, e run.Event) error {
	var s run.PassStart
	e.Decode(&s)
	if err := p.exhibit(w, layout.PromptFile(s.Pass), s.Prompt.Digest); err != nil {
		return err
	}
	if s.Gives != "artifact" {
		return nil
	}
	return p.exhibit(w, layout.BackupFile(s.Pass, p.records.CurrentArtifactPath), s.Before)
}

func (p *Projector) failedOutput(w *batchWriter, e run.Event) error {
	var a run.PassAttempt
	e.Decode(&a)
	if a.Category == run.CategoryLost {
		return p.restoreInput(w)
	}
	if a.Output == nil {
		return nil
	}
	nth := layout.AttemptNumber(a, p.records.FailedOutputs[records.FailedKey(a.Pass)])
	return errors.Join(
		p.exhibit(w, layout.FailedFile(a.Pass, nth), a.Output.Digest),
		p.exhibit(w, layout.FailedPrompt(a.Pass, nth), run.DigestOf(a.Prompt)),
		p.exhibit(w, layout.FailedEnvelope(a.Pass, nth), run.DigestOf(a.Envelope)),
	)
}

func (p *Projector) reply(w *batchWriter, e run.Event) error {
	var r run.PassEnd
	e.Decode(&r)
	if r.Outcome != run.CategoryOK {
		return nil // the pass has a failed output there
	}
	return errors.Join(
		p.exhibit(w, layout.ReplyFile(r.Pass), run.DigestOf(r.Reply)),
		p.exhibit(w, layout.VerdictFile(r.Pass), r.Findings.Blob()),
		p.exhibit(w, layout.FoundFile(r.Pass), r.Found.Blob()),
		p.exhibit(w, layout.EnvelopeFile(r.Pass), run.DigestOf(r.Envelope)),
	)
}

func (p *Projector) shots(w *batchWriter, e run.Event) error {
	var s run.Screenshots
	e.Decode(&s)
	if s.Count == 0 {
		return nil
	}
	raw, err := p.Blobs.Get(p.Ctx, s.Manifest.Digest)
	if p.Spares && journal.Unreadable(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var shots []run.Shot
	if err := json.Unmarshal(raw, &shots); err != nil {
		return fmt.Errorf("manifest of pictures %s: %w", s.Manifest.Digest, err)
	}
	if err := p.exhibit(w, path.Join(layout.ShotsDir(s), layout.ShotsFile), s.Manifest.Digest); err != nil {
		return err
	}
	for _, shot := range shots {
		if err := p.exhibit(w, path.Join(layout.ShotsDir(s), shot.Name), shot.Digest); err != nil {
			return err
		}
	}
	return nil
}

// restoreInput restores the artifact that a pass received before its worker was lost. Other contents are not an
// operator's edit, because operators edit only while no call is in flight (requirement 002 §3.1).
func (p *Projector) restoreInput(w *batchWriter) error {
	if a := p.meta.State.Artifact; a != nil {
		return p.put(w, p.records.CurrentArtifactPath, a.Digest)
	}
	return nil
}

// restore restores the current files of a carried state.
func (p *Projector) restore(w *batchWriter, artifact string, s run.State) error {
	if s.Artifact != nil {
		if err := p.put(w, artifact, s.Artifact.Digest); err != nil {
			return err
		}
	}
	for _, n := range s.Notes {
		if n.Whole.Digest == "" { // the first entry was superseded
			w.add(wholeFile{name: layout.NoteFile(n.File)})
			continue
		}
		if err := p.put(w, layout.NoteFile(n.File), n.Whole.Digest); err != nil {
			return err
		}
	}
	return nil
}

func seedOf(s run.RunStart) string {
	if s.Artifact == nil {
		return ""
	}
	return s.Artifact.Seed.Digest
}
