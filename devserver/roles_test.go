package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/server/common/api"
)

func TestCallsOfWorkers(t *testing.T) {
	for name, want := range map[string]bool{
		"PollWorkflowTaskQueue": true, "PollActivityTaskQueue": true, "PollNexusTaskQueue": true,
		"RespondWorkflowTaskCompleted": true, "RespondActivityTaskCompletedById": true, "RespondQueryTaskCompleted": true,
		"RecordActivityTaskHeartbeat": true,
		"PollWorkflowExecutionUpdate": false, "StartWorkflowExecution": false, "QueryWorkflow": false,
	} {
		require.Equal(t, want, isForWorkers(api.WorkflowServicePrefix+name), name)
	}
	require.False(t, isForWorkers("/grpc.health.v1.Health/PollTaskQueue"))
}
