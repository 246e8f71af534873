package histories

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/workflows/contract"
)

// contents compares what commands and answers contain: the SDK compares only their kinds, names and order.
type contents struct {
	conv     converter.DataConverter
	journal  bool // compare only what is written to the journal
	mu       sync.Mutex
	recorded map[string][]any // by place, in order: *commonpb.Payload, or a value of the history itself
	errs     []error
	next     map[string]int
}

// journals reports whether an activity writes events.
func journals(activityType string) bool {
	return activityType == contract.Project || activityType == contract.Turn
}

// Places of contents.
const (
	resultPlace     = "the result"
	nextPlace       = "the input of the next execution"
	memoPlace       = "a memo"
	attributesPlace = "the search attributes"
)

func inputOf(activityType, id string) string {
	return "the input of activity " + activityType + " " + id
}
func optionsOf(activityType, id string) string {
	return "the options of activity " + activityType + " " + id
}
func signalTo(workflowID, name string) string { return "signal " + name + " to " + workflowID }
func childOf(workflowType, id string) string  { return "child " + workflowType + " " + id }
func answerTo(update string) string           { return "the answer to update " + update }
func memoOf(key string) string                { return memoPlace + " " + key }

// sentOptions are the options of an activity that the server keeps as they are sent.
type sentOptions struct {
	Summary, Queue string
	Heartbeat      time.Duration
	Attempts       int32
}

func (c *contents) add(place string, value any) { c.recorded[place] = append(c.recorded[place], value) }

// first adds the first of the payloads, if there is one.
func (c *contents) first(place string, p *commonpb.Payloads) {
	if len(p.GetPayloads()) > 0 {
		c.add(place, p.Payloads[0])
	}
}

// read reads what a history records.
func (c *contents) read(h *historypb.History) error {
	c.recorded, c.next = map[string][]any{}, map[string]int{}
	attributes := map[string]string{}
	for _, e := range h.Events {
		if at := e.GetActivityTaskScheduledEventAttributes(); at != nil {
			name := at.GetActivityType().GetName()
			sent := sentOptions{Queue: at.TaskQueue.GetName(), Heartbeat: at.HeartbeatTimeout.AsDuration(),
				Attempts: at.RetryPolicy.GetMaximumAttempts()}
			if s := e.GetUserMetadata().GetSummary(); s != nil {
				if err := c.conv.FromPayload(s, &sent.Summary); err != nil {
					return err
				}
			}
			for _, id := range []string{at.ActivityId, ""} {
				c.first(inputOf(name, id), at.Input)
				c.add(optionsOf(name, id), sent)
			}
		}
		if at := e.GetSignalExternalWorkflowExecutionInitiatedEventAttributes(); at != nil {
			c.first(signalTo(at.WorkflowExecution.GetWorkflowId(), at.SignalName), at.Input)
		}
		if at := e.GetStartChildWorkflowExecutionInitiatedEventAttributes(); at != nil {
			c.first(childOf(at.WorkflowType.GetName(), at.WorkflowId), at.Input)
		}
		if at := e.GetWorkflowExecutionUpdateCompletedEventAttributes(); at.GetOutcome() != nil {
			c.first(answerTo(at.Meta.GetUpdateId()), at.Outcome.GetSuccess())
		}
		c.first(nextPlace, e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetInput())
		c.first(resultPlace, e.GetWorkflowExecutionCompletedEventAttributes().GetResult())
		for key, p := range e.GetWorkflowPropertiesModifiedEventAttributes().GetUpsertedMemo().GetFields() {
			c.add(memoOf(key), p)
		}
		c.readAttributes(e, attributes)
	}
	return nil
}

// versions is the search attribute that the SDK itself sets, for workflow.GetVersion.
const versions = "TemporalChangeVersion"

