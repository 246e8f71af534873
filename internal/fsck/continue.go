package fsck

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/journal"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
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
	rundir.Now
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
func Continue(ctx context.Context, d rundir.Dir, blobs projector.Blobs, known []string) (Continuation, error) {
	var c Continuation
	x := &examined{dir: projector.Dir{Dir: d}}
	if err := errors.Join(x.readMeta(), x.readStream(ctx)); err != nil {
		return c, err
	}
	x.judgeStream()
	if x.meta.good() {
		x.judgeChain()
	}
	x.found, x.lag = append(x.found, x.lag...), nil // no process writes to a closed run
	disk, err := journal.ReadStream(d, layout.EventsFile, 0)
	if err != nil {
		return c, err
	}
	if c.Now, err = d.Now(); err != nil {
		return c, err
	}
	if c.lines, err = x.continued(ctx, blobs, disk.Lines, known); err != nil {
		return c, err
	}
	c.Broken = x.broken
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
func (c *Continuation) fold(x *examined) error {
	fold := run.NewFold(run.State{}, run.History{})
	started := false
	for i, line := range c.lines {
		e, err := run.ParseLine(line)
		if err != nil || e.Seq != int64(i)+1 {
			return x.damaged(StreamLineUnreadable,
				fmt.Sprintf("line %d of %s is not event %d", i+1, layout.EventsFile, i+1))
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

// continued returns the lines of the whole journal.
func (x *examined) continued(ctx context.Context, blobs projector.Blobs, disk, known []string) ([]string, error) {
	tail := run.Tail{Seq: x.meta.typed.Events.Seq, Chain: x.meta.typed.Events.Chain}
	switch {
	case known != nil && begins(known, disk) && (!x.meta.good() || int64(len(known)) >= tail.Seq):
		x.broken = journal.LineDamage(disk, known, run.Tail{})
		if len(disk) == 0 {
			x.broken = nil // a lost file has no damaged line
		}
		return known, nil
	case known == nil || begins(disk, known) || begins(known, disk): // only the directory has the lines
	case x.meta.good() && journal.Ends(known, tail):
		x.broken = journal.LineDamage(disk, known, tail)
		return slices.Concat(known, journal.NumberedBehind(disk, int64(len(known)))), nil
	default:
		return nil, projector.OtherEvents(x.dir, firstOther(disk, known))
	}
	i := slices.IndexFunc(x.found, func(i Issue) bool {
		return slices.Contains(streamDamage(), i.Code)
	})
	if i < 0 {
		return disk, nil
	}
	if err := x.readWhole(ctx, blobs); err != nil {
		return nil, err
	}
	if x.whole == nil {
		found := sorted(slices.Clone(x.found))[0]
		return nil, x.damaged(found.Code, found.Message)
	}
	return x.whole, nil
}

// begins reports whether lines begin with the lines of with.
func begins(lines, with []string) bool {
	return len(lines) >= len(with) && slices.Equal(lines[:len(with)], with)
}

// firstOther is the first event in which two journals differ.
func firstOther(a, b []string) int64 {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return int64(n) + 1
}

func (x *examined) damaged(c Code, why string) error {
	dir := shell.Quote(x.dir.Root)
	next := fmt.Sprintf("starter check %s lists every finding; restore %s from a copy, or write the run into "+
		"another directory (starter rebuild %s --output-dir OTHER)", dir, layout.EventsFile, shell.Quote(x.runID()))
	if c == TerminalMetaWithoutTerminalEvent || c == MetaMissing || c == MetaUnreadable {
		next = fmt.Sprintf("starter check %s lists every finding; starter repair-state %s --apply repairs what "+
			"follows from the events", dir, dir)
	}
	return &DamagedError{Dir: x.dir.Root, Code: c, Why: why, Next: next}
}

// final compares the journal with the other records of the run's end: a run that is done stays done, whatever happened
// to its events.
func (x *examined) final(c Continuation) error {
	if c.State.Status == run.Done {
		return nil
	}
	if x.meta.good() && x.meta.status() == run.Done {
		return x.damaged(TerminalMetaWithoutTerminalEvent,
			fmt.Sprintf("the run is done according to %s, but not according to the events", layout.MetaFile))
	}
	var r rundir.Result
	if err := x.dir.ReadJSON(layout.ResultFile, &r); err == nil && r.Seq > 0 && r.RunID == x.runID() {
		return x.damaged(ChainMismatch,
			fmt.Sprintf("%s records that the run was done at event %d, but the events do not", layout.ResultFile,
				r.Seq))
	} else if err != nil && !disk.Missing(err) {
		return err
	}
	if x.meta.good() {
		return nil
	}
	book, err := x.dir.State()
	if err != nil && !disk.Missing(err) {
		return err
	}
	if err == nil && book.LastSeq > c.Tail.Seq {
		code := MetaMissing
		if x.meta.raw != nil {
			code = MetaUnreadable
		}
		return x.damaged(code,
			fmt.Sprintf("%s is at event %d, %s ends with event %d, and no readable %s records what was written",
				layout.StateFile, book.LastSeq, layout.EventsFile, c.Tail.Seq, layout.MetaFile))
	}
	return nil
}

// Refill writes the journal of a continuation if the directory lacks lines of it, as a repair does: copies of the
// replaced files are kept under run_state_repairs/, with an audit file, and everything derived from the events is
// rebuilt. A complete directory is left unchanged.
func Refill(ctx context.Context, d projector.Dir, c Continuation, o RepairOptions) error {
	if !c.refill {
		return nil
	}
	lock, err := lockRepair(d, o)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	disk, err := journal.ReadStream(d, layout.EventsFile, 0)
	if err != nil || slices.Equal(disk.Lines, c.lines) {
		return err
	}
	x, err := examine(ctx, d, CheckOptions{EffectiveStatus: o.EffectiveStatus}, true)
	if err != nil {
		return err
	}
	x.whole, x.broken = c.lines, c.Broken
	p := repairPlan{codes: []Code{}}
	x.note(&p)
	x.planLines(&p)
	_, err = x.apply(ctx, o, p)
	return err
}

// Checkpoints returns the run's checkpoints in the form of the store, folded from the whole journal.
func (c Continuation) Checkpoints() (projector.Names, error) { return projector.CheckpointsOf(c.lines) }
