package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// journal is the only code that changes the state. An event is folded when it is journaled, and written to the
// directory by flush.
type journal struct {
	*execution
	now     run.State // including pending events
	pending []run.Event
	err     error // of an event that could not be journaled
	written written
	mu      workflow.Mutex // held by the coroutine that writes
	waiting int            // callers of project that wait for mu

	head         string              // newest segment
	archived     int64               // last line in it
	unarchivable int64               // last line that cannot be archived: it is damaged and no intact copy exists
	damage       []run.JournalDamage // reported by this execution: the state keeps only the last ones
	fullTries    int                 // consecutive attempts that found the disk full

	newer         bool                // the directory has lines or an epoch that this execution does not know
	stop          workflow.CancelFunc // cancels everything
	unflushed     bool                // an event waits to be written by the flusher
	looks, looked int                 // requests to compare the directory, and how many of them are done
}

// written is what the directory holds as of the last projection.
type written struct {
	state run.State
	tail  run.Tail
}

// publish updates the search attributes when status, stage or score change. Each update is one history event.
func (j *journal) publish(ctx workflow.Context, before run.State) error {
	s := j.now
	if !j.in.Options.Attributes ||
		(s.Status == before.Status && s.Phase == before.Phase && sameScore(s.Score, before.Score)) {
		return nil
	}
	updates := append(shown(j.in.Options, s.Status), attrCost.ValueSet(s.Total()))
	if s.Phase != "" {
		updates = append(updates, attrStage.ValueSet(s.Phase))
	}
	if s.Score != nil {
		updates = append(updates, attrScore.ValueSet(*s.Score))
	}
	return workflow.UpsertTypedSearchAttributes(ctx, updates...)
}

// startFlusher starts the coroutine that writes journaled events, and compares the directory for messages, while the
// loop waits for something else.
func (j *journal) startFlusher(ctx workflow.Context) {
	workflow.GoNamed(ctx, "flusher", func(ctx workflow.Context) {
		wanted := func() bool { return j.inbox.isOpen() && (j.looked < j.looks || j.unflushed && j.waiting == 0) }
		for workflow.Await(ctx, wanted) == nil {
			looks, write := j.looks, j.flush
			if j.unflushed = false; j.looked < looks {
				write = j.look
			}
			if err := write(ctx); err != nil { // events stay pending: the loop writes them or fails
				workflow.GetLogger(ctx).Error("compare or write the run directory", "error", err)
			}
			j.looked = looks
		}
	})
}

// maxBatch is the maximum size of the lines of one projection in bytes: no payload in history exceeds 64 KiB.
const maxBatch = 48 << 10

func (j *journal) state() run.State { return j.now }

// load continues the journal of the last execution.
func (j *journal) load(s *contract.Snapshot) {
	j.now, j.written, j.head, j.archived = s.State, written{s.State, s.Tail}, s.Head, s.Archived
}

// snapshot is what the next execution loads.
func (j *journal) snapshot() *contract.Snapshot {
	return &contract.Snapshot{State: j.now, Tail: j.written.tail, Head: j.head, Archived: j.archived}
}

// whole reports whether everything is on disk and archived.
func (j *journal) whole() bool {
	return len(j.pending) == 0 && j.fullyArchived() && j.failed() == nil
}

// stopsWith sets what cancels everything when the directory is newer.
func (j *journal) stopsWith(stop workflow.CancelFunc) { j.stop = stop }

// cancel cancels the run.
func (j *journal) cancel() { j.stop() }

// surrender ends the journal of this execution: the directory counts.
func (j *journal) surrender() { j.newer = true }

// isNewer reports whether the directory is newer than what this execution knows: nothing more is journaled.
func (j *journal) isNewer() bool { return j.newer }

// end is the last event on disk.
func (j *journal) end() run.Tail { return j.written.tail }

// soon lets the flusher write what is pending.
func (j *journal) soon() { j.unflushed = true }

// emit journals one event and folds it. An error is returned by flush.
func (j *journal) emit(ctx workflow.Context, kind run.Kind, phase string, payload any) {
	if j.failed() != nil {
		return
	}
	raw, err := run.Payload(payload)
	if err != nil {
		j.err = fmt.Errorf("journal %s: %w", kind, err)
		return
	}
	j.add(ctx, kind, phase, raw)
}

