package rundir

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/passbook-run/passbook/run"
)

// folded are the checkpoints of a directory, folded from its events: what the store has, without the store.
type folded struct {
	runID string
	names []string
	data  map[string][]byte
}

// Checkpoints gives the checkpoints of a directory as they would lie in the store, folded from events.jsonl.
func (d Dir) Checkpoints() (Names, error) {
	all, err := d.readStream(0)
	if err != nil {
		return nil, err
	}
	p := &projector{dir: d}
	p.extend(all.lines)
	f := folded{data: map[string][]byte{}}
	for i, e := range p.unseen {
		p.meta.State = run.Apply(p.meta.State, e)
		for _, c := range p.markHead(nil, i) {
			raw, err := json.Marshal(c)
			if err != nil {
				return nil, err
			}
			name := checkpointName(c, raw)
			f.runID, f.names, f.data[name] = c.RunID, append(f.names, name), raw
		}
	}
	return f, nil
}

func (f folded) ListNames(_ context.Context, prefix string) ([]string, error) {
	if prefix != checkpointFolder(f.runID) {
		return nil, nil
	}
	return f.names, nil
}

func (f folded) ReadName(_ context.Context, name string) ([]byte, error) {
	if raw, ok := f.data[name]; ok {
		return raw, nil
	}
	return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
}

// KeepCheckpoint puts a checkpoint into a store that has lost it.
func KeepCheckpoint(ctx context.Context, blobs Blobs, c run.Checkpoint) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return blobs.Name(ctx, checkpointName(c, raw), raw)
}

// VerifyCheckpoint looks at the directory form of a named checkpoint: artifact and state must be what its manifest says (requirement 002 §5.4). A
// checkpoint without one has nothing that could be wrong.
func (d Dir) VerifyCheckpoint(id string) error {
	dir := checkpointDir(id)
	if strings.ContainsAny(id, "/\\") || !d.there(dir+"/manifest.json") {
		return nil
	}
	var rec CheckpointRecord
	if err := d.readJSON(dir+"/manifest.json", &rec); err != nil {
		return fmt.Errorf("checkpoint %s: manifest integrity check failed: %w", id, err)
	}
	if rec.ArtifactHash != "" && d.soundArtifact(d.Path(dir), rec) == "" {
		return fmt.Errorf("checkpoint %s: artifact integrity check failed: the file in %s is not the one of its manifest (%.12s)", id, d.Path(dir), rec.ArtifactHash)
	}
	raw, err := os.ReadFile(d.Path(dir + "/state-snapshot.json"))
	if err != nil || digest(raw) != rec.StateHash {
		return fmt.Errorf("checkpoint %s: state integrity check failed: %s is not the one of its manifest (%.12s)", id, d.Path(dir+"/state-snapshot.json"), rec.StateHash)
	}
	return nil
}
