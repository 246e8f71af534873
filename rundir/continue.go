package rundir

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
)

// DamagedError reports that the journal of a directory is damaged and that neither the store nor Temporal's history has
// its lines. Nothing was changed.
type DamagedError struct {
	Dir  string
	Code Code // code of the finding
	Why  string
	Next string // what to do
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("open run directory %s: %s: %s; nothing was changed. %s", e.Dir, e.Code, e.Why, e.Next)
}

// Continuation is the state that the next epoch of a closed run continues, according to its whole journal.
type Continuation struct {
	Now
	Start run.RunStart
	Ended bool // the last epoch has journaled its end
	Epoch int  // the next one, which no execution has opened yet
	// lines that are damaged or missing in the directory, and that the store or the history has
	Broken []run.JournalDamage

	lines  []string // of the whole journal
	refill bool     // the directory lacks some of them
}

// Continue compares the journal of a closed run with all records of it: the chain in meta.json, result.json, and known,
// the lines in Temporal's history (nil: no history). Damaged or missing lines are taken from the history or from the
// segments in the store, and they count only if they match the chain. Otherwise the error is a [*DamagedError], or an
// [*OtherEventsError] if the history has other lines. It writes nothing; see [Refill]. A process that opens an epoch
// calls it before the workflow starts, and again under the directory's lock.
func Continue(ctx context.Context, d Dir, blobs Blobs, known []string) (Continuation, error) {
	var c Continuation
	x := &check{dir: d}
	if err := errors.Join(x.readMeta(), x.readJournal(ctx)); err != nil {
		return c, err
	}
	x.judgeJournal()
	x.found = append(x.found, x.lag...) // no process writes to a closed run
	disk, err := ReadStream(d, EventsFile, 0)
	if err != nil {
		return c, err
	}
	if c.Now, err = d.Now(); err != nil {
		return c, err
	}
	if c.lines, c.Broken, err = x.continued(ctx, blobs, disk.Lines, known); err != nil {
		return c, err
	}
	for i := range c.Broken {
		c.Broken[i].Repaired = true
	}
	c.refill = !slices.Equal(c.lines, disk.Lines)
	if err := c.fold(x); err != nil {
		return c, err
	}
	owner, err := d.Owner()
	if err != nil {
		return c, err
	}
	c.Epoch = max(c.State.Epoch, owner.Epoch) + 1 // an execution may have ended before the first event of its epoch
	return c, x.final(c)
}

// fold reads the run from its whole journal instead of meta.json, which may have been changed.
func (c *Continuation) fold(x *check) error {
	fold := run.NewFold(run.State{}, run.History{})
	started := false
	for i, line := range c.lines {
		e, err := run.ParseLine(line)
		if err != nil || e.Seq != int64(i)+1 {
			return x.damaged(JournalDamaged,
				fmt.Sprintf("line %d of %s is not event %d", i+1, EventsFile, i+1))
		}
		if !started && e.Kind == run.KindRunStart {
			started = true
			e.Decode(&c.Start)
		}
		switch e.Kind {
		case run.KindRunEnd, run.KindRunInterrupted:
			c.Ended = true
		case run.KindRunResumed, run.KindRunReverted:
			c.Ended = false
		}
		fold.Apply(e)
	}
	c.State, c.Snapshot = fold.State(), fold.Snapshot()
	c.Tail = run.Tail{Seq: int64(len(c.lines)), Chain: run.Chain("").Over(c.lines)}
	return nil
}

// continued returns the lines of the whole journal, and how the directory differs from them.
func (x *check) continued(ctx context.Context, blobs Blobs, disk, known []string) ([]string, []run.JournalDamage,
	error) {
	tail := run.Tail{Seq: x.meta.Events.Seq, Chain: x.meta.Events.Chain}
	switch {
	case known != nil && begins(known, disk) && (!x.good() || int64(len(known)) >= tail.Seq):
		if len(disk) == 0 {
			return known, nil, nil // a lost file has no damaged line
		}
		return known, LineDamage(disk, known, run.Tail{}), nil
	case known == nil || begins(disk, known) || begins(known, disk): // only the directory has the lines
	case x.good() && Ends(known, tail):
		return slices.Concat(known, NumberedBehind(disk, int64(len(known)))), LineDamage(disk, known, tail),
			nil
	default:
		return nil, nil, OtherEvents(x.dir, int64(common(disk, known))+1)
	}
	if !x.has(JournalDamaged) {
		return disk, nil, nil
	}
	whole, broken, err := x.intact(ctx, blobs)
	if err == nil && whole == nil {
		err = x.damaged(JournalDamaged, sorted(slices.Clone(x.found))[0].Message)
	}
	return whole, broken, err
}