func (j *journal) add(ctx workflow.Context, kind run.Kind, phase string, payload []byte) {
	ev := run.Event{Seq: j.now.Seq + 1, TS: j.time(ctx), Kind: kind, Payload: payload}
	if phase != "" {
		ev.Phase = &phase
	}
	before := j.now
	j.pending = append(j.pending, ev)
	j.now = run.Apply(j.now, ev)
	if err := j.publish(ctx, before); err != nil {
		j.err = err
	}
}

// failed is why nothing more is journaled: flush returns it, and so do messages.
func (j *journal) failed() error {
	if j.newer {
		return errNewer
	}
	return j.err
}

// forgive lets the end of a run be journaled after an event that could not be.
func (j *journal) forgive() { j.err = nil }

// time never decreases.
func (j *journal) time(ctx workflow.Context) string {
	return max(j.now.TS, run.Time(workflow.Now(ctx)))
}

// flush writes pending events to the directory, then starts the notices about them.
func (j *journal) flush(ctx workflow.Context) error {
	if err := j.project(ctx); err != nil {
		return err
	}
	j.notices.start(ctx)
	return nil
}

func (j *journal) project(ctx workflow.Context) error {
	j.waiting++
	err := j.mu.Lock(ctx)
	j.waiting--
	if err != nil {
		return err
	}
	defer j.mu.Unlock()
	if err := j.failed(); err != nil {
		return err
	}
	ctx = workflow.WithValue(ctx, writing{}, true)
	// What messages journal meanwhile is left to the next call: they may come faster than events are written.
	verified, last := false, j.now.Seq
	for rebuilt := 0; len(j.pending) > 0 && j.written.tail.Seq < last; {
		var res contract.ProjectResult
		asked := j.inbox.requested()
		batch, n, err := j.batch()
		if err != nil {
			return err
		}
		batch.Verified = verified
		err = workflow.ExecuteActivity(j.host.directoryOptions(ctx, batchSummary(batch)), contract.Project, batch).Get(ctx, &res)
		if isType(err, contract.ErrDiskFull) {
			if err := j.awaitDiskSpace(ctx, err, asked); err != nil {
				return err
			}
			last = j.now.Seq
			continue // with the pause in the batch
		}
		if err != nil {
			return fmt.Errorf("project events from %d: %w", batch.First, err)
		}
		switch res.Outcome {
		case run.ProjectionWritten:
			j.markWritten(n, res.Tail)
			j.journalRecovered(ctx, "", res.Recovered, 0)
		case run.ProjectionBehind:
			if rebuilt++; rebuilt > 3 {
				return fmt.Errorf("rebuild the run directory %s: it lost its events again after 3 rebuilds",
					j.in.Target.Dir)
			}
			err = j.rebuild(ctx, res.Tail.Seq+1)
		case run.ProjectionDamaged:
			verified = true
			err = j.handleDamage(ctx, res.Damage)
		default:
			return j.becomeNewer()
		}
		if err != nil {
			return err
		}
		if res.Outcome != run.ProjectionWritten || len(res.Recovered) > 0 { // other events, or other numbers
			last = j.now.Seq
		}
	}
	return nil
}

// batch returns as many pending lines as fit. Events that belong to one pass are not split.
func (j *journal) batch() (contract.ProjectInput, int, error) {
	in := contract.ProjectInput{
		Target: j.target(), First: j.pending[0].Seq, Prev: j.written.tail.Chain, Head: j.head,
	}
	size := 0
	for _, ev := range j.pending {
		line, err := ev.Line()
		if err != nil {
			return in, 0, err
		}
		if size += len(line); size > maxBatch && len(in.Lines) > 0 {
			in.Lines = in.Lines[:j.wholePrefix(len(in.Lines))]
			break
		}
		in.Lines = append(in.Lines, line)
	}
	return in, len(in.Lines), nil
}

// wholePrefix returns how many of the first n pending events can be written without splitting a pass, or n if
// none.
func (j *journal) wholePrefix(n int) int {
	for k := n; k > 0; k-- {
		if !j.pending[k].Kind.PartOfPass() {
			return k
		}
	}
	return n
}

func batchSummary(b contract.ProjectInput) string {
	return fmt.Sprintf("events %d to %d", b.First, b.First+int64(len(b.Lines))-1)
}

