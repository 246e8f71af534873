package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/work"
)

// maxBatch bounds the lines of one projection, in bytes: no payload in history is over 64 KiB.
const maxBatch = 48 << 10

// journal is the only place that changes the state. An event is folded when it is written down, and carried to the directory by flush.
type journal struct {
	e       *engine
	state   run.State // with the pending events in it
	base    run.State // as of tail
	tail    run.Tail  // on disk, as the last projection said
	head    string    // newest segment
	sealed  int64     // last line in it
	unkept  int64     // last line that could not be stored, because it is damaged and nothing has it as it was
	pending []run.Event
	mu      workflow.Mutex
	named   []run.JournalDamage // by this execution: the state keeps only the last ones
	final   bool                // the directory holds the end of the run, which this execution has not written
}

// emit writes down one event and folds it.
func (j *journal) emit(ctx workflow.Context, kind run.Kind, phase string, payload any) error {
	late := kind == run.KindDecisionRefused && j.state.Status == run.Done && wasReset(ctx) // the reset has brought a message back
	if j.final || late {                                                                   // nothing is written behind the end that the directory holds
		return nil
	}
	raw, err := run.Payload(payload)
	if err != nil {
		return err
	}
	ev := run.Event{Seq: j.state.Seq + 1, TS: j.now(ctx), Kind: kind, Payload: raw}
	if phase != "" {
		ev.Phase = &phase
	}
	before := j.state
	j.pending = append(j.pending, ev)
	j.state = run.Apply(j.state, ev)
	return j.e.publish(ctx, before)
}

// now never goes back.
func (j *journal) now(ctx workflow.Context) string {
	return max(j.state.TS, run.Time(workflow.Now(ctx)))
}

// flush carries what is pending to the directory and waits until it is there. Who is to be told of it is told then.
func (j *journal) flush(ctx workflow.Context) error {
	if err := j.carry(ctx); err != nil {
		return err
	}
	j.e.announce(ctx)
	return nil
}

