package rundir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/passbook-run/passbook/run"
)

// judgeStore reads everything that the run has in the store: the blobs that its files are made of, the trees of its turns with every file in them, its
// segments and its checkpoints.
func (x *examined) judgeStore(ctx context.Context) error {
	if x.opts.Deep == nil || x.shadow == nil || x.has(ChainMismatch, StreamLineUnreadable, StreamSeqGap, StreamSeqDuplicate) {
		return nil
	}
	seen := map[string]bool{"": true}
	for _, d := range slices.Sorted(maps.Keys(x.shadow.blobs)) {
		if err := x.judgeBlob(ctx, d, x.shadow.blobs[d], seen); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(x.shadow.files)) {
		if err := x.judgeTree(ctx, x.shadow.files[name].tree, name, seen); err != nil {
			return err
		}
	}
	return errors.Join(x.judgeSegments(ctx), x.judgeMarks(ctx))
}

// judgeBlob reads one blob, once. The store compares its bytes with its name.
func (x *examined) judgeBlob(ctx context.Context, digest, of string, seen map[string]bool) error {
	if seen[digest] {
		return nil
	}
	seen[digest] = true
	_, err := x.opts.Deep.Get(ctx, digest)
	return x.lostInStore(err, fmt.Sprintf("blob %.12s of %s", digest, of))
}

// lostInStore names what the store lacks, or has damaged. Any other error is one.
func (x *examined) lostInStore(err error, what string) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		x.find(StoreDamaged, what+" is not in the store")
	case unreadable(err):
		x.find(StoreDamaged, fmt.Sprintf("%s is damaged in the store: %v", what, err))
	default:
		return err
	}
	return nil
}

func (x *examined) judgeTree(ctx context.Context, tree, of string, seen map[string]bool) error {
	if seen[tree] {
		return nil
	}
	seen[tree] = true
	raw, err := x.opts.Deep.Manifest(ctx, tree)
	if err != nil {
		return x.lostInStore(err, fmt.Sprintf("tree %.12s of %s", tree, of))
	}
	var list struct {
		Entries []json.RawMessage `json:"entries"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return fmt.Errorf("tree %.12s: %w", tree, err)
	}
	for _, one := range list.Entries {
		var file struct {
			Path   string `json:"path"`
			Digest string `json:"sha256"`
		}
		if json.Unmarshal(one, &file) != nil {
			continue // another form of tree
		}
		if err := x.judgeBlob(ctx, file.Digest, file.Path+" in "+of, seen); err != nil {
			return err
		}
	}
	return nil
}

// judgeSegments reads the journal from the store: as far as it goes, it must be the one on disk.
func (x *examined) judgeSegments(ctx context.Context) error {
	if !x.meta.good() {
		return nil
	}
	stored, err := Segments(ctx, x.opts.Deep, x.meta.typed.SegmentHead)
	if err != nil {
		return x.lostInStore(err, "the journal")
	}
	disk, err := x.dir.readStream(0)
	if err != nil {
		return err
	}
	for i := range min(len(stored), len(disk.lines)) {
		if stored[i] != disk.lines[i] {
			x.find(ChainMismatch, fmt.Sprintf("event %d of %s is not the one in the store", i+1, EventsFile))
			return nil
		}
	}
	return nil
}

// judgeMarks looks for every checkpoint that the events give, and compares the bytes of those that the store has with their names.
func (x *examined) judgeMarks(ctx context.Context) error {
	names, ok := x.opts.Deep.(Names)
	if !ok || !x.meta.good() {
		return nil
	}
	type place struct {
		seq int64
		id  string
	}
	there := map[place]bool{}
	marks, err := Marks(ctx, names, x.meta.typed.RunID)
	if err != nil {
		return err
	}
	for _, m := range marks {
		there[place{m.Seq, m.ID}] = true
		raw, err := names.ReadName(ctx, m.name)
		if err == nil && digest(raw)[:16] != m.sum {
			err = ErrDamaged
		}
		if err := x.lostInStore(err, "checkpoint "+m.name); err != nil {
			return err
		}
	}
	stream, err := x.dir.readStream(0)
	if err != nil {
		return err
	}
	return eachCheckpoint(stream.lines, func(c run.Checkpoint) error {
		if c.Seq <= x.meta.typed.Events.Seq && !there[place{c.Seq, markID(c.ID)}] {
			x.find(StoreDamaged, fmt.Sprintf("checkpoint %s of event %d is not in the store", c.ID, c.Seq))
		}
		return nil
	})
}
