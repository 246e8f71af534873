package pages

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/operations"
)

// TestResultsOfGatesSurviveTheConsole: another console shows them, or that the first console ended before them.
func TestResultsOfGatesSurviveTheConsole(t *testing.T) {
	folder := t.TempDir()
	console := func() *tasks { return &tasks{folder: folder, now: time.Now} }
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/", nil)
	one, release := console(), make(chan error)
	calls := 0
	gates := func(ctx context.Context) (any, error) {
		calls++
		select {
		case err := <-release:
			return operations.Verified{Passed: true, Tree: "t"}, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	begin := func(c *tasks) {
		t.Helper()
		require.NoError(t, c.begin(r, "a run", gates, error.Error))
	}
	wait := func(c *tasks) { c.end(t.Context()) }
	last := func(c *tasks) task {
		t.Helper()
		got, err := c.of("a run")
		require.NoError(t, err)
		require.NotNil(t, got)
		return *got
	}
	none, err := one.of("a run")
	require.NoError(t, err)
	require.Nil(t, none)
	require.Empty(t, one.mark("a run"))

	begin(one)
	require.False(t, last(one).Broken)
	require.False(t, last(console()).Broken, "it runs in another console")
	before := one.mark("a run")
	begin(one)
	begin(console())
	release <- nil
	one.ended.Wait()
	require.Equal(t, 1, calls, "one at a time")
	require.NotEqual(t, before, one.mark("a run"))
	require.True(t, last(console()).Result.Passed, "the result is kept")

	begin(one)
	release <- errors.New("no tree")
	one.ended.Wait()
	require.Equal(t, "no tree", last(console()).Problem)

	begin(one)
	wait(one)
	require.True(t, last(console()).Broken, "the console ended before the gates")
	require.True(t, last(one).Broken)
	begin(one)
	require.False(t, last(one).Broken)
	wait(one)
}
