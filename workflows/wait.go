package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// hostTimeout is the time a message waits for the directory's host.
const hostTimeout = 5 * time.Second

// awaitFor waits for a condition with a timeout. If the condition already holds, it adds nothing to history.
func awaitFor(ctx workflow.Context, most time.Duration, summary string, condition func() bool) (bool, error) {
	if condition() {
		return true, nil
	}
	return workflow.AwaitWithOptions(ctx,
		workflow.AwaitOptions{Timeout: most, TimerOptions: workflow.TimerOptions{Summary: summary}}, condition)
}

// sleepUnlessPaused waits before the next attempt; false: a pause has ended it.
func (x *execution) sleepUnlessPaused(ctx workflow.Context, d time.Duration, why string) (completed bool, err error) {
	return x.wait(ctx, wait{name: waitAttempt, until: workflow.Now(ctx).Add(d), summary: why})
}

// A run stands still in one function, [execution.wait]. Each state in which it does is a row of a table: what ends it, and
// whether the next execution continues it. Handlers of messages, and waits for an activity or another coroutine, use Await.

// waitName names a state in which a run stands still.
type waitName int

// States in which a run stands still.
const (
	waitPause waitName = iota
	waitLimit
	waitAnswer
	waitLanes
	waitProjects
	waitBlocked
	waitAttempt
	waitDisk
	waitHost
	waitEnds
	waitChecks
	waitReview
)

// waitRow is a row of the table. The texts are for README.md.
type waitRow struct {
	name    string
	meaning string
	ends    string
	ended   func(*execution) bool // what ends it besides its time and what the caller adds; nil: nothing
	written bool                  // events are written, and the details shown, before it begins
	carried bool                  // the next execution continues it, unless it is in the middle of a step
}

var waits = [...]waitRow{
	waitPause: {
		"pause", "the run is paused, for any reason", "resume, revert", func(x *execution) bool {
			return x.inbox.resumes() || x.inbox.reverts() != nil || x.inbox.failed() != nil
		}, true, true,
	},
	waitLimit: {
		"limit", "a limit of a provider, of the host or of the day", "its reset or its turn; resume, pause, revert",
		func(x *execution) bool { return x.inbox.leavesLimit() }, true, true,
	},
	waitAnswer: {
		"answer", "an open question", "a decision; at a reminder it waits on, at its expiry it is decided",
		func(x *execution) bool { return x.questions.answered() }, true, true,
	},
	waitLanes: {
		"lanes", "lanes at work", "a lane that has changed, a decision about one; pause, revert",
		func(x *execution) bool {
			_, decided := x.questions.laneDecision()
			return x.children.changed() || decided || x.inbox.interruptsWait() || x.journal.isNewer()
		}, true, true,
	},
	waitProjects: {
		"projects", "projects at work", "a project that has changed; pause, revert",
		func(x *execution) bool { return x.children.changed() || x.inbox.interruptsWait() }, true, true,
	},
	waitBlocked: {
		"blocked", "a question about projects that are not done", "a decision; a project that works again",
		func(x *execution) bool {
			return x.questions.answered() || x.children.changed() || x.inbox.failed() != nil
		}, true, true,
	},
	waitAttempt: {
		"attempt", "the next attempt of a call or of screenshots", "its time; pause",
		func(x *execution) bool { return x.inbox.pauses() }, false, false,
	},
	waitDisk: {"disk", "space on a full disk", "its time, at most 10 min; if paused, resume and revert", nil, false, false},
	waitHost: {
		"host", "a host with the store or the program, or a directory that can be read",
		"its time, at most 1 min; for a call, pause; if paused, resume and revert", nil, false, false,
	},
	waitEnds: {
		"ends", "the ends of lanes or projects that were cancelled", "each of them, at most 2 min",
		func(x *execution) bool { return x.children.changed() }, false, false,
	},
	waitChecks: {
		"checks", "the checks of a pull request", "a change of the pull request; its time; resume, revert",
		func(x *execution) bool {
			return x.inbox.resumes() || x.inbox.reverts() != nil || x.inbox.failed() != nil || x.pullMoved()
		}, true, true,
	},
	waitReview: {
		"review", "the merge of a pull request, or comments on it", "a change of the pull request; its time; resume, revert",
		func(x *execution) bool {
			return x.inbox.resumes() || x.inbox.reverts() != nil || x.inbox.failed() != nil || x.pullMoved()
		}, true, true,
	},
}

// wait is one wait of a run.
type wait struct {
	name    waitName
	until   time.Time   // zero: it has no time
	summary string      // of its timer
	wakes   func() bool // ends it too; nil: nothing else does
	inStep  bool        // it is in the middle of a step, which only this execution can continue
	cause   string      // shown by the query `held`
}

// wait waits until the wait has ended, by what its row or the caller names, or until its time: due. If the next execution
// is to continue it, the error is errContinueAsNew.
func (x *execution) wait(ctx workflow.Context, w wait) (due bool, err error) {
	row := waits[w.name]
	if row.written {
		if err := x.journal.flush(ctx); err != nil {
			return false, err
		}
	}
	if w.cause != "" {
		x.host.hold(contract.HeldAnswer{Held: w.name == waitDisk, Waiting: w.name == waitHost, Message: w.cause,
			RetryAt: run.Time(w.until)})
	}
	if row.written || w.cause != "" {
		x.show(ctx)
	}
	ended := func() bool { return row.ended != nil && row.ended(x) || w.wakes != nil && w.wakes() }
	enough := func() bool { return ended() || row.carried && !w.inStep && x.host.continueSuggested(ctx) }
	switch left := w.until.Sub(workflow.Now(ctx)); {
	case w.until.IsZero():
		err = workflow.Await(ctx, enough)
	case left <= 0: // its time passed before it began
		due = true
	default:
		var woken bool
		woken, err = workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{
			Timeout: left, TimerOptions: workflow.TimerOptions{Summary: w.summary},
		}, enough)
		due = !woken
	}
	switch {
	case err != nil || ended():
		return false, err
	case due:
		return true, nil
	}
	return false, errContinueAsNew
}
