package activities

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/workflows/contract"
)

// TestDirectoriesAreBelowTheRoots: an activity that uses a directory outside of policy.roots is not executed.
func TestDirectoriesAreBelowTheRoots(t *testing.T) {
	a, err := New(Config{Roots: []string{"/data", "/runs"}})
	require.NoError(t, err)
	in, out := contract.Target{Dir: "/runs/1"}, contract.Target{Dir: "/runs/../etc"}
	for name, row := range map[string]struct{ within, outside any }{
		"a batch":      {contract.ProjectInput{Target: in}, contract.ProjectInput{Target: out}},
		"its neighbor": {contract.OpenInput{Target: in}, contract.OpenInput{Target: contract.Target{Dir: "/runs-2/1"}}},
		"a turn": {contract.TurnInput{Project: contract.ProjectInput{Target: in}},
			contract.TurnInput{Project: contract.ProjectInput{Target: out}}},
		"a project": {contract.DeliverProjectInput{Target: in, Project: contract.DeliverInput{Target: in}},
			contract.DeliverProjectInput{Target: in, Project: contract.DeliverInput{Target: out}}},
	} {
		require.NoError(t, a.withinRoots(row.within), name)
		err := a.withinRoots(row.outside)
		require.ErrorContains(t, err, "it is outside of policy.roots (/data, /runs)", name)
		var refused *temporal.ApplicationError
		require.ErrorAs(t, err, &refused, name)
		require.True(t, refused.NonRetryable(), name)
	}
	_, err = redactingInterceptor(a, a.Project)(t.Context(), contract.ProjectInput{Target: out})
	require.ErrorContains(t, err, "open run directory /runs/../etc: it is outside of policy.roots")
}

// TestStoresAreListed: an activity on a store that the settings do not list waits for a worker that lists it.
func TestStoresAreListed(t *testing.T) {
	a, err := New(Config{Stores: func(url string) bool { return url == "s3://listed" }, Host: "here"})
	require.NoError(t, err)
	_, err = redactingInterceptor(a, a.ReadRound)(t.Context(), contract.RoundInput{Store: "s3://key:secret@theirs"})
	var refused *temporal.ApplicationError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, contract.ErrNoStore, refused.Type())
	require.False(t, refused.NonRetryable())
	require.ErrorContains(t, err, "it is neither the store of this worker's settings nor in policy.stores")
	require.NotContains(t, err.Error(), "secret")
}
