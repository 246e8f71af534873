package fsck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/journal"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/run"
)

// judgeStore reads everything of the run in the store: the blobs of its files, the trees of its turns with every file
// in them, its segments and its checkpoints.
func (x *examined) judgeStore(ctx context.Context) error {
	if x.opts.Deep == nil || x.has(streamDamage()...) {
		return nil
	}
	seen := map[string]bool{"": true}
	for _, d := range slices.Sorted(maps.Keys(x.shadow.Blobs)) {
		if err := x.judgeBlob(ctx, d, x.shadow.Blobs[d], seen); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(x.shadow.Files)) {
		if err := x.judgeTree(ctx, x.shadow.Files[name].Tree, name, seen); err != nil {
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

// lostInStore reports what the store lacks or has damaged. Any other error is returned.
func (x *examined) lostInStore(err error, what string) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		x.find(StoreDamaged, what+" is not in the store")
	case journal.Unreadable(err):
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

// judgeSegments reads the journal from the store. As far as it goes, it must equal the one on disk.
func (x *examined) judgeSegments(ctx context.Context) error {
	if !x.meta.good() {
		return nil
	}
	stored, err := journal.Segments(ctx, x.opts.Deep, x.meta.typed.SegmentHead)
	if err != nil {
		return x.lostInStore(err, "the journal")
	}
	disk, err := journal.ReadStream(x.dir, layout.EventsFile, 0)
	if err != nil {
		return err
	}
	for i := range min(len(stored), len(disk.Lines)) {
		if stored[i] != disk.Lines[i] {
			x.find(ChainMismatch, fmt.Sprintf("event %d of %s is not the one in the store", i+1, layout.EventsFile))
			return nil
		}
	}
	return nil
}

// judgeMarks checks that the store has every checkpoint of the events, and compares their bytes with their names.
func (x *examined) judgeMarks(ctx context.Context) error {
	names, ok := x.opts.Deep.(projector.Names)
	if !ok || !x.meta.good() {
		return nil
	}
	type place struct {
		seq int64
		id  string
	}
	there := map[place]bool{}
	marks, err := projector.Marks(ctx, names, x.meta.typed.RunID)
	if err != nil {
		return err
	}
	for _, m := range marks {
		there[place{m.Seq, m.ID}] = true
		raw, err := names.ReadName(ctx, m.Name)
		if err == nil && disk.Digest(raw)[:16] != m.Sum {
			err = disk.ErrDamaged
		}
		if err := x.lostInStore(err, "checkpoint "+m.Name); err != nil {
			return err
		}
	}
	stream, err := journal.ReadStream(x.dir, layout.EventsFile, 0)
	if err != nil {
		return err
	}
	return projector.EachCheckpoint(stream.Lines, func(c run.Checkpoint) error {
		if c.Seq <= x.meta.typed.Events.Seq && !there[place{c.Seq, projector.MarkID(c.ID)}] {
			x.find(StoreDamaged, fmt.Sprintf("checkpoint %s of event %d is not in the store", c.ID, c.Seq))
		}
		return nil
	})
}
