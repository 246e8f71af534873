package workflows

import (
	"fmt"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/work"
)

// NotifyName is the type of the workflow that tells people about one event of a run. It is a child that nobody waits for: it goes on trying when the
// run goes on, and when the run is over.
const NotifyName = "Notify"

// NotifyInput says what to tell whom.
type NotifyInput struct {
	Target    work.Target `json:"target"`
	Plan      string      `json:"plan"`
	DirQueue  string      `json:"dir_queue"`
	Notice    work.Notice `json:"notice"`
	Receivers []Receiver  `json:"receivers"`
}

// Receiver is one of the plan's receivers.
type Receiver struct {
	Index int `json:"index"`
	run.Receiver
}

// Notify tells every receiver, all at the same time, each as often as it takes. It fails if one could not be told.
func Notify(ctx workflow.Context, in NotifyInput) error {
	var tries []workflow.Future
	for _, r := range in.Receivers {
		ask := work.NotifyInput{Target: in.Target, Plan: in.Plan, Receiver: r.Index, Notice: in.Notice}
		tries = append(tries, workflow.ExecuteActivity(telling(ctx, in, r), work.Notify, ask))
	}
	var failed []string
	for i, t := range tries {
		if err := t.Get(ctx, nil); err != nil {
			failed = append(failed, in.Receivers[i].Name+": "+message(err))
		}
	}
	if len(failed) > 0 {
		return temporal.NewNonRetryableApplicationError(strings.Join(failed, "; "), "NotTold", nil)
	}
	return nil
}

// telling options: a try on the host of the run directory, where the environment has what the definition names.
func telling(ctx workflow.Context, in NotifyInput, r Receiver) workflow.Context {
	const slack = 10 * time.Second
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              in.DirQueue,
		ScheduleToCloseTimeout: time.Duration(r.GiveUpMS) * time.Millisecond,
		StartToCloseTimeout:    time.Duration(r.TimeoutMS)*time.Millisecond + slack,
		Summary:                in.Notice.Event + ": " + r.Name,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 5 * time.Minute, NonRetryableErrorTypes: []string{tooLarge, work.ErrBadInput},
		},
	})
}

// notices are what people are to be told, and are not yet.
type notices struct {
	due     []NotifyInput
	leaving int // children that are being started
}

// notice looks at an event that is on disk now, and at the state after it. What another run's record has told is none of this run's events.
func (e *engine) notice(ev run.Event, after run.State) {
	if len(e.in.Start.Receivers) == 0 || after.Illegal != "" {
		return
	}
	occasion := occasionOf(ev, after)
	var told []Receiver
	for i, r := range e.in.Start.Receivers {
		if slices.Contains(r.On, occasion) {
			told = append(told, Receiver{i, r})
		}
	}
	if len(told) == 0 {
		return
	}
	e.notices.due = append(e.notices.due, NotifyInput{
		Target: e.in.Target, Plan: e.in.Start.Plan, DirQueue: e.in.DirQueue, Receivers: told, Notice: e.noticeOf(occasion, ev, after),
	})
}

// occasionOf says what an event is an occasion for; empty: for nothing.
func occasionOf(ev run.Event, after run.State) string {
	switch ev.Kind {
	case run.KindHandoffRequested, run.KindGateRequested, run.KindReviewRequested, run.KindDeliveryRequested, run.KindQuestionReminded:
		return pipeline.OnQuestion
	case run.KindRunPaused:
		return pipeline.OnPause
	case run.KindBudgetWarning:
		return pipeline.OnBudget
	case run.KindRunEnd:
		if after.Status == run.Failed {
			return pipeline.OnFailure
		}
		return pipeline.OnEnd
	}
	return ""
}

// longest is how much of a text a notice has.
const longest = 2000

func (e *engine) noticeOf(occasion string, ev run.Event, s run.State) work.Notice {
	n := work.Notice{
		ID: fmt.Sprintf("%s/%d", s.RunID, ev.Seq), Run: s.RunID, Pipeline: s.Pipeline, Task: run.Cut(s.Task, longest), Event: occasion, Seq: ev.Seq, At: ev.TS,
		Status: s.Status, Reason: run.Cut(s.Reason, longest), Actions: []string{}, Next: commands(s, e.in), Directory: e.in.Target.Dir, USD: s.Total(), Score: s.Score,
	}
	if q, open := s.Asks(); open {
		n.Question, n.QuestionID, n.Actions = run.Cut(q.Words(), longest), q.ID, q.Actions
	}
	if ev.Kind == run.KindRunPaused {
		var p run.RunPaused
		ev.Decode(&p)
		n.Detail = run.Cut(p.Detail, longest)
	}
	return n
}

// announce starts a child for each notice that is due, and waits until it has started: from then on it is Temporal's. That a child of that name was
// there already means that the event has been told. Whatever fails here, the run goes on.
func (e *engine) announce(ctx workflow.Context) {
	for len(e.notices.due) > 0 {
		in := e.notices.due[0]
		e.notices.due = e.notices.due[1:]
		free, _ := workflow.NewDisconnectedContext(ctx) // a run that is called off is told of too
		child := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(free, workflow.ChildWorkflowOptions{
			WorkflowID: "notice/" + in.Notice.ID, ParentClosePolicy: enumspb.PARENT_CLOSE_POLICY_ABANDON,
			WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE, StaticSummary: in.Notice.Event + " of run " + in.Notice.Run,
		}), NotifyName, in)
		e.notices.leaving++
		err := child.GetChildWorkflowExecution().Get(free, nil)
		e.notices.leaving--
		switch {
		case temporal.IsWorkflowExecutionAlreadyStartedError(err):
		case err != nil:
			e.untold(ctx, in, err)
		default:
			workflow.GoNamed(ctx, "notice "+in.Notice.ID, func(ctx workflow.Context) {
				if err := child.Get(ctx, nil); err != nil && ctx.Err() == nil {
					e.untold(ctx, in, err)
				}
			})
		}
	}
}

// untold journals that somebody could not be told, if the run is still open by then.
func (e *engine) untold(ctx workflow.Context, in NotifyInput, why error) {
	if e.j.state.Status.Closed() {
		return
	}
	text := fmt.Sprintf("event %d (%s) could not be told: %s", in.Notice.Seq, in.Notice.Event, message(why))
	e.control.fail(e.control.note(ctx, run.KindErrorNoted, run.ErrorNoted{Context: "notify", Category: "unknown", Message: run.Cut(text, longest)}))
}

// told waits until every notice is Temporal's.
func (e *engine) told(ctx workflow.Context) error { return workflow.Await(ctx, e.toldAll) }

func (e *engine) toldAll() bool { return e.notices.leaving == 0 && len(e.notices.due) == 0 }
