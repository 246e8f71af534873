package workflows_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// answers are the results of the queries.
var answers = map[string]any{
	workflows.QueryStatus: run.State{}, workflows.QueryPlan: workflows.PlanAnswer{},
	workflows.QueryCost: workflows.CostAnswer{}, workflows.QueryHandoff: workflows.HandoffAnswer{},
	workflows.QueryHeld: workflows.HeldAnswer{}, workflows.QueryDirectory: workflows.DirectoryAnswer{},
	workflows.QueryCheckpoints: []run.CheckpointRef{},
}

// nullable collects the fields within a type that are null in JSON while their list is nil.
func nullable(t reflect.Type, seen map[reflect.Type]bool) (fields []string) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return nullable(t.Elem(), seen)
	case reflect.Struct:
	default:
		return nil
	}
	if seen[t] {
		return nil
	}
	seen[t] = true
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if list := f.Type.Kind() == reflect.Slice || f.Type.Kind() == reflect.Map; list &&
			!strings.Contains(options, "omit") {
			fields = append(fields, t.Name()+"."+f.Name)
		}
		fields = append(fields, nullable(f.Type, seen)...)
	}
	return fields
}

// TestListsOfQueriesAreNeverNull queries a run that has nothing yet, and one with a question. A list of a new field
// either is left out if it is empty, or is filled by its query and added here.
func TestListsOfQueriesAreNeverNull(t *testing.T) {
	filled := map[string][]string{
		workflows.QueryPlan: {"PlanAnswer.Stages"}, workflows.QueryCost: {"CostAnswer.Budgets", "CostAnswer.ByRole",
			"CostAnswer.ByStage"},
		workflows.QueryStatus:  {"Question.Actions", "Change.Files", "Tampered.First", "Scope.Paths"},
		workflows.QueryHandoff: {"Question.Actions", "Change.Files", "Tampered.First"},
	}
	for name, sample := range answers {
		require.ElementsMatch(t, filled[name], nullable(reflect.TypeOf(sample), map[reflect.Type]bool{}), name)
	}
	query := func(w *harness, at string) {
		for name := range answers {
			v, err := w.env.QueryWorkflow(name)
			require.NoError(t, err, name)
			var raw json.RawMessage
			require.NoError(t, v.Get(&raw))
			require.NotEqual(t, "null", string(raw), "%s, %s", name, at)
			for _, key := range []string{"stages", "by_role", "by_stage", "actions", "budgets", "files"} {
				require.NotContains(t, string(raw), `"`+key+`":null`, "%s, %s", name, at)
			}
		}
	}
	w := newHarness(t, twoPasses)
	w.dir.when(run.KindRunStart, func() { query(w, "at the start") })
	w.done()
	query(w, "at the end")
}
