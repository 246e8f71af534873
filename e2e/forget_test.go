package e2e_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities"
	"github.com/passbook-run/passbook/e2e/point"
)

// TestTheHarnessSeesWhatIsPaidForTwice proves the harness: a worker that never finds an earlier answer takes over where one died between an
// answer and its journaling, and invariant 4 must not hold. With an honest one in its place, it does.
func TestTheHarnessSeesWhatIsPaidForTwice(t *testing.T) {
	g := newGrounds(t, small())
	first := g.first(t, activities.Answered)
	for name, forget := range map[string]bool{"honest": false, "forgetful": true} {
		t.Run(name, func(t *testing.T) {
			s, err := g.newSite(name)
			require.NoError(t, err)
			require.NoError(t, s.start(t.Context()))
			at, err := s.killWorker(t.Context(), point.Plan{DieAt: first})
			require.NoError(t, err)
			require.NotNil(t, at)
			require.Equal(t, string(activities.Answered), at.At)
			require.Equal(t, notJournaled, s.deaths[0].Window)
			at, err = s.killWorker(t.Context(), point.Plan{Forget: forget})
			require.NoError(t, err)
			require.Nil(t, at, "it was not to die")
			err = s.invariants(g.want)
			if !forget {
				require.NoError(t, err)
				return
			}
			require.Equal(t, []int{4}, broken(err))
			require.ErrorContains(t, err, "call 001 was answered 2 times, started 2 times")
		})
	}
}

// TestAnAgentThatNobodyRecordedDiesToo kills the worker when the agent runs and is not written down yet: nobody could find it again. It would
// think for ten minutes.
func TestAnAgentThatNobodyRecordedDiesToo(t *testing.T) {
	g := newGrounds(t, small())
	first := g.first(t, activities.Spawned)
	s, err := g.newSite("spawned")
	require.NoError(t, err)
	require.NoError(t, s.spoil(slow("1", "600")))
	require.NoError(t, s.start(t.Context()))
	at, err := s.killWorker(t.Context(), point.Plan{DieAt: first, Await: s.log})
	require.NoError(t, err)
	require.NotNil(t, at)
	require.Equal(t, string(activities.Spawned), at.At)
	require.NoError(t, s.finish(t.Context()))
	require.NoError(t, s.invariants(g.want, bystander(t)))
}

// first is the number of the first point of that kind in a run.
func (g *grounds) first(t *testing.T, at activities.Point) int {
	t.Helper()
	for _, p := range g.count(t, "count", g.oneWorker(t)) {
		if p.At == string(at) {
			return p.N
		}
	}
	require.FailNow(t, "no run reaches the point", at)
	return 0
}

// broken lists the invariants that do not hold.
func broken(err error) []int {
	var one violation
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var out []int
		for _, e := range many.Unwrap() {
			out = append(out, broken(e)...)
		}
		return out
	}
	if errors.As(err, &one) {
		return []int{one.Invariant}
	}
	return nil
}
