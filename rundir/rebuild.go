package rundir

import (
	"cmp"
	"context"
	"fmt"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
)

// Source contains everything from which a lost directory is rebuilt.
type Source struct {
	Claim   run.Claim
	Store   string  // URL
	Head    string  // newest segment
	Batches []Batch // batches in the current history, oldest first
}

// OtherEventsError reports that a directory and the history contain different events. Nothing was written.
type OtherEventsError struct {
	RunID string
	Dir   string
	Seq   int64 // the first that differs
}

// OtherEvents returns the error of a directory.
func OtherEvents(d Dir, seq int64) *OtherEventsError {
	e := &OtherEventsError{RunID: "RUN-ID", Dir: d.Root, Seq: seq}
	if claim, err := d.Claim(); err == nil {
		e.RunID = claim.RunID
	}
	return e
}

func (e *OtherEventsError) Error() string {
	return fmt.Sprintf("event %d of %s is not the one in history: nothing was written. If the line was damaged, "+
		"restore it (starter repair-state %s --apply); otherwise rebuild into another directory (starter rebuild "+
		"%s --output-dir OTHER) and compare the two", e.Seq, e.Dir, shell.Quote(e.Dir), shell.Quote(e.RunID))
}

// Lines returns the whole journal of a source.
func (s Source) Lines(ctx context.Context, blobs Blobs) ([]string, error) {
	lines, err := Segments(ctx, blobs, s.Head)
	if err != nil {
		return nil, err
	}
	for _, b := range s.Batches {
		have := int64(len(lines))
		switch {
		case b.First > have+1:
			return nil, &HistoryGapError{First: have + 1, Last: b.First - 1}
		case b.First+int64(len(b.Lines))-1 <= have:
			continue
		}
		lines = append(lines, b.Lines[have-b.First+1:]...)
	}
	return lines, nil
}

// Rebuild writes what a directory lacks: the claim, the missing event lines, and everything derived from them. It does
// not change a directory that is longer than the history or has other lines. It returns the end of the directory's
// journal.
func (d Dir) Rebuild(ctx context.Context, blobs Blobs, src Source) (run.Tail, error) {
	r, err := d.rebuild(ctx, blobs, src, false)
	return r.Tail, err
}

// Restored is the end of a rebuilt directory's journal, and the damage found in its lines.
type Restored struct {
	Tail   run.Tail
	Damage []run.JournalDamage
}

// Restore is [Dir.Rebuild] for the run's current execution, which knows every line: a directory that is not longer and
// has other lines is damaged. It keeps a copy of events.jsonl and rewrites the file.
func (d Dir) Restore(ctx context.Context, blobs Blobs, src Source) (Restored, error) {
	return d.rebuild(ctx, blobs, src, true)
}

func (d Dir) rebuild(ctx context.Context, blobs Blobs, src Source, replace bool) (r Restored, err error) {
	lines, err := src.Lines(ctx, blobs)
	if err != nil {
		return r, err
	}
	if err := MayContinue(d, src.Claim.RunID); err != nil {
		return r, err
	}
	if err := d.take(src.Claim); err != nil {
		return r, err
	}
	err = d.export(ctx, blobs, nil, "rebuild", true, func(w *exporter) error {
		if r.Damage, err = w.fill(lines, replace); err != nil {
			return err
		}
		w.head = cmp.Or(src.Head, w.head)
		r.Tail = w.fold.Tail
		return w.export()
	})
	return r, err
}

// fill adds the missing lines at the end. With replace it also replaces other lines, and reports the damage. A directory
// without any line was lost as a whole, which is no damage to a line.
func (w *exporter) fill(lines []string, replace bool) (damage []run.JournalDamage, err error) {
	all, err := ReadStream(w.dir, EventsFile, 0)
	if err != nil {
		return nil, err
	}
	kept, n := "", common(all.Lines, lines)
	switch {
	case n == len(lines):
		return nil, w.append(nil)
	case n == len(all.Lines):
		err = w.append(lines[n:])
	case replace && len(all.Lines) <= len(lines):
		kept, err = w.replaceLines(lines)
	default:
		err = OtherEvents(w.dir, int64(n)+1)
	}
	if err != nil || !replace || len(all.Lines) == 0 {
		return nil, err
	}
	damage = LineDamage(all.Lines, lines, run.Tail{})
	for i := range damage {
		damage[i].Repaired, damage[i].Kept = true, kept
	}
	return damage, nil
}

// common is the number of lines with which both journals begin.
func common(a, b []string) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