func (j *journal) carry(ctx workflow.Context) error {
	if err := j.mu.Lock(ctx); err != nil {
		return err
	}
	defer j.mu.Unlock()
	verified := false
	for rebuilt := 0; len(j.pending) > 0; {
		var res work.ProjectResult
		var batch work.ProjectInput
		var n int
		asked := j.e.control.tries
		err := j.e.atHome(ctx, func() (err error) {
			if batch, n, err = j.batch(); err != nil {
				return err
			}
			batch.Verified = verified
			return workflow.ExecuteActivity(j.e.directory(ctx, batchSummary(batch)), work.Project, batch).Get(ctx, &res)
		})
		if isType(err, work.ErrDiskFull) {
			if err := j.e.awaitRoom(ctx, err, asked); err != nil {
				return err
			}
			continue // with the pause in the batch
		}
		if err != nil {
			return fmt.Errorf("project events from %d on: %w", batch.First, err)
		}
		switch res.Outcome {
		case "written":
			j.written(n, res.Tail)
			err = j.e.noteTroubles(ctx, "", res.Troubles, 0)
		case "gap":
			if rebuilt++; rebuilt > 3 {
				return fmt.Errorf("the run directory %s keeps losing its events", j.e.in.Target.Dir)
			}
			err = j.rebuild(ctx, res.Tail.Seq+1)
		case "damaged":
			verified = true
			err = j.damaged(ctx, res.Damage)
		case "diverged":
			err = j.moveBehind(ctx, res.Tail)
		case "final":
			err = j.finish(ctx, res)
		default:
			return temporal.NewNonRetryableApplicationError("a later start of this run owns "+j.e.in.Target.Dir, work.ErrStale, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// batch takes as many pending lines as fit. What belongs to a pass stays together with it, so that no projection ends in the middle of what it gave.
func (j *journal) batch() (work.ProjectInput, int, error) {
	in := work.ProjectInput{Target: j.e.in.Target, Epoch: j.state.Epoch, First: j.pending[0].Seq, Prev: j.tail.Chain, Head: j.head}
	size := 0
	for _, ev := range j.pending {
		line, err := ev.Line()
		if err != nil {
			return in, 0, err
		}
		if size += len(line); size > maxBatch && len(in.Lines) > 0 {
			in.Lines = in.Lines[:j.whole(len(in.Lines))]
			break
		}
		in.Lines = append(in.Lines, line)
	}
	return in, len(in.Lines), nil
}

// whole is how many of the first n pending lines end with something whole; n where nothing does.
func (j *journal) whole(n int) int {
	for k := n; k > 0; k-- {
		if !j.pending[k].Kind.Follows() {
			return k
		}
	}
	return n
}

func batchSummary(b work.ProjectInput) string {
	return fmt.Sprintf("events %d to %d", b.First, b.First+int64(len(b.Lines))-1)
}

// written takes note of n lines that are on disk. Others may have been written down meanwhile.
func (j *journal) written(n int, tail run.Tail) {
	for _, ev := range j.pending[:n] {
		j.base = run.Apply(j.base, ev)
		j.e.notice(ev, j.base)
	}
	j.pending, j.tail = j.pending[n:], tail
	j.e.noRoom = 0
}

// rebuild has the directory written again that lacks lines from first on.
func (j *journal) rebuild(ctx workflow.Context, first int64) error {
	in := work.RebuildInput{Target: j.e.in.Target, Claim: j.e.in.Claim, Head: j.head}
	var res work.RebuildResult
	if err := j.e.onDisk(ctx, "write the lost directory again", work.Rebuild, &in, &res); err != nil {
		return fmt.Errorf("rebuild %s: %w", j.e.in.Target.Dir, err)
	}
	if len(res.Damage) > 0 {
		return j.damaged(ctx, res.Damage)
	}
	lost := work.Trouble{Category: "state-corruption", Message: fmt.Sprintf("%s had lost its events from %d on: written again from the store and from history", j.e.in.Target.Dir, first)}
	return j.e.noteTroubles(ctx, "", []work.Trouble{lost}, 0)
}

// moveBehind numbers the pending events behind what is on disk. The lines there stay, are sealed into the store, and are named as abandoned.
func (j *journal) moveBehind(ctx workflow.Context, disk run.Tail) error {
	if err := j.seal(ctx, disk); err != nil {
		return err
	}
	holds := j.base
	raw, err := run.Payload(run.RunReverted{
		To: holds.Seq, Cause: "reset", Abandoned: run.Range{First: holds.Seq + 1, Last: disk.Seq}, State: &holds,
	})
	if err != nil {
		return err
	}
	lead := run.Event{TS: j.now(ctx), Kind: run.KindRunReverted, Payload: raw}
	moved := append([]run.Event{lead}, j.pending...)
	state := j.base
	for i := range moved {
		moved[i].Seq = disk.Seq + 1 + int64(i)
		moved[i].TS = max(moved[i].TS, lead.TS) // they were written down before the lead, and time never goes back in a journal
		state = run.Apply(state, moved[i])
	}
	j.pending, j.state, j.tail = moved, state, disk
	return nil
}

// seal puts the lines up to tail into the store. Lines that are damaged, and that nothing has as they were, are journaled as such, and left out.
func (j *journal) seal(ctx workflow.Context, tail run.Tail) error {
	if tail.Seq <= max(j.sealed, j.unkept) {
		return nil
	}
	in := work.SealInput{Target: j.e.in.Target, Head: j.head, First: j.sealed + 1, Tail: tail}
	var res work.SealResult
	err := j.e.onDisk(ctx, "store the journal so far", work.Seal, &in, &res)
	if isType(err, work.ErrShorter) {
		if err := j.rebuild(ctx, in.First); err != nil {
			return err
		}
		err = j.e.onDisk(ctx, "store the journal so far", work.Seal, &in, &res)
	}
	if err != nil {
		return fmt.Errorf("store events %d to %d: %w", in.First, tail.Seq, err)
	}
	if j.head, j.sealed = res.Head, res.Last; j.sealed < tail.Seq {
		j.unkept = tail.Seq
	}
	return j.noteDamage(ctx, res.Damage)
}

// stored says that everything on disk is in the store, as far as it can be.
func (j *journal) stored() bool { return j.tail.Seq <= max(j.sealed, j.unkept) }
