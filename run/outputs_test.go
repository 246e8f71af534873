package run

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What conditions and prompts have of a step: its last output, in this round or an earlier one.
func TestOutputsOfSteps(t *testing.T) {
	s := newStream(t, State{})
	end := func(id, value string, more func(*PassEnd)) {
		p := PassEnd{Pass: Pass{Role: "reader"}, Outcome: CategoryOK, ID: id, Keep: true, Value: value,
			Reply: &Blob{Digest: "reply of " + id}}
		if value != "" {
			p.Role = commandRole
		}
		if more != nil {
			more(&p)
		}
		s.add(KindPassEnd, "work", p)
	}
	s.add(KindPhaseStart, "work", PhaseStart{Key: "work", Round: 1})
	require.False(t, s.Has("tests"))
	end("tests", "failed", func(p *PassEnd) { p.ExitCode = 3 })
	end("plan", "", func(p *PassEnd) { p.Data = &Blob{Digest: "data"} })
	end("other", "", func(p *PassEnd) { p.Keep = false })
	tests, ok := s.Output("tests")
	require.True(t, ok)
	require.Equal(t, StepOutput{ID: "tests", Phase: "work", Now: true, Command: true, ExitCode: 3, Text: &Blob{Digest: "reply of tests"}}, tests)
	plan, _ := s.Output("plan")
	require.Equal(t, "data", plan.Data.Digest)
	_, ok = s.Output("other")
	require.False(t, ok, "nothing uses it")
	require.True(t, s.Has("tests"))
	require.False(t, s.Has("verdict"))

	given := s.State
	s.add(KindPhaseStart, "work", PhaseStart{Key: "work", Round: 2})
	require.False(t, s.Has("tests"), "it is of an earlier round")
	_, ok = s.Output("tests")
	require.True(t, ok, "prompts have it")
	require.True(t, given.Has("tests"), "an earlier state stays as it was")
	end("tests", "ok", nil)
	tests, _ = s.Output("tests")
	require.True(t, tests.OK)
	s.add(KindStepSkipped, "work", StepSkipped{IDs: []string{"tests"}, Next: &Place{Step: 2}})
	require.True(t, s.Has("tests"), "nothing is to come")
	_, ok = s.Output("tests")
	require.False(t, ok, "a step that was skipped has none")
	end("plan", "", func(p *PassEnd) { p.Outcome = CategoryValidationFailed })
	_, ok = s.Output("plan")
	require.False(t, ok, "a pass that failed leaves none")
	require.False(t, s.Has("plan"))
	s.add(KindPhaseStart, "next", PhaseStart{Key: "next", Round: 1})
	require.True(t, s.Has("tests"), "of another phase")
}

// A condition counts until something sets another value.
func TestEvaluatedConditions(t *testing.T) {
	s := newStream(t, State{})
	c := Condition{Of: "until", Text: "approved", Holds: true, Read: []Value{{"approved", "true"}, {"round", "2"}}}
	for name, change := range map[string]func(){
		"a command":     func() { s.add(KindPassEnd, "work", PassEnd{Outcome: CategoryOK, ID: "tests", Value: "ok"}) },
		"an output":     func() { s.add(KindPassEnd, "work", PassEnd{Outcome: CategoryOK, ID: "plan", Keep: true}) },
		"a verdict":     func() { s.add(KindPassEnd, "work", PassEnd{Outcome: CategoryOK, Verdict: "approved"}) },
		"no approval":   func() { s.add(KindPassEnd, "work", PassEnd{Outcome: CategoryOK, Approved: new(false)}) },
		"a score":       func() { s.add(KindScoreRecorded, "work", ScoreRecorded{Score: new(2.5)}) },
		"another round": func() { s.add(KindPhaseStart, "work", PhaseStart{Key: "work", Round: 2}) },
		"an edit":       func() { s.add(KindArtifactUpdated, "work", ArtifactUpdated{Cause: CauseEdited}) },
		"a skipped step": func() {
			s.add(KindStepSkipped, "work", StepSkipped{IDs: []string{"x"}, Next: &Place{}})
		},
	} {
		s.add(KindCondition, "work", Condition{Of: "until", Text: "approved"})
		s.add(KindCondition, "work", c)
		got, ok := s.Evaluated("until", "", "", "approved")
		require.True(t, ok, name)
		require.True(t, got.Holds, "the last one counts")
		_, ok = s.Evaluated("until", "", "", "approved and tests.ok")
		require.False(t, ok, "the plan was amended")
		change()
		_, ok = s.Evaluated("until", "", "", "approved")
		require.False(t, ok, name)
	}
	s.add(KindCondition, "work", c)
	s.add(KindPassEnd, "work", PassEnd{Outcome: CategoryOK})
	_, ok := s.Evaluated("until", "", "", "approved")
	require.True(t, ok, "a pass that sets nothing")
	require.Equal(t, "approved true, round 2", c.Values())
	require.Equal(t, "nothing", Condition{}.Values())
}
