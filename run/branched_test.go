package run

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// own are the fields that a branch does not take over from its checkpoint: they are of the other run's life, or follow
// from the plan of the new run. A new field of the state is listed here or taken over.
var own = []string{
	"RunID", "ThreadID", "RunKind", "Pipeline", "Wording", "Task", "Status", "Reason", "Seq", "TS", "Epoch",
	"Generation", "CreatedAt", "StartedAt", "FinishedAt", "Starts", "Stages", "Unmet", "Redone", "InFlight",
	"Budget", "Raised", "Need", "Means", "Plan", "Warned", "Spent", "SunkUSD", "SunkUnknown", "ListPrice", "Used", "Late", "ByRole",
	"ByStage", "DurationsMS", "Failure", "Limited", "Problem", "Damage", "Checkpoint", "Checkpoints", "Review",
	"Decided", "Decisions", "Judged", "Found", "Files", "MoreFiles", "Again", "Feedback", "About", "Questions",
	"Gate", "Delivery", "Waivers", "Markers", "Projects", "Accepted", "MemberOf", "LaneOf", "Reused", "Refused",
	"Instructions", "Started", "InvalidTransition", "Forge",
}

func TestBranchedTakesOverTheWork(t *testing.T) {
	var lost []string
	first, second := numbered(1), numbered(2)          // flags differ
	first.Lanes.Active, second.Lanes.Active = nil, nil // TestNamesOfLanes has theirs
	got, other := Checkpoint{State: first}.Branched(), Checkpoint{State: second}.Branched()
	for i, v := 0, reflect.ValueOf(got); i < v.NumField(); i++ {
		f := v.Type().Field(i)
		if f.IsExported() && v.Field(i).IsZero() && reflect.ValueOf(other).Field(i).IsZero() {
			lost = append(lost, f.Name)
		} else if f.IsExported() && f.Name != "Version" {
			require.Contains(t, sameFields(got, first), f.Name)
			require.Contains(t, sameFields(other, second), f.Name)
		}
	}
	require.Equal(t, own, lost)
	require.Equal(t, StateVersion, got.Version)
}
