package histories

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"github.com/passbook-run/passbook/workflows"
)

// Options change how histories are replayed.
type Options struct {
	Redact func(text string) string // what the recording worker removed from messages; nil: nothing
	// compare only what is written to the journal: the rest may differ from that of an earlier release
	Journal bool
	Extra   Part // an additional command in the handlers of this message, or before this activity
}

// Replay executes the workflow code on a history. It returns an error if the code returns other commands than those
// that were recorded, or if inputs and options of activities, signals, children, answers, search attributes or results
// have other contents.
func Replay(h *historypb.History, o Options) error {
	keys, err := testCodec()
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	compared := &contents{conv: keys.Converter(), journal: o.Journal}
	if err := compared.read(h); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
		DataConverter: keys.Converter(), FailureConverter: keys.Failures(),
		Interceptors:             []interceptor.WorkerInterceptor{&observer{compared: compared, extra: o.Extra}},
		DisableDeadlockDetection: true, // a busy machine is no deadlock
	})
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	workflows.Register(r, o.Redact)
	quiet := log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	at := worker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{
		ID:    h.Events[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowId(),
		RunID: resetRunID(h), // empty: it was not reset
	}}
	own := proto.Clone(h).(*historypb.History) // the replayer writes to it
	return errors.Join(r.ReplayWorkflowHistoryWithOptions(quiet, own, at), compared.err())
}

// observer is between workflow code and SDK.
type observer struct {
	interceptor.WorkerInterceptorBase
	compared *contents
	extra    Part
}

func (o *observer) InterceptWorkflow(
	_ workflow.Context, next interceptor.WorkflowInboundInterceptor,
) interceptor.WorkflowInboundInterceptor {
	return &inbound{interceptor.WorkflowInboundInterceptorBase{Next: next}, o}
}

type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
	o *observer
}

func (i *inbound) Init(out interceptor.WorkflowOutboundInterceptor) error {
	return i.Next.Init(&outbound{interceptor.WorkflowOutboundInterceptorBase{Next: out}, i.o})
}

func (i *inbound) ExecuteUpdate(ctx workflow.Context, in *interceptor.UpdateInput) (any, error) {
	i.o.plant(ctx, UpdatePart(in.Name))
	answer, err := i.Next.ExecuteUpdate(ctx, in)
	if err == nil && !i.o.compared.journal {
		i.o.compared.compare(answerTo(workflow.GetCurrentUpdateInfo(ctx).ID), answer)
	}
	return answer, err
}

func (i *inbound) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	result, err := i.Next.ExecuteWorkflow(ctx, in)
	i.o.compared.ended(in.Args, result, err)
	return result, err
}

// plant adds a command that no history has.
func (o *observer) plant(ctx workflow.Context, at Part) {
	if o.extra == at {
		workflow.NewTimer(ctx, time.Hour)
	}
}

type outbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	o *observer
}

func (w *outbound) GetSignalChannel(ctx workflow.Context, name string) workflow.ReceiveChannel {
	return w.o.planting(ctx, name, w.Next.GetSignalChannel(ctx, name))
}

func (w *outbound) GetSignalChannelWithOptions(
	ctx workflow.Context, name string, o workflow.SignalChannelOptions,
) workflow.ReceiveChannel {
	return w.o.planting(ctx, name, w.Next.GetSignalChannelWithOptions(ctx, name, o))
}

// planting adds a command to the handler of a signal.
func (o *observer) planting(ctx workflow.Context, name string, ch workflow.ReceiveChannel) workflow.ReceiveChannel {
	if o.extra != SignalPart(name) {
		return ch
	}
	return channel{ch, func() { o.plant(ctx, o.extra) }}
}

// channel calls received after each signal.
type channel struct {
	workflow.ReceiveChannel
	received func()
}

func (c channel) Receive(ctx workflow.Context, value any) (more bool) {
	more = c.ReceiveChannel.Receive(ctx, value)
	c.received()
	return more
}

func (c channel) ReceiveAsync(value any) (ok bool) {
	if ok = c.ReceiveChannel.ReceiveAsync(value); ok {
		c.received()
	}
	return ok
}

func (w *outbound) ExecuteActivity(ctx workflow.Context, activityType string, args ...any) workflow.Future {
	w.o.plant(ctx, ActivityPart(activityType))
	w.o.compared.activity(ctx, activityType, args)
	return w.Next.ExecuteActivity(ctx, activityType, args...)
}

func (w *outbound) ExecuteChildWorkflow(ctx workflow.Context, of string, args ...any) workflow.ChildWorkflowFuture {
	if !w.o.compared.journal && len(args) == 1 {
		w.o.compared.compare(childOf(of, workflow.GetChildWorkflowOptions(ctx).WorkflowID), args[0])
	}
	return w.Next.ExecuteChildWorkflow(ctx, of, args...)
}

func (w *outbound) SignalExternalWorkflow(ctx workflow.Context, workflowID, runID, name string, arg any,
) workflow.Future {
	if !w.o.compared.journal {
		w.o.compared.compare(signalTo(workflowID, name), arg)
	}
	return w.Next.SignalExternalWorkflow(ctx, workflowID, runID, name, arg)
}

func (w *outbound) UpsertMemo(ctx workflow.Context, memo map[string]any) error {
	for key, value := range memo {
		if !w.o.compared.journal {
			w.o.compared.compare(memoOf(key), value)
		}
	}
	return w.Next.UpsertMemo(ctx, memo)
}

func (w *outbound) UpsertTypedSearchAttributes(ctx workflow.Context, a ...temporal.SearchAttributeUpdate) error {
	err := w.Next.UpsertTypedSearchAttributes(ctx, a...)
	if err != nil || w.o.compared.journal {
		return err
	}
	return w.o.compared.attributes(ctx)
}
