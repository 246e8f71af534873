package main

import (
	"time"

	"go.temporal.io/server/common/dynamicconfig"
)

// dynamicDefaults are the settings that differ from the server's own; a --dynamic-config-value wins over them.
var dynamicDefaults = map[string]any{
	// One shard serves the whole machine. At 20 polls a second, the default, every workflow task waits up to 50 ms.
	"history.transferProcessorMaxPollRPS": 1000,
	"history.timerProcessorMaxPollRPS":    1000,
	// The default rounds timers up to a whole second.
	"history.timerProcessorMaxTimeShift": 10 * time.Millisecond,
	// An execution is deleted only once its close is acknowledged. At 30 s, the default, a run that is removed at its
	// end stays listed for as long.
	"history.transferProcessorUpdateAckInterval":   time.Second,
	"history.visibilityProcessorUpdateAckInterval": time.Second,
	// One process has nothing to partition; forwarding between partitions only costs time.
	"matching.numTaskqueueReadPartitions":  1,
	"matching.numTaskqueueWritePartitions": 1,
	// Nothing over 64 KiB belongs into a history: a run that is flooded with big signals can no longer be saved.
	"limit.blobSize.error": 128 * 1024,
	"limit.blobSize.warn":  64 * 1024,
	// Runs that wait for days stay in the database only. The default keeps all of them in memory, 0.1 MB each.
	"history.hostLevelCacheMaxSize": 1000,
	// A page of the Web UI asks for several lists; the default, 10 a second, refuses those of the next pages.
	"frontend.namespaceRPS.visibility": 200,
	// No outbound call.
	"frontend.enableServerVersionCheck": false,
	// Scans for the orphans of a cluster under load: workflows and pollers that one machine need not pay for.
	"worker.taskQueueScannerEnabled":  false,
	"worker.historyScannerEnabled":    false,
	"worker.executionsScannerEnabled": false,
}

func dynamicConfig(own map[string]any) dynamicconfig.Client {
	out := dynamicconfig.StaticClient{}
	for _, values := range []map[string]any{dynamicDefaults, own} {
		for k, v := range values {
			out[dynamicconfig.MakeKey(k)] = v
		}
	}
	return out
}
