package histories

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/workflows"
	"github.com/passbook-run/passbook/workflows/contract"
)

// Part is one thing that occurs in a history, such as "signal pause" or "event run.paused".
type Part string

// What a part is, for those that are named after something.
func ActivityPart(name string) Part      { return Part("activity " + name) }
func LocalActivityPart(name string) Part { return Part("local activity " + name) }
func SignalPart(name string) Part        { return Part("signal " + name) }
func UpdatePart(name string) Part        { return Part("update " + name) }
func WorkflowPart(name string) Part      { return Part("workflow " + name) }
func EventPart(kind string) Part         { return Part("event " + kind) }
func TimerPart(summary string) Part      { return Part("timer " + summary) }

// Parts that are named after nothing.
const (
	ContinuedWithQuestion Part = "continue-as-new with an open question"
	Continued             Part = "continue-as-new"
	Reset                 Part = "reset"
	Encrypted             Part = "encrypted"
	Cancelled             Part = "cancel request"
)

// Types are the types of all workflows.
func Types() []string {
	r := &registry{}
	workflows.Register(r, nil)
	return r.names
}

// registry records the names of workflows.
type registry struct {
	worker.WorkflowRegistry
	names []string
}

func (r *registry) RegisterWorkflowWithOptions(_ any, o workflow.RegisterOptions) {
	r.names = append(r.names, o.Name)
}

// Covers is true if other is this part. A timer is required by the beginning of its summary.
func (p Part) Covers(other Part) bool {
	return p == other || strings.HasPrefix(string(p), string(TimerPart(""))) && strings.HasPrefix(string(other), string(p))
}

// Parts lists what occurs in a history, sorted.
func Parts(h *historypb.History) ([]Part, error) {
	keys, err := testCodec()
	if err != nil {
		return nil, err
	}
	conv := keys.Converter()
	found := map[Part]bool{}
	if resetRunID(h) != "" {
		found[Reset] = true
	}
	for _, e := range h.Events {
		for _, p := range partsOf(e, conv) {
			found[p] = true
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// projection returns the input of a projection, alone or in a turn.
func projection(at *historypb.ActivityTaskScheduledEventAttributes,
	conv converter.DataConverter) (in contract.ProjectInput, ok bool) {
	switch at.ActivityType.GetName() {
	case contract.Project:
		return in, conv.FromPayloads(at.Input, &in) == nil
	case contract.Turn:
		var turn contract.TurnInput
		err := conv.FromPayloads(at.Input, &turn)
		return turn.Project, err == nil
	}
	return in, false
}

func partsOf(e *historypb.HistoryEvent, conv converter.DataConverter) []Part {
	switch e.EventType {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		return startParts(e.GetWorkflowExecutionStartedEventAttributes(), conv)
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		at := e.GetActivityTaskScheduledEventAttributes()
		all := []Part{ActivityPart(at.ActivityType.GetName())}
		if in, ok := projection(at, conv); ok {
			all = append(all, eventParts(in)...)
		}
		return all
	case enumspb.EVENT_TYPE_MARKER_RECORDED:
		return markerParts(e.GetMarkerRecordedEventAttributes())
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		return []Part{SignalPart(e.GetWorkflowExecutionSignaledEventAttributes().SignalName)}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
		in := e.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest().GetInput()
		return []Part{UpdatePart(in.GetName())}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
		return []Part{Cancelled}
	case enumspb.EVENT_TYPE_TIMER_STARTED:
		var summary string
		if conv.FromPayload(e.GetUserMetadata().GetSummary(), &summary) == nil {
			return []Part{TimerPart(summary)}
		}
	}
	return nil
}

func startParts(at *historypb.WorkflowExecutionStartedEventAttributes, conv converter.DataConverter) []Part {
	all := []Part{WorkflowPart(at.WorkflowType.GetName())}
	for _, p := range at.GetInput().GetPayloads() {
		if encrypted(p) {
			all = append(all, Encrypted)
		}
	}
	if at.ContinuedExecutionRunId == "" {
		return all
	}
	all = append(all, Continued)
	var in contract.Input
	if at.WorkflowType.GetName() == contract.PipelineWorkflow && conv.FromPayloads(at.Input, &in) == nil && in.Snapshot != nil {
		if _, open := in.Snapshot.State.Asks(); open {
			all = append(all, ContinuedWithQuestion)
		}
	}
	return all
}

// eventParts are the kinds of the journal's events in one batch.
func eventParts(in contract.ProjectInput) []Part {
	var all []Part
	for _, line := range in.Lines {
		var e struct{ Kind string }
		if json.Unmarshal([]byte(line), &e) == nil {
			all = append(all, EventPart(e.Kind))
		}
	}
	return all
}

// markerParts name local activities.
func markerParts(at *historypb.MarkerRecordedEventAttributes) []Part {
	if at.MarkerName != "LocalActivity" {
		return nil
	}
	for _, p := range at.Details["data"].GetPayloads() {
		var data struct{ ActivityType string }
		if json.Unmarshal(p.Data, &data) == nil {
			return []Part{LocalActivityPart(data.ActivityType)}
		}
	}
	return nil
}
