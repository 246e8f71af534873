package rundir

import (
	"context"
	"encoding/json"
	"errors"
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
	stream, err := d.readStream(0)
	if err != nil {
		return nil, err
	}
	return checkpointsOf(stream.lines)
}

func checkpointsOf(lines []string) (Names, error) {
	f := folded{data: map[string][]byte{}}
	err := eachCheckpoint(lines, func(c run.Checkpoint) error {
		raw, err := json.Marshal(c)
		if err != nil {
			return err
		}
		name := checkpointName(c, raw)
		f.runID, f.names, f.data[name] = c.RunID, append(f.names, name), raw
		return nil
	})
	return f, err
}

// eachCheckpoint folds the lines of a journal, and visits every checkpoint on the way.
func eachCheckpoint(lines []string, visit func(run.Checkpoint) error) error {
	p := &projector{}
	p.extend(lines)
	for i, e := range p.unseen {
		p.meta.State = run.Apply(p.meta.State, e)
		for _, c := range p.markHead(nil, i) {
			if err := visit(c); err != nil {
				return err
			}
		}
	}
	return nil
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

// Replacer is what is needed of a store to write a damaged checkpoint again.
type Replacer interface {
	Names
	Replace(ctx context.Context, name string, data []byte) error
}

// KeepCheckpoint puts a checkpoint into a store that has lost it, or has other bytes under its name.
func KeepCheckpoint(ctx context.Context, names Replacer, c run.Checkpoint) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := names.Replace(ctx, checkpointName(c, raw), raw); err != nil {
		return fmt.Errorf("store checkpoint %s again: %w", c.ID, err)
	}
	return nil
}

// RestoreCheckpoint finds a checkpoint in a store as [FindCheckpoint] does. One that is missing or damaged there is made again from journal, the run's
// checkpoints as its events give them, and warning says so; nil: there is no journal.
func RestoreCheckpoint(ctx context.Context, names Replacer, journal Names, runID, id string) (c run.Checkpoint, warning string, err error) {
	c, err = FindCheckpoint(ctx, names, runID, id)
	var none *NoCheckpointError
	var wrong *run.CheckpointError
	damaged := errors.As(err, &wrong) || errors.Is(err, ErrDamaged)
	if journal == nil || !damaged && !errors.As(err, &none) {
		return c, "", err
	}
	again, ferr := FindCheckpoint(ctx, journal, runID, id)
	switch {
	case damaged && ferr != nil:
		return c, "", errors.Join(err, ferr)
	case ferr != nil:
		return c, "", ferr
	}
	if werr := KeepCheckpoint(ctx, names, again); werr != nil {
		return c, "", werr
	}
	was := "missing from"
	if damaged {
		was = "damaged in"
	}
	if c, err = FindCheckpoint(ctx, names, runID, id); err != nil {
		return c, "", err
	}
	return c, fmt.Sprintf("checkpoint %s was %s the store and was rebuilt from the journal", c.ID, was), nil
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
	raw, err := os.ReadFile(d.Path(dir + "/" + stateSnapshot))
	if err != nil || digest(raw) != rec.StateHash {
		return fmt.Errorf("checkpoint %s: state integrity check failed: %s is not the one of its manifest (%.12s)", id, d.Path(dir+"/state-snapshot.json"), rec.StateHash)
	}
	return nil
}

// Listed is one checkpoint of a list, with what the work was like then (requirement 002 §5.5).
type Listed struct {
	ID                 string   `json:"id"`
	CreatedAt          string   `json:"createdAt"`
	AtPass             int      `json:"atPass"`
	AtPACycle          int      `json:"atPACycle"`
	CostUSD            float64  `json:"cost"`
	Score              *float64 `json:"paScore"`
	ValidationFailures int      `json:"validationFailures"`
	Seq                int64    `json:"seq"`
	Generation         int      `json:"generation"`
	InForce            bool     `json:"inForce"` // false: a revert has left it behind; one can go back to it all the same
	Artifact           string   `json:"artifactHash"`
}

// ListCheckpoints lists the checkpoints of a directory, oldest first; without all only the named ones.
func (d Dir) ListCheckpoints(all bool) ([]Listed, error) {
	out := []Listed{}
	stream, err := d.readStream(0)
	if err != nil {
		return nil, err
	}
	lines := stream.lines
	err = eachCheckpoint(lines, func(c run.Checkpoint) error {
		if s, h := c.State, c.State.Checkpoint; all || c.ID != run.UnnamedID(c.Seq) {
			out = append(out, Listed{
				ID: c.ID, CreatedAt: h.TS, AtPass: h.AtPass, AtPACycle: h.AtRound, CostUSD: h.USD, Score: h.Score, ValidationFailures: s.Passes.Invalid,
				Seq: c.Seq, Generation: s.Generation, Artifact: h.Artifact,
			})
		}
		return nil
	})
	holds := seqs(inForce(lines, int64(len(lines))))
	for i := range out {
		out[i].InForce = holds[out[i].Seq]
	}
	return out, err
}
