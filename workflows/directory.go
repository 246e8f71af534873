package workflows

import (
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

type targetSetter interface {
	SetTarget(to contract.Target)
}

// runDirectoryActivity runs an activity on the host of the directory, and waits while its disk is full.
func (j *journal) runDirectoryActivity(ctx workflow.Context, summary, activity string, in targetSetter, out any) error {
	defer j.host.clearDiskFull(ctx) // and not before: a retry that is under way is still held up
	for stale := 0; ; {
		asked := j.inbox.requested()
		in.SetTarget(j.targetIn(ctx))
		err := workflow.ExecuteActivity(j.host.directoryOptions(ctx, summary), activity, in).Get(ctx, out)
		if compares := activity == contract.Inspect || activity == contract.ArchiveSegment; compares &&
			isType(err, contract.ErrNewer) {
			if err := j.requireCurrent(ctx, stale, err); err != nil {
				return err
			}
			stale++
			continue
		}
		if isType(err, contract.ErrDirectoryLost) {
			if err := j.rebuildLost(ctx); err != nil {
				return err
			}
			continue
		}
		if !isType(err, contract.ErrDiskFull) {
			j.fullTries = 0
			return err
		}
		if err := j.awaitDiskSpace(ctx, err, asked); err != nil {
			return err
		}
	}
}

// Backoff for a full disk: each retry adds to the history.
const (
	diskRetryMin = 15 * time.Second
	diskRetryMax = 10 * time.Minute
)

// awaitDiskSpace pauses the run for a full disk. The pause itself cannot be written yet: queries, the Web UI and
// search attributes show it at once, the files once there is space. It returns when it is time to retry, or when
// an operator asks for a retry. asked is the number of such requests when the failed attempt began, so that none
// is missed.
func (j *journal) awaitDiskSpace(ctx workflow.Context, full error, asked int) error {
	if j.active() && !j.newer {
		j.emit(ctx, run.KindRunPaused, j.now.Phase, run.RunPaused{
			Reason: run.DiskFull, Detail: errorMessage(full),
		})
	}
	next := time.Duration(float64(min(diskRetryMin<<min(j.fullTries, 10), diskRetryMax)) * j.in.Options.TimeScale)
	j.fullTries++
	_, err := j.wait(ctx, wait{name: waitDisk, until: workflow.Now(ctx).Add(next), cause: errorMessage(full),
		summary: "before the next attempt at writing to a full disk",
		wakes:   func() bool { return j.inbox.requested() != asked }})
	return err
}

// becomeNewer stops everything but running calls, which are paid for: nothing more is journaled. When they have ended, so
// does this execution.
func (j *journal) becomeNewer() error {
	j.newer, j.pending = true, nil
	if j.running.idle() {
		j.stop()
	}
	return errNewer
}

// compare asks the directory whether it has later events, while nothing is written. within bounds the wait for its host;
// 0: nothing does.
func (j *journal) compare(ctx workflow.Context, within time.Duration) error {
	if ctx.Value(writing{}) == nil {
		if err := j.mu.Lock(ctx); err != nil {
			return err
		}
		defer j.mu.Unlock()
	}
	ctx = j.host.directoryOptions(ctx, "compare the run directory")
	opts := workflow.GetActivityOptions(ctx)
	opts.ScheduleToCloseTimeout = within
	in := contract.ProjectInput{Target: j.target(), First: j.written.tail.Seq + 1, Prev: j.written.tail.Chain, Head: j.head}
	var res contract.ProjectResult
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, opts), contract.Project, in).Get(ctx, &res)
	switch {
	case j.newer:
		return errNewer
	case err == nil && res.Outcome == run.ProjectionNewer:
		return j.becomeNewer()
	}
	return err
}

// writing is the key of contexts whose coroutine holds the journal's mutex.
type writing struct{}

// target locates the run for an activity that must know the end of the directory's journal: what this execution has
// written. What it has not written may differ from what the directory has.
func (j *journal) target() contract.Target {
	t := j.in.Target
	t.Epoch, t.Seq = max(t.Epoch, j.now.Epoch), j.written.tail.Seq
	return t
}

// targetIn is the target of an activity in a context. While the journal is repaired, nothing else writes: what is pending may
// be on disk.
func (j *journal) targetIn(ctx workflow.Context) contract.Target {
	t := j.target()
	if ctx.Value(writing{}) != nil {
		t.Seq = j.now.Seq
	}
	return t
}

// requireCurrent returns whether the directory is newer, after an activity was refused for the nth time because it has more
// events than this execution knew then: another coroutine may have written them meanwhile.
func (j *journal) requireCurrent(ctx workflow.Context, n int, refused error) error {
	const most = 5 // then something else is wrong
	if n >= most {
		if err := j.host.awaitRetry(ctx, n-most, errorMessage(refused), never); err != nil {
			return err
		}
	}
	if ctx.Value(writing{}) == nil && (len(j.pending) > 0 || j.mu.IsLocked()) {
		return j.flush(ctx)
	}
	return j.compare(ctx, 0)
}

// handleDamage journals damage that was found before pending events were written. Lost or damaged segments are
// first archived again from the directory. An event that ends the run stays the last one.
func (j *journal) handleDamage(ctx workflow.Context, found []run.JournalDamage) error {
	found, err := j.rearchive(ctx, found)
	if err != nil {
		return err
	}
	n := slices.IndexFunc(j.pending, func(e run.Event) bool { return e.Kind == run.KindRunEnd })
	if n < 0 {
		j.journalDamage(ctx, found)
		return nil
	}
	end := slices.Clone(j.pending[n:])
	j.pending, j.now = j.pending[:n:n], j.written.state
	for _, e := range j.pending {
		j.now = run.Apply(j.now, e)
	}
	j.journalDamage(ctx, found)
	for _, e := range end {
		e.Seq, e.TS = j.now.Seq+1, max(e.TS, j.now.TS)
		j.pending = append(j.pending, e)
		j.now = run.Apply(j.now, e)
	}
	return nil
}

// rearchive archives all lines again where a segment is damaged, and marks what that repaired.
func (j *journal) rearchive(ctx workflow.Context, found []run.JournalDamage) ([]run.JournalDamage, error) {
	inStore := func(d run.JournalDamage) bool { return strings.HasPrefix(d.File, run.SegmentFile) }
	if !slices.ContainsFunc(found, inStore) {
		return found, nil
	}
	head, sealed := j.head, j.archived
	j.head, j.archived, j.unarchivable = "", 0, 0
	if err := j.archive(ctx); err != nil {
		return nil, err
	}
	if j.archived == 0 { // nothing was archived: keep the segments that are still readable
		j.head, j.archived = head, sealed
	}
	for i, d := range found {
		found[i].Repaired = d.Repaired || inStore(d) && j.archived == j.written.tail.Seq
	}
	return found, nil
}

// journalDamage journals damage that is not in the journal yet. Nothing is journaled after the end of the run.
func (j *journal) journalDamage(ctx workflow.Context, found []run.JournalDamage) {
	for _, d := range found {
		if j.now.Status.Closed() {
			workflow.GetLogger(ctx).Error("the journal is damaged", "damage", d.String())
			continue
		}
		if j.now.Damages(d) || slices.ContainsFunc(j.damage, d.Same) {
			continue
		}
		j.damage = append(j.damage, d)
		j.emit(ctx, run.KindJournalDamaged, j.now.Phase, d)
	}
}
