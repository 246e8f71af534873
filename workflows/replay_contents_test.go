package workflows_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/test/histories"
)

// contentsOf are the places of a history whose contents a replay compares, with the payloads of an event there.
var contentsOf = map[string]func(e *historypb.HistoryEvent) []*commonpb.Payload{
	"the input of activity": func(e *historypb.HistoryEvent) []*commonpb.Payload {
		at := e.GetActivityTaskScheduledEventAttributes()
		if name := at.GetActivityType().GetName(); name == contract.Project || name == contract.Turn {
			return nil
		}
		return at.GetInput().GetPayloads()
	},
	"the options of activity": func(e *historypb.HistoryEvent) []*commonpb.Payload {
		if e.GetActivityTaskScheduledEventAttributes() == nil {
			return nil
		}
		return []*commonpb.Payload{e.GetUserMetadata().GetSummary()}
	},
	"signal ": func(e *historypb.HistoryEvent) []*commonpb.Payload {
		return e.GetSignalExternalWorkflowExecutionInitiatedEventAttributes().GetInput().GetPayloads()
	},
	"child ": func(e *historypb.HistoryEvent) []*commonpb.Payload {
		return e.GetStartChildWorkflowExecutionInitiatedEventAttributes().GetInput().GetPayloads()
	},
	"the answer to update": func(e *historypb.HistoryEvent) []*commonpb.Payload {
		return e.GetWorkflowExecutionUpdateCompletedEventAttributes().GetOutcome().GetSuccess().GetPayloads()
	},
	"the input of the next execution": func(e *historypb.HistoryEvent) []*commonpb.Payload {
		return e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetInput().GetPayloads()
	},
	"the result": func(e *historypb.HistoryEvent) []*commonpb.Payload {
		return e.GetWorkflowExecutionCompletedEventAttributes().GetResult().GetPayloads()
	},
	"a memo": func(e *historypb.HistoryEvent) []*commonpb.Payload {
		fields := e.GetWorkflowPropertiesModifiedEventAttributes().GetUpsertedMemo().GetFields()
		return slices.Collect(maps.Values(fields))
	},
	"the search attributes": func(e *historypb.HistoryEvent) []*commonpb.Payload {
		fields := e.GetUpsertWorkflowSearchAttributesEventAttributes().GetSearchAttributes().GetIndexedFields()
		return []*commonpb.Payload{fields["PassbookStatus"]}
	},
}

// Contents are compared, although the SDK compares only the commands; not of released histories.
func TestReplayComparesContents(t *testing.T) {
	all := recorded(t)
	for place, payloads := range contentsOf {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			for _, h := range all {
				other := proto.Clone(h).(*historypb.History)
				if !slices.ContainsFunc(other.Events, func(e *historypb.HistoryEvent) bool {
					return slices.ContainsFunc(payloads(e), spoilt)
				}) {
					continue
				}
				require.ErrorContains(t, histories.Replay(other, histories.Options{}), place)
				require.NoError(t, histories.Replay(other, histories.Options{Journal: true}))
				return
			}
			require.Fail(t, "no history has contents there")
		})
	}
}

// spoilt changes a text in a payload of plain JSON, or in the object that it is. It reports whether there is one.
func spoilt(p *commonpb.Payload) bool {
	var text string
	var object map[string]any
	switch {
	case string(p.GetMetadata()["encoding"]) != "json/plain":
		return false
	case json.Unmarshal(p.Data, &text) == nil:
		p.Data, _ = json.Marshal(text + "!")
		return true
	case json.Unmarshal(p.Data, &object) != nil:
		return false
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if text, is := object[key].(string); is {
			object[key] = text + "!"
			p.Data, _ = json.Marshal(object)
			return true
		}
	}
	return false
}
