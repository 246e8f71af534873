package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// maxBatch is the maximum size of the lines of one projection in bytes: no payload in history exceeds 64 KiB.
const maxBatch = 48 << 10

// journal is the only code that changes the state. An event is folded when it is journaled, and written to the
// directory by flush.
type journal struct {
	e              *engine
	state          run.State // including pending events
	disk           written
	head           string // newest segment
	archived       int64  // last line in it
	unarchivable   int64  // last line that cannot be archived: it is damaged and no intact copy exists
	pending        []run.Event
	mu             workflow.Mutex
	waiting        int                 // callers of project that wait for mu
	reportedDamage []run.JournalDamage // by this execution: the state keeps only the last ones
	newer          bool                // the directory has lines or an epoch that this execution does not know
}

// written is what the directory holds as of the last projection.
type written struct {
	state run.State
	tail  run.Tail
}

// emit journals one event and folds it.
func (j *journal) emit(ctx workflow.Context, kind run.Kind, phase string, payload any) error {
	if j.newer {
		return errNewer
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

// now never decreases.
func (j *journal) now(ctx workflow.Context) string {
	return max(j.state.TS, run.Time(workflow.Now(ctx)))
}

// flush writes pending events to the directory, then starts the notices about them.
func (j *journal) flush(ctx workflow.Context) error {
	if err := j.project(ctx); err != nil {
		return err
	}
	j.e.startNotices(ctx)
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
	if j.newer {
		return errNewer
	}
	ctx = workflow.WithValue(ctx, writing{}, true)
	// What messages journal meanwhile is left to the next call: they may come faster than events are written.
	verified, last := false, j.state.Seq
	for rebuilt := 0; len(j.pending) > 0 && j.disk.tail.Seq < last; {
		var res contract.ProjectResult
		asked := j.e.control.retryRequests
		batch, n, err := j.batch()
		if err != nil {
			return err
		}
		batch.Verified = verified
		err = workflow.ExecuteActivity(j.e.directoryOptions(ctx, batchSummary(batch)), contract.Project, batch).Get(ctx, &res)
		if isType(err, contract.ErrDiskFull) {
			if err := j.e.awaitDiskSpace(ctx, err, asked); err != nil {
				return err
			}
			last = j.state.Seq
			continue // with the pause in the batch
		}
		if err != nil {
			return fmt.Errorf("project events from %d: %w", batch.First, err)
		}
		switch res.Outcome {
		case run.ProjectionWritten:
			j.markWritten(n, res.Tail)
			err = j.e.journalRecovered(ctx, "", res.Recovered, 0)
		case run.ProjectionBehind:
			if rebuilt++; rebuilt > 3 {
				return fmt.Errorf("rebuild the run directory %s: it lost its events again after 3 rebuilds",
					j.e.in.Target.Dir)
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
			last = j.state.Seq
		}
	}
	return nil
}

// batch returns as many pending lines as fit. Events that belong to one pass are not split.
func (j *journal) batch() (contract.ProjectInput, int, error) {
	in := contract.ProjectInput{
		Target: j.e.target(), First: j.pending[0].Seq, Prev: j.disk.tail.Chain, Head: j.head,
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
		j.disk.state = run.Apply(j.disk.state, ev)
		j.e.queueNotices(ev, j.disk.state)
	}
	j.pending, j.disk.tail = j.pending[n:], tail
	j.e.diskFullTries, j.e.control.unwritten = 0, nil
}

// rebuild rebuilds a directory that lacks lines from first.
func (j *journal) rebuild(ctx workflow.Context, first int64) error {
	in := contract.RebuildInput{Target: j.e.in.Target, Claim: j.e.in.Claim, Head: j.head}
	var res contract.RebuildResult
	if err := j.e.runDirectoryActivity(ctx, "rebuild the lost run directory", contract.Rebuild, &in, &res); err != nil {
		return fmt.Errorf("rebuild %s: %w", j.e.in.Target.Dir, err)
	}
	if len(res.Damage) > 0 {
		return j.handleDamage(ctx, res.Damage)
	}
	lost := contract.RecoveredError{
		Category: run.CategoryStateCorruption,
		Message: fmt.Sprintf("%s lost its events from %d: rebuilt from the store and from history", j.e.in.Target.Dir,
			first),
	}
	return j.e.journalRecovered(ctx, "", []contract.RecoveredError{lost}, 0)
}

// rebuildLost rebuilds a directory that an activity has not found.
func (j *journal) rebuildLost(ctx workflow.Context) error {
	return j.rebuild(ctx, j.archived+1)
}

// archive archives the lines up to tail. Damaged lines without an intact copy are journaled and left out.
func (j *journal) archive(ctx workflow.Context, tail run.Tail) error {
	if tail.Seq <= max(j.archived, j.unarchivable) {
		return nil
	}
	in := contract.ArchiveSegmentInput{Target: j.e.in.Target, Head: j.head, First: j.archived + 1, Tail: tail}
	var res contract.ArchiveSegmentResult
	if err := j.e.runDirectoryActivity(ctx, "archive the journal", contract.ArchiveSegment, &in, &res); err != nil {
		return fmt.Errorf("archive events %d to %d: %w", in.First, tail.Seq, err)
	}
	if j.head, j.archived = res.Head, res.Last; j.archived < tail.Seq {
		j.unarchivable = tail.Seq
	}
	return j.journalDamage(ctx, res.Damage)
}

// fullyArchived reports whether everything on disk is archived, as far as possible.
func (j *journal) fullyArchived() bool { return j.disk.tail.Seq <= max(j.archived, j.unarchivable) }
