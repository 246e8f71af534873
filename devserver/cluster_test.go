package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
)

// A run behaves on the cluster of docker-compose.yml as on this server; only what cleans up after many users differs.
func TestClusterHasSameDynamicConfig(t *testing.T) {
	done := make(chan any)
	defer close(done)
	file, err := dynamicconfig.NewFileBasedClient(&dynamicconfig.FileBasedClientConfig{
		Filepath: "../deploy/dynamicconfig.yaml", PollInterval: time.Minute,
	}, log.NewNoopLogger(), done)
	require.NoError(t, err)
	settings := func(client dynamicconfig.Client) map[string]any {
		c := dynamicconfig.NewCollection(client, log.NewNoopLogger())
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
	want := map[string]any{
		"transfer": 1000, "timer": 1000, "shift": 10 * time.Millisecond, "acks": time.Second, "seen": time.Second,
		"read": 1, "write": 1, "error": 128 * 1024, "warn": 64 * 1024, "check": false,
	}
	require.Equal(t, want, settings(dynamicConfig(nil)))
	require.Equal(t, want, settings(file))
	own := dynamicconfig.NewCollection(dynamicConfig(map[string]any{"history.timerProcessorMaxPollRPS": 7}), nil)
	require.Equal(t, 7, dynamicconfig.TimerProcessorMaxPollRPS.Get(own)(), "a setting of the user")
	require.False(t, dynamicconfig.TaskQueueScannerEnabled.Get(own)())
	require.False(t, dynamicconfig.HistoryScannerEnabled.Get(own)())
}
