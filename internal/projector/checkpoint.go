package projector

import (
	"path"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// checkpoint queues the directory form of a named checkpoint (requirement 002 §5): the state before the checkpoint, the
// artifact, the notes, and a manifest with their hashes. The record is added to the state too.
func (p *Projector) checkpoint(w *batchWriter, e run.Event, before run.State) error {
	var c run.CheckpointCreated
	e.Decode(&c)
	dir := layout.CheckpointDir(c.ID)
	rec, snapshot, err := p.name(e, before)
	if err != nil {
		return err
	}
	if before.Artifact != nil {
		if err := p.exhibit(w, path.Join(dir, "artifact"+path.Ext(p.records.CurrentArtifactPath)),
			before.Artifact.Digest); err != nil {
			return err
		}
	}
	for _, n := range before.Notes {
		if err := p.exhibit(w, path.Join(dir, n.File), n.Whole.Digest); err != nil {
			return err
		}
	}
	manifest, err := disk.Marshal(rec)
	if err != nil {
		return err
	}
	w.add(wholeFile{name: path.Join(dir, layout.StateSnapshot), data: snapshot, evidence: true})
	w.add(wholeFile{name: path.Join(dir, "manifest.json"), data: manifest, evidence: true})
	p.records.Checkpoints = append(p.records.Checkpoints, rec)
	return nil
}

// name returns the record of a checkpoint, and the records before it.
func (p *Projector) name(e run.Event, before run.State) (rundir.CheckpointRecord, []byte, error) {
	var c run.CheckpointCreated
	e.Decode(&c)
	snapshot := p.encoded
	var err error
	if snapshot == nil && p.shadow == nil { // a shadow does not list the files derived from the records
		snapshot, err = p.encoder.marshal(&p.records)
	}
	rec := rundir.CheckpointRecord{
		ID: c.ID, CreatedAt: e.TS, AtPassNumber: c.AtPass, AtPACycle: c.AtRound,
		CheckpointDir: layout.CheckpointDir(c.ID),
		StateHash:     disk.Digest(snapshot), CostAtCheckpoint: c.USD, QualitySnapshot: p.quality(before),
	}
	if before.Artifact != nil {
		rec.ArtifactHash = before.Artifact.Digest
	}
	return rec, snapshot, err
}

func (p *Projector) quality(s run.State) rundir.QualitySnapshot {
	return rundir.QualitySnapshot{
		LastPAScore: s.Score, ValidationFailureCount: s.Passes.Invalid,
		ConvictionEntries: p.records.ConvictionEntryCount, DiscoveryEntries: p.records.DiscoveryEntryCount,
	}
}