// intact returns the lines of a damaged events.jsonl as they were written: from the segments of the store, and from the
// file itself after the last segment. They count only if they match the chain in meta.json; nil: unknown.
func (x *check) intact(ctx context.Context, blobs Blobs) ([]string, []run.JournalDamage, error) {
	if blobs == nil || !x.good() {
		return nil, nil, nil
	}
	disk, err := ReadStream(x.dir, EventsFile, 0)
	if err != nil {
		return nil, nil, err
	}
	tail := run.Tail{Seq: x.meta.Events.Seq, Chain: x.meta.Events.Chain}
	whole, _, _, err := written(ctx, blobs, x.meta.SegmentHead, tail, disk.Lines, nil)
	if err != nil || whole == nil {
		return nil, nil, err
	}
	behind := disk.Lines
	if begins(behind, whole) { // whatever numbers these lines have, none of them comes behind them
		behind = behind[len(whole):]
	}
	whole = slices.Concat(whole, NumberedBehind(behind, tail.Seq))
	return whole, LineDamage(disk.Lines, whole, tail), nil
}

// begins reports whether lines begin with the lines of with.
func begins(lines, with []string) bool { return common(lines, with) == len(with) }

func (x *check) damaged(c Code, why string) error {
	dir := shell.Quote(x.dir.Root)
	next := fmt.Sprintf("starter check %s lists every finding; restore %s from a copy, or write the run into "+
		"another directory (starter rebuild %s --output-dir OTHER)", dir, EventsFile, shell.Quote(x.runID()))
	if c == FileDiffers {
		next = fmt.Sprintf("starter check %s lists every finding; starter repair-state %s --apply repairs what "+
			"follows from the events", dir, dir)
	}
	return &DamagedError{Dir: x.dir.Root, Code: c, Why: why, Next: next}
}

// final compares the journal with the other records of the run's end: a run that is done stays done, whatever happened
// to its events.
func (x *check) final(c Continuation) error {
	if c.State.Status == run.Done {
		return nil
	}
	if x.good() && x.status() == run.Done {
		return x.damaged(FileDiffers,
			fmt.Sprintf("the run is done according to %s, but not according to the events", MetaFile))
	}
	var r Result
	if err := x.dir.ReadJSON(ResultFile, &r); err == nil && r.Seq > 0 && r.RunID == x.runID() {
		return x.damaged(JournalDamaged,
			fmt.Sprintf("%s records that the run was done at event %d, but the events do not", ResultFile,
				r.Seq))
	} else if err != nil && !disk.Missing(err) {
		return err
	}
	if x.good() {
		return nil
	}
	book, err := x.dir.State()
	if err != nil && !disk.Missing(err) {
		return err
	}
	if err == nil && book.LastSeq > c.Tail.Seq {
		return x.damaged(FileDiffers,
			fmt.Sprintf("%s is at event %d, %s ends with event %d, and no readable %s records what was written",
				StateFile, book.LastSeq, EventsFile, c.Tail.Seq, MetaFile))
	}
	return nil
}

// Refill writes the journal of a continuation if the directory lacks lines of it, and everything that follows from it,
// also if a projection was ended before it did. What is replaced is kept in _orchestrator/torn. A complete directory is
// left unchanged, and one without meta.json is left to repair-state.
func Refill(ctx context.Context, d Dir, blobs Blobs, c Continuation) error {
	if !c.refill && (c.Lag == 0 || c.Meta.Events.Seq == 0) {
		return nil
	}
	return d.export(ctx, blobs, nil, "refill", true, func(w *exporter) error {
		if w.fold.Tail != c.Tail || w.broken {
			if _, err := w.replaceLines(c.lines); err != nil {
				return err
			}
		} else if w.beyond() == 0 {
			return nil
		}
		return w.export()
	})
}

// Checkpoints returns the run's checkpoints in the form of the store, folded from the whole journal.
func (c Continuation) Checkpoints() (Names, error) { return CheckpointsOf(c.lines) }