// markWritten records that n events are on disk. More may have become pending meanwhile.
func (j *journal) markWritten(n int, tail run.Tail) {
	for _, ev := range j.pending[:n] {
		j.written.state = run.Apply(j.written.state, ev)
		j.notices.queue(ev, j.written.state)
	}
	j.pending, j.written.tail = j.pending[n:], tail
	j.fullTries = 0
	j.inbox.written()
}

// rebuild rebuilds a directory that lacks lines from first.
func (j *journal) rebuild(ctx workflow.Context, first int64) error {
	in := contract.RebuildInput{Target: j.in.Target, Claim: j.in.Claim, Head: j.head}
	var res contract.RebuildResult
	if err := j.runDirectoryActivity(ctx, "rebuild the lost run directory", contract.Rebuild, &in, &res); err != nil {
		return fmt.Errorf("rebuild %s: %w", j.in.Target.Dir, err)
	}
	if len(res.Damage) > 0 {
		return j.handleDamage(ctx, res.Damage)
	}
	lost := contract.RecoveredError{
		Category: run.CategoryStateCorruption,
		Message: fmt.Sprintf("%s lost its events from %d: rebuilt from the store and from history", j.in.Target.Dir,
			first),
	}
	j.journalRecovered(ctx, "", []contract.RecoveredError{lost}, 0)
	return nil
}

// rebuildLost rebuilds a directory that an activity has not found.
func (j *journal) rebuildLost(ctx workflow.Context) error {
	return j.rebuild(ctx, j.archived+1)
}

// archive archives the lines on disk. Damaged lines without an intact copy are journaled and left out.
func (j *journal) archive(ctx workflow.Context) error {
	tail := j.written.tail
	if j.fullyArchived() {
		return nil
	}
	in := contract.ArchiveSegmentInput{Target: j.in.Target, Head: j.head, First: j.archived + 1, Tail: tail}
	var res contract.ArchiveSegmentResult
	if err := j.runDirectoryActivity(ctx, "archive the journal", contract.ArchiveSegment, &in, &res); err != nil {
		return fmt.Errorf("archive events %d to %d: %w", in.First, tail.Seq, err)
	}
	if j.head, j.archived = res.Head, res.Last; j.archived < tail.Seq {
		j.unarchivable = tail.Seq
	}
	j.journalDamage(ctx, res.Damage)
	return nil
}

// fullyArchived reports whether everything on disk is archived, as far as possible.
func (j *journal) fullyArchived() bool { return j.written.tail.Seq <= max(j.archived, j.unarchivable) }

// compared waits until the directory is compared once more; false: it was not in time.
func (j *journal) compared(ctx workflow.Context) (bool, error) {
	j.looks++
	mine := j.looks
	return awaitFor(ctx, hostTimeout, "until the directory is compared", func() bool { return j.looked >= mine || j.newer })
}

// lookSoon lets the flusher compare the directory.
func (j *journal) lookSoon() { j.looks++ }

// look writes what is pending, or compares the directory with this execution.
func (j *journal) look(ctx workflow.Context) error {
	if len(j.pending) > 0 || j.mu.IsLocked() {
		return j.flush(ctx)
	}
	return j.compare(ctx, hostTimeout)
}

// maxTurn is the maximum size in bytes of the lines of a turn, whose input contains a call too.
const maxTurn = 32 << 10

// fitTurn reports whether a turn can take all pending events, and no other projection is in progress.
func (j *journal) fitTurn() bool {
	if j.failed() != nil || j.mu.IsLocked() || j.waiting > 0 || len(j.pending) == 0 {
		return false
	}
	size, after := 0, j.written.state
	for _, ev := range j.pending {
		line, err := ev.Line()
		if size += len(line); err != nil || size > maxTurn {
			return false
		}
		after = run.Apply(after, ev)
		if len(j.notices.receivers(ev, after)) > 0 {
			return false
		}
	}
	return true
}

// tookTurn records that the events of a turn are on disk, unless another projection does.
func (j *journal) tookTurn(ctx workflow.Context, batch contract.ProjectInput, res contract.ProjectResult) {
	if !j.mu.IsLocked() && len(j.pending) >= len(batch.Lines) && j.pending[0].Seq == batch.First &&
		j.written.tail.Chain == batch.Prev {
		j.markWritten(len(batch.Lines), res.Tail)
	}
	j.journalRecovered(ctx, "", res.Recovered, 0)
}
