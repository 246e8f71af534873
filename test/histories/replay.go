package histories

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/workflows"
)

// Options change how histories are replayed.
type Options struct {
	Redact func(text string) string // what the recording worker removed from messages; nil: nothing
	Extra  Part                     // an additional command in the handlers of this message, or before this activity
}

// Replay executes the workflow code on a history. It returns an error if the code returns other commands than those
// that were recorded, or another input of an activity that writes events: other bytes in the journal.
func Replay(h *historypb.History, o Options) error {
	keys, err := testCodec()
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	inputs := &projected{conv: keys.Converter()}
	inputs.read(h)
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
		DataConverter: keys.Converter(), FailureConverter: keys.Failures(),
		Interceptors: []interceptor.WorkerInterceptor{&observer{inputs: inputs, extra: o.Extra}},
	})
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	workflows.Register(r, o.Redact, nil)
	quiet := log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	at := worker.ReplayWorkflowHistoryOptions{}
	if id := resetRunID(h); id != "" {
		at.OriginalExecution = workflow.Execution{
			ID: h.Events[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowId(), RunID: id,
		}
	}
	own := proto.Clone(h).(*historypb.History) // the replayer writes to it
	return errors.Join(r.ReplayWorkflowHistoryWithOptions(quiet, own, at), inputs.err())
}

// projects reports whether an activity writes events.
func projects(activityType string) bool {
	return activityType == contract.Project || activityType == contract.Turn
}

// projected compares the inputs of activities that write events, in the order of their commands.
type projected struct {
	conv     converter.DataConverter
	mu       sync.Mutex
	recorded []*commonpb.Payloads
	errs     []error
	next     int
}

func (p *projected) read(h *historypb.History) {
	for _, e := range h.Events {
		at := e.GetActivityTaskScheduledEventAttributes()
		if projects(at.GetActivityType().GetName()) {
			p.recorded = append(p.recorded, at.Input)
		}
	}
}

func (p *projected) compare(in any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == len(p.recorded) { // the history ends before this command
		return
	}
	n := p.next
	p.next++
	want, err := p.again(p.recorded[n], in)
	if err == nil {
		var got *commonpb.Payload
		if got, err = converter.GetDefaultDataConverter().ToPayload(in); err == nil && !bytes.Equal(got.Data, want) {
			err = fmt.Errorf("the input differs.\nrecorded: %s\nreplayed: %s", want, got.Data)
		}
	}
	if err != nil {
		p.errs = append(p.errs, fmt.Errorf("replay projection %d: %w", n+1, err))
	}
}

// again is a recorded input as this release encodes it; it has the type of in. Lines of the journal stay as they are.
func (p *projected) again(of *commonpb.Payloads, in any) ([]byte, error) {
	recorded := reflect.New(reflect.TypeOf(in))
	if err := p.conv.FromPayloads(of, recorded.Interface()); err != nil {
		return nil, err
	}
	raw, err := converter.GetDefaultDataConverter().ToPayload(recorded.Elem().Interface())
	return raw.GetData(), err
}

func (p *projected) err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.errs...)
}

// observer is between workflow code and SDK.
type observer struct {
	interceptor.WorkerInterceptorBase
	inputs *projected
	extra  Part
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
	return i.Next.ExecuteUpdate(ctx, in)
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
	if projects(activityType) && len(args) == 1 {
		w.o.inputs.compare(args[0])
	}
	return w.Next.ExecuteActivity(ctx, activityType, args...)
}
