package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"

	"github.com/passbook-run/passbook/run"
)

// Inputs is the manifest of the files a run was given: path beside the definition, and digest.
type Inputs struct {
	Version int         `json:"version"`
	Files   []InputFile `json:"files"`
}

// InputFile is one file of the manifest.
type InputFile struct {
	Path   string `json:"path"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

// evidence queues the files that follow from one event. before is the small state that held until then.
func (p *projector) evidence(w *batchWriter, e run.Event, before run.State) error {
	switch e.Kind {
	case run.KindRunStart:
		return p.inputs(w, e)
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
		if u.Cause == "edited" && before.Artifact != nil { // a pass that is done again backs up the edit, over what it was given first
			if err := p.put(w, beforeEdit(e.Seq, p.book.CurrentArtifactPath), before.Artifact.Digest); err != nil {
				return err
			}
		}
		return p.put(w, p.book.CurrentArtifactPath, u.Artifact.Digest)
	case run.KindNoteAppended:
		var n run.NoteAppended
		e.Decode(&n)
		return p.put(w, noteFile(n.File), n.Whole.Digest)
	case run.KindScreenshots:
		return p.shots(w, e)
	case run.KindCheckpointCreated:
		return p.checkpoint(w, e, before)
	case run.KindRunInterrupted:
		if len(before.InFlight) > 0 {
			return p.asItWas(w)
		}
	case run.KindHandoffDecided, run.KindGateDecided, run.KindReviewDecided, run.KindDeliveryDecided:
		return p.decision(w, e)
	case run.KindDeliveryRequested:
		var q run.Asked
		e.Decode(&q)
		return p.put(w, DeliveryPatch, q.Digest) // what is asked about is the patch
	case run.KindDeliveryCompleted:
		var c run.DeliveryCompleted
		e.Decode(&c)
		return p.put(w, DeliveryPatch, c.Diff)
	case run.KindRunReverted:
		return p.restore(w, p.book.CurrentArtifactPath, p.meta.State)
	case run.KindRunEnd:
		return p.result(w)
	}
	return nil
}

// put queues a file whose bytes are a blob of the store.
func (p *projector) put(w *batchWriter, name, digest string) error {
	if digest != "" && name != "" {
		w.add(wholeFile{path: p.dir.Path(name), digest: digest})
	}
	return nil
}

func (p *projector) inputs(w *batchWriter, e run.Event) error {
	var s run.RunStart
	e.Decode(&s)
	given := []struct{ name, digest string }{{DefinitionFile, s.Definition}, {PlanFile, s.Plan}, {PolicyFile, s.Policy}, {InputsFile, s.Inputs}}
	for _, f := range given {
		if err := p.put(w, f.name, f.digest); err != nil {
			return err
		}
	}
	if s.Workspace != nil {
		p.manifest(w, 0, s.Workspace.Tree.Digest)
	}
	if s.Inputs != "" {
		if err := p.inputFiles(w, s.Inputs); err != nil {
			return err
		}
	}
	if s.State != nil { // it goes on with what another run has come to
		return p.restore(w, artifactFile(s), p.meta.State)
	}
	return p.put(w, artifactFile(s), seedOf(s))
}

func (p *projector) inputFiles(w *batchWriter, manifest string) error {
	raw, err := p.blobs.Get(p.ctx, manifest)
	if p.spares && unreadable(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var in Inputs
	if err := json.Unmarshal(raw, &in); err != nil {
		return fmt.Errorf("manifest of inputs %s: %w", manifest, err)
	}
	for _, f := range in.Files {
		if err := p.put(w, path.Join(InputsDir, f.Path), f.Digest); err != nil {
			return err
		}
	}
	return nil
}

func (p *projector) prompt(w *batchWriter, e run.Event) error {
	var s run.PassStart
	e.Decode(&s)
	if err := p.put(w, promptFile(s.Pass), s.Prompt.Digest); err != nil {
		return err
	}
	if s.Gives != "artifact" {
		return nil
	}
	return p.put(w, backupFile(s.Pass, p.book.CurrentArtifactPath), s.Before)
}

func (p *projector) failedOutput(w *batchWriter, e run.Event) error {
	var a run.PassAttempt
	e.Decode(&a)
	if a.Category == "lost" {
		return p.asItWas(w)
	}
	if a.Output == nil {
		return nil
	}
	nth := attemptNumber(a, p.book.FailedOutputs[failedKey(a.Pass)])
	return errors.Join(
		p.put(w, failedFile(a.Pass, nth), a.Output.Digest),
		p.put(w, failedPrompt(a.Pass, nth), run.DigestOf(a.Prompt)),
		p.put(w, failedEnvelope(a.Pass, nth), run.DigestOf(a.Envelope)),
	)
}

func (p *projector) reply(w *batchWriter, e run.Event) error {
	var r run.PassEnd
	e.Decode(&r)
	if r.Outcome != "ok" {
		return nil // what a pass was given up with lies there as a failed output
	}
	return errors.Join(
		p.put(w, replyFile(r.Pass, scored(r)), run.DigestOf(r.Reply)),
		p.put(w, envelopeFile(r.Pass), run.DigestOf(r.Envelope)),
	)
}

// scored says that a report judges its round.
func scored(r run.PassEnd) bool { return r.Number == 0 && r.Member == "" && r.Gives == "report" }

func (p *projector) shots(w *batchWriter, e run.Event) error {
	var s run.Screenshots
	e.Decode(&s)
	if s.Count == 0 {
		return nil
	}
	raw, err := p.blobs.Get(p.ctx, s.Manifest.Digest)
	if p.spares && unreadable(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var shots []run.Shot
	if err := json.Unmarshal(raw, &shots); err != nil {
		return fmt.Errorf("manifest of pictures %s: %w", s.Manifest.Digest, err)
	}
	if err := p.put(w, path.Join(shotsDir(s), shotsFile), s.Manifest.Digest); err != nil {
		return err
	}
	for _, shot := range shots {
		if err := p.put(w, path.Join(shotsDir(s), shot.Name), shot.Digest); err != nil {
			return err
		}
	}
	return nil
}

// asItWas puts the artifact back that a pass was given whose worker was lost: what else stands there now is no edit of a person, who edits while
// nothing is in flight (requirement 002 §3.1).
func (p *projector) asItWas(w *batchWriter) error {
	if a := p.meta.State.Artifact; a != nil {
		return p.put(w, p.book.CurrentArtifactPath, a.Digest)
	}
	return nil
}

// restore puts back what a carried state says is current.
func (p *projector) restore(w *batchWriter, artifact string, s run.State) error {
	if s.Artifact != nil {
		if err := p.put(w, artifact, s.Artifact.Digest); err != nil {
			return err
		}
	}
	for _, n := range s.Notes {
		if n.Whole.Digest == "" { // the first entry was left behind
			w.add(wholeFile{path: p.dir.Path(noteFile(n.File))})
			continue
		}
		if err := p.put(w, noteFile(n.File), n.Whole.Digest); err != nil {
			return err
		}
	}
	return nil
}

func artifactFile(s run.RunStart) string {
	if s.Artifact == nil {
		return ""
	}
	return s.Artifact.File
}

func seedOf(s run.RunStart) string {
	if s.Artifact == nil {
		return ""
	}
	return s.Artifact.Seed.Digest
}
