package workflows

import (
	"log/slog"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
)

// NewTestEnvironment returns a Temporal test environment with these interceptors. It logs nothing: the activities of
// most tests fail on purpose, and what the workflow makes of it is asserted.
func NewTestEnvironment(interceptors ...interceptor.WorkerInterceptor) *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	SetInterceptors(env, interceptors...)
	return env
}

// SetInterceptors sets the interceptors of an environment. A workflow may compute for 30 seconds without a pause: the
// SDK's second is too short for a busy machine.
func SetInterceptors(env *testsuite.TestWorkflowEnvironment, interceptors ...interceptor.WorkerInterceptor) {
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: 30 * time.Second, Interceptors: interceptors})
}

// Verbs are the messages that a run accepts.
func Verbs() (all []string) {
	for _, d := range messages("") {
		all = append(all, d.verb)
	}
	return all
}
