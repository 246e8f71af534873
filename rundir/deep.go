package rundir

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// judgeStore reads everything of the run in the store: the blobs of its files, the trees of its turns with every file
// in them, its segments and its checkpoints.
func (c *check) judgeStore(ctx context.Context) error {
	if c.opts.Deep == nil || c.has(JournalDamaged) {
		return nil
	}
	checked := map[string]bool{"": true}
	for _, digest := range sortedNames(c.blobs) {
		if err := c.judgeBlob(ctx, digest, c.blobs[digest], checked); err != nil {
			return err
		}
	}
	for _, name := range sortedNames(c.fold.Files) {
		if err := c.judgeTree(ctx, c.fold.Files[name].Tree, name, checked); err != nil {
			return err
		}
	}
	return c.judgeMarks(ctx)
}

// judgeBlob reads one blob, once. The store compares its bytes with its name.
func (c *check) judgeBlob(ctx context.Context, digest, of string, seen map[string]bool) error {
	if seen[digest] {
		return nil
	}
	seen[digest] = true
	_, err := c.opts.Deep.Get(ctx, digest)
	return c.lostInStore(err, fmt.Sprintf("blob %.12s of %s", digest, of))
}

// lostInStore reports what the store lacks or has damaged. Any other error is returned.
func (c *check) lostInStore(err error, what string) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.find(StoreDamaged, "", what+" is not in the store")
	case Unreadable(err):
		c.find(StoreDamaged, "", fmt.Sprintf("%s is damaged in the store: %v", what, err))
	default:
		return err
	}
	return nil
}

func (c *check) judgeTree(ctx context.Context, tree, of string, seen map[string]bool) error {
	if seen[tree] {
		return nil
	}
	seen[tree] = true
	raw, err := c.opts.Deep.Manifest(ctx, tree)
	if err != nil {
		return c.lostInStore(err, fmt.Sprintf("tree %.12s of %s", tree, of))
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
		if err := c.judgeBlob(ctx, file.Digest, file.Path+" in "+of, seen); err != nil {
			return err
		}
	}
	return nil
}

// judgeSegments reads the journal from the store. As far as it goes, it must equal the one on disk.
func (c *check) judgeSegments(ctx context.Context) error {
	if c.opts.Deep == nil || !c.good() || c.has(JournalDamaged) {
		return nil
	}
	stored, err := Segments(ctx, c.opts.Deep, c.meta.SegmentHead)
	if err != nil {
		return c.lostInStore(err, "the journal")
	}
	disk, err := ReadStream(c.dir, EventsFile, 0)
	if err != nil {
		return err
	}
	if n := common(stored, disk.Lines); n < min(len(stored), len(disk.Lines)) {
		c.find(JournalDamaged, EventsFile, fmt.Sprintf("event %d of %s is not the one in the store", n+1, EventsFile))
	}
	return nil
}

// judgeMarks checks that the store has every checkpoint of the events as it was written.
func (c *check) judgeMarks(ctx context.Context) error {
	names, ok := c.opts.Deep.(Names)
	if !ok || !c.good() {
		return nil
	}
	stream, err := ReadStream(c.dir, EventsFile, 0)
	if err != nil {
		return err
	}
	return EachCheckpoint(stream.Lines, func(cp run.Checkpoint) error {
		raw, err := json.Marshal(cp)
		if err != nil || cp.Seq > c.meta.Events.Seq {
			return err
		}
		have, err := names.ReadName(ctx, checkpointName(cp, raw))
		if err == nil && !bytes.Equal(have, raw) {
			err = disk.ErrDamaged
		}
		return c.lostInStore(err, fmt.Sprintf("checkpoint %s of event %d", cp.ID, cp.Seq))
	})
}
