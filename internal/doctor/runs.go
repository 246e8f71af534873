package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows"
)

const (
	queryWithin  = 3 * time.Second // a worker answers
	stalled      = 3 * time.Second // a directory follows its workflow
	pollInterval = 100 * time.Millisecond
)

// runs checks the named run, or every open one. o is nil if no server answers.
func (e *examiner) runs(ctx context.Context, o *operations.Operator) {
	dirs, err := e.dirs()
	if err != nil {
		e.add(Problem, "runs", "runs", "", "%v", err)
		return
	}
	if len(dirs) == 0 {
		e.ok("runs", "runs", "no run of this machine is open")
	}
	for _, d := range dirs {
		e.run(ctx, o, d)
	}
}

// dirs returns the directories of the runs to check.
func (e *examiner) dirs() ([]rundir.Dir, error) {
	if e.Run != nil {
		return []rundir.Dir{*e.Run}, nil
	}
	rows, _, err := operations.Here(e.Settings.StateDir, e.Settings.RunRoot)
	if err != nil {
		return nil, err
	}
	var dirs []rundir.Dir
	for _, r := range rows {
		if !r.EffectiveStatus.Recorded.Closed() {
			dirs = append(dirs, rundir.At(r.Directory))
		}
	}
	slices.SortFunc(dirs, func(x, y rundir.Dir) int { return strings.Compare(x.Root, y.Root) })
	return dirs, nil
}

func (e *examiner) run(ctx context.Context, o *operations.Operator, d rundir.Dir) {
	claim, err := d.Claim()
	if err != nil {
		e.add(Problem, "runs", "run", e.typed("check %s", d.Root), "%v", err)
		return
	}
	name := fmt.Sprintf("run %.8s", claim.RunID)
	now, s, err := operations.Observe(d.Now, func(recorded run.Status) run.EffectiveStatus {
		if o == nil {
			return run.NewEffectiveStatus(recorded, run.LiveUnknown, "no server answers")
		}
		return o.EffectiveStatus(ctx, d.CurrentClaim(claim), recorded)
	})
	if err != nil {
		e.add(Problem, "runs", name, e.typed("check %s", d.Root), "%v", err)
		return
	}
	written := s.Liveness == run.LiveOpen && errors.Is(now.Why, fs.ErrNotExist) // in a moment
	switch {
	case now.Why != nil && !written:
		e.add(Problem, "runs", name, e.typed("check %s", d.Root), "%v", now.Why)
	case s.Liveness == run.LiveUnknown:
		e.add(Unchecked, "runs", name, e.typed("status %s", d.Root), "%s in %s, as recorded; %s",
			recordedWords(now.State),
			d.Root, s.Detail)
	case s.Status == run.Interrupted:
		e.add(Problem, "runs", name, e.typed("resume %s", d.Root), "interrupted: the events in %s leave it %s, and %s",
			d.Root, s.Recorded, s.Detail)
	case s.Liveness != run.LiveOpen:
		e.ok("runs", name, "%s in %s%s", recordedWords(now.State), d.Root, advice(now.State))
	default:
		e.open(ctx, *o, name, claim, d)
	}
	if !s.Status.Closed() {
		e.calls(claim, d, s.Status)
	}
}

func recordedWords(s run.State) string {
	switch {
	case s.Status == "":
		return string(run.Pending)
	case s.Reason != "":
		return fmt.Sprintf("%s (%s)", s.Status, s.Reason)
	}
	return string(s.Status)
}

// advice is the fix of the error for which a paused run waits; empty: it waits for none.
func advice(s run.State) string {
	if s.StoppedBy() == "" {
		return ""
	}
	return ". " + s.Advice()
}

// open compares an open run's directory with the state of its workflow, and names the activity that blocks it.
func (e *examiner) open(ctx context.Context, o operations.Operator, name string, claim run.Claim, d rundir.Dir) {
	live, err := stateOf(ctx, o, claim.RunID)
	waits, fix := e.waits(ctx, o, claim.RunID, d)
	if err != nil {
		e.add(Problem, "runs", name, e.starts(o), "its workflow is open and answers no query (%v)%s",
			err,
			waits)
		return
	}
	at, behind := awaitEvent(ctx, d, live.Seq)
	switch {
	case behind:
		e.add(Problem, "runs", name, fix, "%s is stalled at event %d of %d; the workflow is %s%s", d.Root, at, live.Seq,
			recordedWords(live), waits)
	case waits != "":
		e.add(Warning, "runs", name, fix, "%s in %s%s", recordedWords(live), d.Root, waits)
	default:
		e.ok("runs", name, "%s in %s, which has all %d events%s", recordedWords(live), d.Root, live.Seq, advice(live))
	}
}

// stateOf queries the workflow for its state.
func stateOf(ctx context.Context, o operations.Operator, runID string) (run.State, error) {
	ctx, cancel := context.WithTimeout(ctx, queryWithin)
	defer cancel()
	var s run.State
	v, err := o.Client.QueryWorkflow(ctx, runID, "", workflows.QueryStatus)
	if err != nil {
		return s, err
	}
	return s, v.Get(&s)
}

// awaitEvent waits a moment until a directory reaches an event.
func awaitEvent(ctx context.Context, d rundir.Dir, seq int64) (at int64, behind bool) {
	behind = true
	err := until(ctx, stalled, func() (bool, error) { // a file that cannot be read now is read again
		now, err := d.Now()
		at = now.Tail.Seq
		behind = err != nil || at < seq
		return !behind, nil
	})
	return at, behind || err != nil
}

// until repeats f until it returns true or an error, or the time has passed, which is not an error.
func until(ctx context.Context, most time.Duration, f func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		if done, err := f(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// waits lists the activities that fail repeatedly or that no worker takes, and the fix of the first.
func (e *examiner) waits(ctx context.Context, o operations.Operator, runID string, d rundir.Dir) (words, fix string) {
	fix = e.typed("diagnose %s", d.Root)
	x, err := o.Client.DescribeWorkflowExecution(ctx, runID, "")
	if err != nil {
		return "", fix
	}
	if failed := o.FailingTask(ctx, runID, x); failed != "" {
		return "; " + failed, fix
	}
	for _, p := range x.GetPendingActivities() {
		kind, queue := p.GetActivityType().GetName(), p.GetActivityOptions().GetTaskQueue().GetName()
		switch {
		case p.GetLastFailure() != nil:
			words += fmt.Sprintf("; %s waits for its attempt %d, the last failed: %s", kind, p.GetAttempt(),
				p.GetLastFailure().GetMessage())
			fix = "fix the cause; the activity is retried automatically. Details: " + fix
		case unpolled(p, time.Now()):
			words += fmt.Sprintf("; no worker takes %s from queue %s since %s", kind, queue,
				when(p.GetScheduledTime().AsTime()))
			fix = e.starts(o)
		}
	}
	return words, fix
}

func unpolled(p *workflowpb.PendingActivityInfo, now time.Time) bool {
	return p.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED && p.GetLastStartedTime() == nil &&
		now.Sub(p.GetScheduledTime().AsTime()) > stalled
}
