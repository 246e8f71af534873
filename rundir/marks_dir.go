package rundir

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// folded are the checkpoints of a directory, folded from its events: the checkpoints of the store without the store.
type folded struct {
	runID string
	names []string
	data  map[string][]byte
}

// Checkpoints returns the checkpoints of a directory in the form of the store, folded from events.jsonl.
func Checkpoints(d Dir) (Names, error) {
	stream, err := ReadStream(d, EventsFile, 0)
	if err != nil {
		return nil, err
	}
	return CheckpointsOf(stream.Lines)
}

func CheckpointsOf(lines []string) (Names, error) {
	f := folded{data: map[string][]byte{}}
	err := EachCheckpoint(lines, func(c run.Checkpoint) error {
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

// EachCheckpoint folds the lines of a journal and visits every checkpoint.
func EachCheckpoint(lines []string, visit func(run.Checkpoint) error) error {
	fold, chain := run.NewFold(run.State{}, run.History{}), run.Chain("")
	for i, line := range lines {
		fold.Apply(ParseAny(line).At(int64(i) + 1))
		chain = chain.Then(line)
		next := ""
		if i+1 < len(lines) {
			next = lines[i+1]
		}
		if c, ok := checkpointAt(*fold.Current(), chain, line, next); ok {
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

// Replacer is the part of a store that replaces a damaged checkpoint.
type Replacer interface {
	Names
	Replace(ctx context.Context, name string, data []byte) error
}

// RestoreCheckpoint finds a checkpoint as [FindCheckpoint] does: in journal, the checkpoints folded from the run's events,
// or in the store if it is nil. The store then has the checkpoint of the journal; that it lacked it, or had other bytes, is
// described in warning.
func RestoreCheckpoint(ctx context.Context, names Replacer, journal Names, runID,
	id string) (c run.Checkpoint, warning string, err error) {
	if journal == nil {
		c, err = FindCheckpoint(ctx, names, runID, id)
		return c, "", err
	}
	if c, err = FindCheckpoint(ctx, journal, runID, id); err != nil {
		return c, "", err
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return c, "", err
	}
	name, was := checkpointName(c, raw), "damaged in"
	have, err := names.ReadName(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		was = "missing from"
	case err != nil || bytes.Equal(have, raw):
		return c, "", err
	}
	if err := names.Replace(ctx, name, raw); err != nil {
		return c, "", fmt.Errorf("store checkpoint %s again: %w", c.ID, err)
	}
	return c, fmt.Sprintf("checkpoint %s was %s the store and was rebuilt from the journal", c.ID, was), nil
}

// VerifyCheckpoint checks the directory form of a named checkpoint: artifact and state must match its manifest
// (requirement 002 §5.4). A checkpoint without a manifest is valid.
func VerifyCheckpoint(d Dir, id string) error {
	dir := CheckpointDir(id)
	if strings.ContainsAny(id, "/\\") || !d.Has(dir+"/manifest.json") {
		return nil
	}
	var rec CheckpointRecord
	if err := d.ReadJSON(dir+"/manifest.json", &rec); err != nil {
		return fmt.Errorf("checkpoint %s: manifest integrity check failed: %w", id, err)
	}
	if rec.ArtifactHash != "" && validArtifact(d, dir, rec) == "" {
		return fmt.Errorf("checkpoint %s: artifact integrity check failed: the file in %s is not the one of its "+
			"manifest (%.12s)", id, d.Path(dir), rec.ArtifactHash)
	}
	raw, err := d.ReadFile(dir + "/" + StateSnapshot)
	if err != nil || disk.Digest(raw) != rec.StateHash {
		return fmt.Errorf("checkpoint %s: state integrity check failed: %s is not the one of its manifest (%.12s)", id,
			d.Path(dir+"/state-snapshot.json"), rec.StateHash)
	}
	return nil
}

// Listed is one checkpoint of a list, with the state of the work at that time (requirement 002 §5.5).
type Listed struct {
	ID                 string   `json:"id"`
	CreatedAt          string   `json:"createdAt"`
	AtPass             int      `json:"atPass"`
	AtPACycle          int      `json:"atPACycle"`
	CostUSD            float64  `json:"cost"`
	Unknown            int      `json:"unknownCalls"` // calls that cost lacks
	Score              *float64 `json:"paScore"`
	ValidationFailures int      `json:"validationFailures"`
	Seq                int64    `json:"seq"`
	Generation         int      `json:"generation"`
	// false: superseded by a revert; a later revert to it is possible
	InForce  bool   `json:"inForce"`
	Artifact string `json:"artifactHash"`
}

// ListCheckpoints lists the checkpoints of a directory, oldest first; if all is false, only the named ones.
func ListCheckpoints(d Dir, all bool) ([]Listed, error) {
	out := []Listed{}
	stream, err := ReadStream(d, EventsFile, 0)
	if err != nil {
		return nil, err
	}
	lines := stream.Lines
	err = EachCheckpoint(lines, func(c run.Checkpoint) error {
		if s, h := c.State, c.State.Checkpoint; all || c.ID != run.UnnamedID(c.Seq) {
			out = append(out, Listed{
				ID: c.ID, CreatedAt: h.TS, AtPass: h.AtPass, AtPACycle: h.AtRound, CostUSD: h.USD, Score: h.Score,
				Unknown:            s.UnknownCalls(),
				ValidationFailures: s.Passes.Invalid,
				Seq:                c.Seq, Generation: s.Generation, Artifact: h.Artifact,
			})
		}
		return nil
	})
	holds := Seqs(InForce(lines, int64(len(lines))))
	for i := range out {
		out[i].InForce = holds[out[i].Seq]
	}
	return out, err
}
