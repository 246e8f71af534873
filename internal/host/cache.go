package host

import (
	"fmt"
	"os"
	"strconv"

	"go.temporal.io/sdk/worker"
)

// CacheVar overrides the number of workflow executions that a worker keeps in memory between their tasks. Tests set
// it to 0: then each task executes the workflow again from its whole history.
const CacheVar = "PASSBOOK_TEST_WORKFLOW_CACHE"

// limitCache limits the executions in memory, before the first worker of the process starts.
func limitCache(runs int) error {
	if text := os.Getenv(CacheVar); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return fmt.Errorf("%s is %q; set it to a number of executions, or unset it", CacheVar, text)
		}
		runs = n
	}
	worker.SetStickyWorkflowCacheSize(runs)
	return nil
}
