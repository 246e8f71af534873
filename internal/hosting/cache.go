package hosting

import (
	"fmt"
	"os"
	"strconv"

	"go.temporal.io/sdk/worker"
)

// CacheVar names the number of workflow executions that a worker keeps in memory between their tasks. Tests set it to
// 0: then each task executes the workflow again from its whole history. Unset: the default of the SDK.
const CacheVar = "PASSBOOK_TEST_WORKFLOW_CACHE"

// limitCache applies CacheVar, before the first worker of the process starts.
func limitCache() error {
	text := os.Getenv(CacheVar)
	if text == "" {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return fmt.Errorf("%s is %q; set it to a number of executions, or unset it", CacheVar, text)
	}
	worker.SetStickyWorkflowCacheSize(n)
	return nil
}
