package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
)

// A run must behave on the cluster of docker-compose.yml as it does here; only what cleans up after many users differs.
func TestClusterHasSameDynamicConfig(t *testing.T) {
	done := make(chan any)
	defer close(done)
	file, err := dynamicconfig.NewFileBasedClient(&dynamicconfig.FileBasedClientConfig{
		Filepath: "../deploy/dynamicconfig.yaml", PollInterval: time.Minute,
	}, log.NewNoopLogger(), done)
	require.NoError(t, err)
	cluster := dynamicconfig.NewCollection(file, log.NewNoopLogger())
	embedded := dynamicconfig.NewCollection(dynamicConfig(nil), log.NewNoopLogger())
	settings := func(c *dynamicconfig.Collection) map[string]any {
		return map[string]any{
			"transfer": dynamicconfig.TransferProcessorMaxPollRPS.Get(c)(),
			"timer":    dynamicconfig.TimerProcessorMaxPollRPS.Get(c)(),
			"shift":    dynamicconfig.TimerProcessorMaxTimeShift.Get(c)(),
			"acks":     dynamicconfig.TransferProcessorUpdateAckInterval.Get(c)(),
			"seen":     dynamicconfig.VisibilityProcessorUpdateAckInterval.Get(c)(),
			"read": dynamicconfig.MatchingNumTaskqueueReadPartitions.Get(c)("", "q",
				enumspb.TASK_QUEUE_TYPE_ACTIVITY),
			"write": dynamicconfig.MatchingNumTaskqueueWritePartitions.Get(c)("", "q",
				enumspb.TASK_QUEUE_TYPE_ACTIVITY),
			"error": dynamicconfig.BlobSizeLimitError.Get(c)(""),
			"warn":  dynamicconfig.BlobSizeLimitWarn.Get(c)(""),
			"check": dynamicconfig.EnableServerVersionCheck.Get(c)(),
		}
	}
	require.Equal(t, settings(embedded), settings(cluster))
	require.Equal(t, 128*1024, settings(cluster)["error"])
	require.Equal(t, time.Second, settings(embedded)["acks"], "a run that is removed at its end is gone at once")
	require.Equal(t, time.Second, settings(embedded)["seen"])
}
