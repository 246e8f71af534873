package run

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlanIsInForceWhenAStepBegins follows from which step an amendment counts: a running step keeps its plan until it
// begins again.
func TestPlanIsInForceWhenAStepBegins(t *testing.T) {
	start := RunStart{RunID: "r", Epoch: 1, Plan: "first", TotalPasses: 3, Stages: []StageRef{{Name: "a"}}}
	amended := RunAmended{New: PlanRef{Plan: "second"}, Terms: PlanTerms{TotalPasses: 3}}
	during := amended
	during.Running = true
	begin, end := PassStart{Pass: Pass{Step: "001"}}, PassEnd{Pass: Pass{Step: "001"}, Outcome: CategoryOK,
		Next: &Place{Round: 1, Step: 1}}
	first, second := &Place{Round: 1}, &Place{Round: 1, Step: 1}
	for name, row := range map[string]struct {
		events []any
		plan   string
		from   *Place
	}{
		"not amended":      {[]any{start}, "first", nil},
		"before a step":    {[]any{start, amended}, "second", first},
		"between steps":    {[]any{start, begin, end, amended}, "second", second},
		"during a step":    {[]any{start, begin, during}, "second", nil},
		"the step settles": {[]any{start, begin, during, end}, "second", second},
		"the step begins again": {[]any{start, begin, during, RunPaused{Reason: PassFailed}, RunResumed{Epoch: 1}},
			"second", first},
		"an epoch begins": {[]any{start, begin, during,
			RunResumed{Epoch: 2, State: &State{Plan: &CurrentPlan{PlanRef: PlanRef{Plan: "second"}, Seq: 3}, Next: *first}}},
			"second", first},
		"while the run is paused": {[]any{start, begin, RunPaused{Reason: PassFailed}, amended}, "second", first},
	} {
		t.Run(name, func(t *testing.T) {
			s := Folded(t, State{}, row.events...)
			require.Equal(t, row.plan, s.PlanInForce(start).Plan)
			require.Equal(t, row.from, s.Plan.From)
		})
	}
}
