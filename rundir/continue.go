package rundir

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
)

// DamagedError says that the journal of a directory is not what was written, and that neither the store nor Temporal's history has the lines. Nothing was
// changed.
type DamagedError struct {
	Dir  string
	Code Code // as a check names it
	Why  string
	Next string // what to do
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("open run directory %s: %s: %s; nothing was changed. %s", e.Dir, e.Code, e.Why, e.Next)
}

// Continuation is what the next epoch of a run that has closed continues: the run as its whole journal gives it.
type Continuation struct {
	Now
	Start  run.RunStart
	Broken []run.JournalDamage // lines that the directory lacks, or holds otherwise, and that the store or the history has

	lines  []string // of the whole journal
	refill bool     // the directory does not hold them
}

// Continue compares the journal of a run that has closed with everything that says what was written: the chain in meta.json, result.json, and known, the
// lines that Temporal's history has; nil: it has none. Lines that are damaged or missing are taken from the history or from the segments in the store,
// and they count only if they give the chain. Otherwise the error is a [*DamagedError], or an [*OtherEventsError] where the history holds other lines.
// Nothing is written: see [Dir.Refill]. It is what whoever opens an epoch goes by, before the workflow starts and again under the directory's lock.
func (d Dir) Continue(ctx context.Context, blobs Blobs, known []string) (Continuation, error) {
	var c Continuation
	x := &examined{dir: d}
	if err := errors.Join(x.readMeta(), x.readStream(ctx)); err != nil {
		return c, err
	}
	x.judgeStream()
	if x.own && x.meta.good() {
		x.judgeChain()
	}
	x.found, x.lag = append(x.found, x.lag...), nil // no process writes to a run that has closed
	disk, err := d.readStream(0)
	if err != nil {
		return c, err
	}
	if c.Now, err = d.Now(); err != nil {
		return c, err
	}
	if c.lines, err = x.continued(ctx, blobs, disk.lines, known); err != nil {
		return c, err
	}
	c.Broken = x.broken
	for i := range c.Broken {
		c.Broken[i].Repaired = true
	}
	c.refill = !slices.Equal(c.lines, disk.lines)
	if err := c.fold(x); err != nil {
		return c, err
	}
	return c, x.final(c)
}

// fold reads the run from its whole journal, and not from meta.json, which may have been changed.
func (c *Continuation) fold(x *examined) error {
	fold := run.NewFold(run.State{}, run.History{})
	started := false
	for i, line := range c.lines {
		e, err := run.ParseEvent([]byte(line))
		if err != nil || e.Seq != int64(i)+1 {
			return x.damaged(StreamLineUnreadable, fmt.Sprintf("line %d of %s is not event %d", i+1, EventsFile, i+1))
		}
		if !started && e.Kind == run.KindRunStart {
			started = true
			e.Decode(&c.Start)
		}
		fold.Apply(e)
	}
	c.State, c.Snapshot = fold.State(), fold.Snapshot()
	c.Tail = run.Tail{Seq: int64(len(c.lines)), Chain: run.Chain("").Over(c.lines)}
	return nil
}

// continued gives the lines of the whole journal.
func (x *examined) continued(ctx context.Context, blobs Blobs, disk, known []string) ([]string, error) {
	tail := run.Tail{Seq: x.meta.typed.Events.Seq, Chain: x.meta.typed.Events.Chain}
	switch {
	case known != nil && begins(known, disk) && (!x.meta.good() || int64(len(known)) >= tail.Seq):
		x.broken = lineDamage(disk, known, run.Tail{})
		if len(disk) == 0 {
			x.broken = nil // a lost file has no damaged line
		}
		return known, nil
	case known == nil || begins(disk, known) || begins(known, disk): // the directory alone has to do
	case x.meta.good() && ends(known, tail):
		x.broken = lineDamage(disk, known, tail)
		return slices.Concat(known, numberedBehind(disk, int64(len(known)))), nil
	default:
		return nil, &OtherEventsError{Dir: x.dir.Root, Seq: firstOther(disk, known)}
	}
	i := slices.IndexFunc(x.found, func(i Issue) bool {
		return slices.Contains([]Code{ChainMismatch, StreamLineUnreadable, StreamSeqGap, StreamSeqDuplicate}, i.Code)
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

// begins says that the lines begin with these.
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
	next := fmt.Sprintf("starter check %s lists every finding; restore %s from a copy, or write the run into another directory (starter rebuild %s --output-dir OTHER)", dir, EventsFile, shell.Quote(x.runID()))
	if c == TerminalMetaWithoutTerminalEvent || c == MetaMissing || c == MetaUnreadable {
		next = fmt.Sprintf("starter check %s lists every finding; starter repair-state %s --apply repairs what follows from the events", dir, dir)
	}
	return &DamagedError{Dir: x.dir.Root, Code: c, Why: why, Next: next}
}

// final holds what the directory keeps beside the journal to the run's end: one that is done stays done, whatever became of its events.
func (x *examined) final(c Continuation) error {
	if c.State.Status == run.Done {
		return nil
	}
	if x.meta.good() && x.meta.status() == run.Done {
		return x.damaged(TerminalMetaWithoutTerminalEvent, fmt.Sprintf("%s says that the run is done, and the events do not", MetaFile))
	}
	var r Result
	if err := x.dir.readJSON(ResultFile, &r); err == nil && r.Seq > 0 && r.RunID == x.runID() {
		return x.damaged(ChainMismatch, fmt.Sprintf("%s records that the run was done with event %d, and the events do not", ResultFile, r.Seq))
	} else if err != nil && !missing(err) {
		return err
	}
	if x.meta.good() {
		return nil
	}
	book, err := x.dir.written()
	if err != nil && !missing(err) {
		return err
	}
	if err == nil && book.LastSeq > c.Tail.Seq {
		code := MetaMissing
		if x.meta.raw != nil {
			code = MetaUnreadable
		}
		return x.damaged(code, fmt.Sprintf("%s stands at event %d, %s ends with event %d, and no readable %s says what was written", StateFile, book.LastSeq, EventsFile, c.Tail.Seq, MetaFile))
	}
	return nil
}

// Refill writes the journal of a continuation where the directory does not hold it, as a repair does: copies of what is replaced are kept under
// run_state_repairs/, with an audit file, and everything that follows from the events is made again. A directory that holds it already is left alone.
func (d Dir) Refill(ctx context.Context, c Continuation, o RepairOptions) error {
	if !c.refill {
		return nil
	}
	lock, err := d.lockRepair(true, o)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	disk, err := d.readStream(0)
	if err != nil || slices.Equal(disk.lines, c.lines) {
		return err
	}
	x, err := d.examine(ctx, CheckOptions{Standing: o.Standing}, true)
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

// Checkpoints gives the run's checkpoints as they would lie in the store, folded from the whole journal.
func (c Continuation) Checkpoints() (Names, error) { return checkpointsOf(c.lines) }
