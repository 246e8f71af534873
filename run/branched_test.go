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
	"Budget", "Raised", "Need", "Means", "Plan", "Warned", "Spent", "SunkUSD", "SunkUnknown", "Used", "Late", "ByRole",
	"ByStage", "DurationsMS", "Failure", "Limited", "Problem", "Damage", "Checkpoint", "Checkpoints", "Review",
	"Decided", "Decisions", "Judged", "Found", "Files", "MoreFiles", "Again", "Feedback", "About", "Questions",
	"Gate", "Delivery", "Waivers", "Markers", "Projects", "Accepted", "MemberOf", "Reused", "Refused", "Instructions",
	"Started", "InvalidTransition",
}

// TestBranchedTakesOverTheWork fills every field of a checkpoint's state.
func TestBranchedTakesOverTheWork(t *testing.T) {
	var full State
	v := reflect.ValueOf(&full).Elem()
	for i := range v.NumField() {
		if v.Field(i).CanSet() {
			fill(v.Field(i))
		}
	}
	got := reflect.ValueOf(Checkpoint{State: full}.Branched())
	var lost []string
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() && got.Field(i).IsZero() {
			lost = append(lost, f.Name)
		}
	}
	require.Equal(t, own, lost)
}

// fill returns a value that is not zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i))
			}
		}
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(1)
	}
}
