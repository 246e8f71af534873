package workflows

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// Notify notifies all receivers concurrently, with retries. It fails if one cannot be notified.
func Notify(ctx workflow.Context, in contract.NoticeInput) error {
	var tries []workflow.Future
	for _, r := range in.Receivers {
		ask := contract.NotifyInput{Target: in.Target, PlanUse: in.PlanUse, Receiver: r.Index, Notice: in.Notice}
		tries = append(tries, workflow.ExecuteActivity(notifyOptions(ctx, in, r), contract.Notify, ask))
	}
	var failed []string
	for i, t := range tries {
		if err := t.Get(ctx, nil); err != nil {
			failed = append(failed, in.Receivers[i].Name+": "+errorMessage(err))
		}
	}
	if len(failed) > 0 {
		return temporal.NewNonRetryableApplicationError(strings.Join(failed, "; "), "NotTold", nil)
	}
	return nil
}

// notifyOptions run an attempt on the host of the run directory, whose environment has the variables that the
// definition names.
func notifyOptions(ctx workflow.Context, in contract.NoticeInput, r contract.Receiver) workflow.Context {
	const slack = 10 * time.Second
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              in.DirQueue,
		ScheduleToCloseTimeout: time.Duration(r.GiveUpMS) * time.Millisecond,
		StartToCloseTimeout:    time.Duration(r.TimeoutMS)*time.Millisecond + slack,
		Summary:                in.Notice.Event + ": " + r.Name,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 5 * time.Minute,
			NonRetryableErrorTypes: []string{tooLarge, contract.ErrBadInput},
		},
	})
}

// notices are those not sent yet.
type notices struct {
	*execution
	pending  []contract.NoticeInput
	starting int // children being started
}

// queue queues the notices of an event that is now on disk. after is the state after it. Events from
// another run's record are skipped.
func (ns *notices) queue(ev run.Event, after run.State) {
	receivers := ns.receivers(ev, after)
	if len(receivers) == 0 {
		return
	}
	occasion := run.Occasion(ev.Kind, after)
	ns.pending = append(ns.pending, contract.NoticeInput{
		Target: ns.in.Target, PlanUse: ns.planUse(), DirQueue: ns.in.DirQueue, Receivers: receivers,
		Notice: ns.newNotice(occasion, ev, after),
	})
}

// receivers returns the receivers of the notice about an event.
func (ns *notices) receivers(ev run.Event, after run.State) []contract.Receiver {
	if len(ns.in.Start.Receivers) == 0 || after.InvalidTransition != "" {
		return nil
	}
	if q, asked := ev.Question(); asked && q.Unattended {
		return nil
	}
	occasion := run.Occasion(ev.Kind, after)
	var all []contract.Receiver
	for i, r := range ns.in.Start.Receivers {
		if slices.Contains(r.On, occasion) {
			all = append(all, contract.Receiver{Index: i, Receiver: r})
		}
	}
	return all
}

// maxNoticeText is the maximum length of a text in a notice.
const maxNoticeText = 2000

func (ns *notices) newNotice(occasion string, ev run.Event, s run.State) contract.Notice {
	n := contract.Notice{
		ID: fmt.Sprintf("%s/%d", s.RunID, ev.Seq), Run: s.RunID, Pipeline: s.Pipeline,
		Task: run.Cut(s.Task, maxNoticeText), Event: occasion, Seq: ev.Seq, At: ev.TS,
		Status: s.Status, Reason: run.Cut(s.Reason, maxNoticeText), Actions: []string{}, Next: commands(s, ns.in),
		Directory: ns.in.Target.Dir, USD: s.Total(), Score: s.Score,
	}
	if q, open := s.Asks(); open {
		n.Question, n.QuestionID, n.Actions = run.Cut(q.Words(), maxNoticeText), q.ID, q.Actions
		n.ExpiresAt = q.ExpiresAt
	}
	if ev.Kind == run.KindRunPaused {
		var p run.RunPaused
		ev.Decode(&p)
		n.Detail = run.Cut(p.Detail, maxNoticeText)
	}
	if d := s.Delivery; ev.Kind == run.KindRunEnd && d != nil {
		n.Detail = run.Cut(d.Text(), maxNoticeText)
	}
	if l := s.Limited; ev.Kind == run.KindRunLimited && l != nil {
		n.Detail = s.LimitText(run.Clock{})
		if l.Account != "" { // one notice for all runs of the account
			n.ID = fmt.Sprintf("limit/%s/%s/%.8s", l.Account, cmp.Or(l.Reset, hourOf(l.Since)), ns.receiversID())
		}
	}
	return n
}

// hourOf identifies a limit without a reset time: 2026-11-25T14.
func hourOf(since string) string { return since[:min(len(since), len("2006-01-02T15"))] }

// receiversID identifies the receivers of the run's notices.
func (ns *notices) receiversID() string {
	var all strings.Builder
	for _, r := range ns.in.Start.Receivers {
		all.WriteString(r.Name + " " + strings.Join(r.On, ",") + "\n")
	}
	sum := sha256.Sum256([]byte(all.String()))
	return hex.EncodeToString(sum[:])
}

// start starts a child for each pending notice and waits until it has started. If the child already exists,
// the event was already announced. An error does not stop the run.
func (ns *notices) start(ctx workflow.Context) {
	for len(ns.pending) > 0 {
		in := ns.pending[0]
		ns.pending = ns.pending[1:]
		free, _ := workflow.NewDisconnectedContext(ctx) // a cancelled run sends notices too
		child := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(free, workflow.ChildWorkflowOptions{
			WorkflowID: "notice/" + in.Notice.ID, ParentClosePolicy: enumspb.PARENT_CLOSE_POLICY_ABANDON,
			WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
			StaticSummary:         in.Notice.Event + " of run " + in.Notice.Run,
		}), contract.NotifyWorkflow, in)
		ns.starting++
		err := child.GetChildWorkflowExecution().Get(free, nil)
		ns.starting--
		switch {
		case temporal.IsWorkflowExecutionAlreadyStartedError(err):
		case err != nil:
			ns.journalNotifyFailure(ctx, in, err)
		default:
			workflow.GoNamed(ctx, "notice "+in.Notice.ID, func(ctx workflow.Context) {
				if err := child.Get(ctx, nil); err != nil && ctx.Err() == nil {
					ns.journalNotifyFailure(ctx, in, err)
				}
			})
		}
	}
}

// journalNotifyFailure journals a failed notice if the run is still open.
func (ns *notices) journalNotifyFailure(ctx workflow.Context, in contract.NoticeInput, why error) {
	if ns.state().Status.Closed() {
		return
	}
	text := fmt.Sprintf("send the notice of event %d (%s): %s", in.Notice.Seq, in.Notice.Event, errorMessage(why))
	ns.inbox.deferError(
		ns.record(ctx, run.KindErrorNoted, run.ErrorNoted{
			Context: "notify", Category: run.CategoryUnknown, Message: run.Cut(text, maxNoticeText),
		}),
	)
}

// awaitNotices waits until every notice has started.
func (ns *notices) awaitNotices(ctx workflow.Context) error {
	return workflow.Await(ctx, ns.started)
}

func (ns *notices) started() bool { return ns.starting == 0 && len(ns.pending) == 0 }
