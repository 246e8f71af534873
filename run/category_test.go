package run

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryCategoryHasAWholeRow(t *testing.T) {
	var names []Category
	for _, row := range Categories() {
		names = append(names, row.Name)
		t.Run(string(row.Name), func(t *testing.T) {
			require.Equal(t, row, row.Name.Info())
			require.Contains(t, []Nature{NoError, Transient, Permanent}, row.Nature)
			retries := []RetryClass{RetryNever, RetryAttempts, RetryLimit, RetryDelivery}
			require.Contains(t, retries, row.Retry)
			require.Contains(t, []RetryClass{"", RetryAttempts, RetryStructural}, row.Unusable)
			require.NotEmpty(t, row.Meaning)
			require.NotEmpty(t, row.Advice)
			if row.Nature == NoError {
				require.Zero(t, row.Exit, "no run pauses for it")
			}
			if row.Unusable != "" || row.Retry == RetryAttempts || row.Retry == RetryLimit {
				require.NotZero(t, row.Exit, "after the last attempt the run pauses")
			}
		})
	}
	constants := slices.Collect(maps.Keys(declared[Category](t, "Category")))
	require.ElementsMatch(t, constants, names, "one row for each constant of type Category")
}

func TestUnknownCategoryKeepsItsName(t *testing.T) {
	row := Category("of-another-release").Info()
	require.Equal(t, Category("of-another-release"), row.Name)
	row.Name = CategoryUnknown
	require.Equal(t, CategoryUnknown.Info(), row)
	require.True(t, Category("of-another-release").IsError())
}

func TestAdviceNamesWhatClearsTheCause(t *testing.T) {
	failed := &Failure{FailedPass: FailedPass{Category: CategoryRateLimit}}
	noted := &Problem{Category: CategoryScreenshotFailed}
	for name, row := range map[string]struct {
		state State
		cause Category
		want  string
	}{
		"a pass that failed": {
			State{Status: Paused, Reason: PassFailed, Failure: failed, Problem: noted},
			CategoryRateLimit,
			"Wait until the provider accepts calls again, then resume it; or revert it, or cancel it.",
		},
		"nothing recorded": {
			State{Status: Paused, Reason: ConsecutiveFailures}, "",
			"Check why the passes failed, then resume it; or revert it, or cancel it.",
		},
		"at work again": {
			State{Status: Running, Failure: failed, Problem: noted}, "",
			"Watch it, pause it or cancel it; there is nothing to decide.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, row.cause, row.state.StoppedBy())
			require.Equal(t, row.want, row.state.Advice())
		})
	}
}
