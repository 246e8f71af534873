package rundir

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// written returns the lines up to a tail as they were written, and those of the segments up to head; nil: not known. Damage
// of the lines on disk and of the segments is reported, and nothing is changed.
func written(ctx context.Context, blobs Blobs, head string, tail run.Tail, on []string, truth Truth) (lines, stored []string,
	found []run.JournalDamage, err error) {
	stored, err = Segments(ctx, blobs, head)
	if Unreadable(err) {
		found = append(found, SegmentDamage(head, err))
	} else if err != nil {
		return nil, nil, nil, err
	}
	if int64(len(on)) == tail.Seq && Ends(on, tail) {
		return on, stored, found, nil
	}
	if lines, err = Intact(ctx, tail, on, stored, truth); err == nil {
		found = append(found, LineDamage(on, lines, tail)...)
	}
	return lines, stored, found, err
}

// Intact returns the lines up to a tail as they were written: those on disk; or those of the segments, followed by the
// later lines on disk; or those of truth. It returns nil if none of them has the tail's chain.
func Intact(ctx context.Context, tail run.Tail, disk, stored []string, truth Truth) ([]string, error) {
	for _, lines := range [][]string{disk, slices.Concat(stored, NumberedBehind(disk, int64(len(stored))))} {
		if Ends(lines, tail) {
			return lines[:tail.Seq], nil
		}
	}
	if truth == nil {
		return nil, nil
	}
	lines, err := truth(ctx)
	switch {
	case errors.As(err, new(*HistoryGapError)) || Unreadable(err):
		return nil, nil // neither store nor history has all lines
	case err != nil || !Ends(lines, tail):
		return nil, err
	}
	return lines[:tail.Seq], nil
}

// replaceLines rewrites events.jsonl after a copy of the existing file, and reads the lines back: what follows from them is
// exported again. On return both are on disk; a crash leaves either the old or the new file complete.
// kept is the path of the copy in the directory.
func (w *exporter) replaceLines(lines []string) (kept string, err error) {
	old, err := w.dir.ReadRaw(EventsFile)
	if err != nil {
		return "", err
	}
	if err := w.dir.inside().Mkdir(w.dir.Path(TornDir), DirPerm); err != nil {
		return "", err
	}
	kept = path.Join(TornDir, "events-damaged-"+disk.Digest(old)[:8]+".jsonl")
	if err := w.dir.inside().WriteFile(w.dir.Path(kept), old, FilePerm); err != nil {
		return "", err
	}
	if err := w.dir.inside().WriteFile(w.dir.Path(EventsFile), []byte(strings.Join(lines, "\n")+"\n"),
		FilePerm); err != nil {
		return "", fmt.Errorf("write %s as it was: %w", EventsFile, err)
	}
	seen := min(w.seen, int64(len(lines)))
	w.healed = nil
	return kept, w.read(Meta{Events: EventsMark{Seq: seen, Chain: run.Chain("").Over(lines[:seen])}})
}
