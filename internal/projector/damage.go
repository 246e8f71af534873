package projector

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/journal"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// verify compares the lines on disk with their chain, and reads the segments up to head. It reports the differences and
// changes nothing.
func (w *exporter) verify(head string, truth journal.Truth) ([]run.JournalDamage, error) {
	all, err := journal.ReadStream(w.dir, layout.EventsFile, 0)
	if err != nil {
		return nil, err
	}
	var found []run.JournalDamage
	stored, err := journal.Segments(w.ctx, w.blobs, head)
	if journal.Unreadable(err) {
		found = append(found, journal.SegmentDamage(head, err))
	} else if err != nil {
		return nil, err
	}
	if tail := w.tail; int64(len(all.Lines)) != tail.Seq || run.Chain("").Over(all.Lines) != tail.Chain {
		whole, err := Intact(w.ctx, tail, all.Lines, stored, truth)
		if err != nil {
			return nil, err
		}
		found = append(found, journal.LineDamage(all.Lines, whole, tail)...)
	}
	return found, nil
}

// Intact returns the lines up to a tail as they were written: those on disk; or those of the segments, followed by the
// later lines on disk; or those of truth. It returns nil if none of them has the tail's chain.
func Intact(ctx context.Context, tail run.Tail, disk, stored []string, truth journal.Truth) ([]string, error) {
	for _, lines := range [][]string{disk, slices.Concat(stored, journal.NumberedBehind(disk, int64(len(stored))))} {
		if journal.Ends(lines, tail) {
			return lines[:tail.Seq], nil
		}
	}
	if truth == nil {
		return nil, nil
	}
	lines, err := truth(ctx)
	switch {
	case errors.As(err, new(*journal.HistoryGapError)) || journal.Unreadable(err):
		return nil, nil // neither store nor history has all lines
	case err != nil || !journal.Ends(lines, tail):
		return nil, err
	}
	return lines[:tail.Seq], nil
}

// replaceLines rewrites events.jsonl after a copy of the existing file, and reads the lines back as unseen: everything
// derived from them is rebuilt. On return both are on disk; a crash leaves either the old or the new file complete.
// kept is the path of the copy in the directory.
func (w *exporter) replaceLines(lines []string) (kept string, err error) {
	old, err := w.dir.ReadRaw(layout.EventsFile)
	if err != nil {
		return "", err
	}
	if err := w.dir.inside().Mkdir(w.dir.Path(layout.TornDir), layout.DirPerm); err != nil {
		return "", err
	}
	kept = path.Join(layout.TornDir, "events-damaged-"+disk.Digest(old)[:8]+".jsonl")
	if err := w.dir.inside().WriteFile(w.dir.Path(kept), old, layout.FilePerm); err != nil {
		return "", err
	}
	if err := w.dir.inside().WriteFile(w.dir.Path(layout.EventsFile), []byte(strings.Join(lines, "\n")+"\n"),
		layout.FilePerm); err != nil {
		return "", fmt.Errorf("write %s as it was: %w", layout.EventsFile, err)
	}
	w.whole, w.moves, w.spares = true, true, true
	return kept, w.read(rundir.Meta{})
}
