package workflows

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
)

// withWorkflow runs a function as a workflow, with these activities.
func withWorkflow(t *testing.T, activities map[string]any, do func(ctx workflow.Context) error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	for name, f := range activities {
		env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	env.ExecuteWorkflow(do)
	require.True(t, env.IsWorkflowCompleted())
	require.NoError(t, env.GetWorkflowError())
}

// lastPending decodes the payload of the last event, which must be of that kind.
func lastPending[T any](t *testing.T, e *engine, kind run.Kind) (p T) {
	t.Helper()
	require.NotEmpty(t, e.j.pending)
	last := e.j.pending[len(e.j.pending)-1]
	require.Equal(t, kind, last.Kind)
	last.Decode(&p)
	return p
}
