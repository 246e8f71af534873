package rundir

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// Truth returns the journal that the segments in the store and the history of its execution contain. It is called only
// if a directory is damaged.
type Truth func(ctx context.Context) ([]string, error)

// Ends reports whether the first lines are the journal up to a tail.
func Ends(lines []string, tail run.Tail) bool {
	return int64(len(lines)) >= tail.Seq && run.Chain("").Over(lines[:tail.Seq]) == tail.Chain
}

// NumberedBehind returns the lines whose seq is greater than that of an event.
func NumberedBehind(lines []string, seq int64) []string {
	first := slices.IndexFunc(lines, func(l string) bool { return ParseAny(l).Seq == seq+1 })
	if first < 0 {
		return nil
	}
	return lines[first:]
}

// Unreadable reports whether a segment is lost or damaged, so that a retry cannot read it.
func Unreadable(err error) bool {
	return disk.Lost(err) || errors.Is(err, disk.ErrDamaged)
}

// SegmentDamage describes the damage that a reader of segments found.
func SegmentDamage(head string, err error) run.JournalDamage {
	var at *SegmentError
	if errors.As(err, &at) {
		head = at.Digest
	}
	found := err.Error()
	if errors.Is(err, fs.ErrNotExist) {
		found = run.Missing
	}
	return run.JournalDamage{File: run.SegmentFile + head, Expected: head, Found: found}
}

// mostNamed is the maximum number of damaged lines that are listed.
const mostNamed = 4

// LineDamage lists the lines that differ from what was written. If lines are missing or added, it lists the first one:
// all after it have moved. whole is nil if no source has the written lines.
func LineDamage(found, whole []string, tail run.Tail) []run.JournalDamage {
	if whole == nil {
		return []run.JournalDamage{{File: EventsFile, Expected: string(tail.Chain),
			Found: string(run.Chain("").Over(found))}}
	}
	var all []run.JournalDamage
	for i := range max(len(found), len(whole)) {
		was, is := LineDigest(whole, i), LineDigest(found, i)
		if was == is {
			continue
		}
		all = append(all, run.JournalDamage{File: EventsFile, Line: int64(i) + 1, Expected: was, Found: is})
		if len(found) != len(whole) || len(all) == mostNamed {
			break
		}
	}
	return all
}

// LineDigest returns the digest of one line.
func LineDigest(lines []string, i int) string {
	if i >= len(lines) {
		return run.Missing
	}
	return disk.Digest([]byte(lines[i]))
}