func (c *contents) readAttributes(e *historypb.HistoryEvent, so map[string]string) {
	fields := e.GetWorkflowExecutionStartedEventAttributes().GetSearchAttributes().GetIndexedFields()
	upsert := e.GetUpsertWorkflowSearchAttributesEventAttributes().GetSearchAttributes().GetIndexedFields()
	if upsert != nil {
		fields = upsert
	}
	if _, own := upsert[versions]; own && len(upsert) == 1 {
		return
	}
	for name, p := range fields {
		if name == versions {
			continue
		}
		if value := strings.TrimSpace(string(p.Data)); value == "null" || value == "[]" {
			delete(so, name)
		} else {
			so[name] = value
		}
	}
	if upsert != nil {
		c.add(attributesPlace, maps.Clone(so))
	}
}

// take returns what is recorded next at a place; nil: the history ends before.
func (c *contents) take(place string) any {
	if c.next[place] == len(c.recorded[place]) {
		return nil
	}
	c.next[place]++
	return c.recorded[place][c.next[place]-1]
}

// compare compares what the code has at a place now.
func (c *contents) compare(place string, got any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	want := c.take(place)
	if want == nil {
		return
	}
	if err := c.equal(want, got); err != nil {
		c.errs = append(c.errs, fmt.Errorf("replay: compare %s: %w", place, err))
	}
}

func (c *contents) equal(want, got any) error {
	p, encoded := want.(*commonpb.Payload)
	if !encoded {
		if reflect.DeepEqual(want, got) {
			return nil
		}
		return fmt.Errorf("it differs.\nrecorded: %+v\nreplayed: %+v", want, got)
	}
	if got == nil {
		return nil
	}
	// as this release encodes it; lines of the journal stay as they are
	again := reflect.New(reflect.TypeOf(got))
	if err := c.conv.FromPayload(p, again.Interface()); err != nil {
		return err
	}
	recorded, err := json.Marshal(again.Elem().Interface())
	if err != nil {
		return err
	}
	replayed, err := json.Marshal(got)
	if err != nil || bytes.Equal(recorded, replayed) {
		return err
	}
	return fmt.Errorf("it differs.\nrecorded: %s\nreplayed: %s", recorded, replayed)
}

func (c *contents) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.errs...)
}

func (c *contents) activity(ctx workflow.Context, activityType string, args []any) {
	if len(args) != 1 || c.journal && !journals(activityType) {
		return
	}
	o := workflow.GetActivityOptions(ctx)
	c.compare(inputOf(activityType, o.ActivityID), args[0])
	if c.journal {
		return
	}
	sent := sentOptions{Summary: o.Summary, Queue: o.TaskQueue, Heartbeat: o.HeartbeatTimeout}
	if o.TaskQueue == "" {
		sent.Queue = workflow.GetInfo(ctx).TaskQueueName
	}
	if o.RetryPolicy != nil {
		sent.Attempts = o.RetryPolicy.MaximumAttempts
	}
	c.compare(optionsOf(activityType, o.ActivityID), sent)
}

// attributes compares all search attributes after a change.
func (c *contents) attributes(ctx workflow.Context) error {
	now := map[string]string{}
	for key, value := range workflow.GetTypedSearchAttributes(ctx).GetUntypedValues() {
		raw, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if key.GetName() != versions && string(raw) != "[]" && string(raw) != "null" {
			now[key.GetName()] = string(raw)
		}
	}
	c.compare(attributesPlace, now)
	return nil
}

// ended compares the result of an execution with an input, or the input of the next one.
func (c *contents) ended(in []any, result any, err error) {
	var again *workflow.ContinueAsNewError
	switch {
	case c.journal:
	case errors.As(err, &again):
		c.continues(in, again)
	case err == nil:
		c.compare(resultPlace, result)
	}
}

// continues compares the input of the next execution, which has the type of this one's.
func (c *contents) continues(in []any, with *workflow.ContinueAsNewError) {
	if len(in) == 0 || len(with.Input.GetPayloads()) == 0 {
		return
	}
	next := reflect.New(reflect.TypeOf(in[0]))
	if err := c.conv.FromPayload(with.Input.Payloads[0], next.Interface()); err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.errs = append(c.errs, fmt.Errorf("replay: read %s: %w", nextPlace, err))
		return
	}
	c.compare(nextPlace, next.Elem().Interface())
}
