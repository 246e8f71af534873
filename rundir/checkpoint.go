package rundir

import (
	"crypto/sha256"
	"encoding/hex"
	"path"

	"github.com/passbook-run/passbook/run"
)

// stateSnapshot is the state in the directory form of a checkpoint.
const stateSnapshot = "state-snapshot.json"

// checkpoint queues the directory form of a named checkpoint (requirement 002 §5): the state as it was before the checkpoint itself, the
// artifact, the notes, and a manifest with their hashes. The record goes into the state as well.
func (p *projector) checkpoint(w *batchWriter, e run.Event, before run.State) error {
	var c run.CheckpointCreated
	e.Decode(&c)
	dir := checkpointDir(c.ID)
	rec, snapshot, err := p.name(e, before)
	if err != nil {
		return err
	}
	if before.Artifact != nil {
		if err := p.put(w, path.Join(dir, "artifact"+path.Ext(p.book.CurrentArtifactPath)), before.Artifact.Digest); err != nil {
			return err
		}
	}
	for _, n := range before.Notes {
		if err := p.put(w, path.Join(dir, n.File), n.Whole.Digest); err != nil {
			return err
		}
	}
	manifest, err := marshal(rec)
	if err != nil {
		return err
	}
	w.add(wholeFile{path: p.dir.Path(path.Join(dir, stateSnapshot)), data: snapshot})
	w.add(wholeFile{path: p.dir.Path(path.Join(dir, "manifest.json")), data: manifest})
	p.book.Checkpoints = append(p.book.Checkpoints, rec)
	return nil
}

// name gives the record of a checkpoint, and the records as they were before it.
func (p *projector) name(e run.Event, before run.State) (CheckpointRecord, []byte, error) {
	var c run.CheckpointCreated
	e.Decode(&c)
	snapshot, err := p.book.encode()
	rec := CheckpointRecord{
		ID: c.ID, CreatedAt: e.TS, AtPassNumber: c.AtPass, AtPACycle: c.AtRound, CheckpointDir: checkpointDir(c.ID),
		StateHash: digest(snapshot), CostAtCheckpoint: c.USD, QualitySnapshot: p.quality(before),
	}
	if before.Artifact != nil {
		rec.ArtifactHash = before.Artifact.Digest
	}
	return rec, snapshot, err
}

func (p *projector) quality(s run.State) QualitySnapshot {
	return QualitySnapshot{
		LastPAScore: s.Score, ValidationFailureCount: s.Passes.Invalid,
		ConvictionEntries: p.book.ConvictionEntryCount, DiscoveryEntries: p.book.DiscoveryEntryCount,
	}
}

func digest(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
