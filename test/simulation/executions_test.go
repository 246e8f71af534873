package simulation_test

import (
	"fmt"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// executions intercepts executions of the workflow: they can be terminated.
type executions struct {
	interceptor.WorkerInterceptorBase
	epoch int // what it has begun
}

// InterceptWorkflow is of interceptor.WorkerInterceptor.
func (e *executions) InterceptWorkflow(_ workflow.Context,
	next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &inbound{WorkflowInboundInterceptorBase: interceptor.WorkflowInboundInterceptorBase{Next: next},
		of: e}
}

type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
	of *executions
}

// Init is of interceptor.WorkflowInboundInterceptor.
func (i *inbound) Init(out interceptor.WorkflowOutboundInterceptor) error {
	return i.Next.Init(&outbound{
		WorkflowOutboundInterceptorBase: interceptor.WorkflowOutboundInterceptorBase{Next: out}, of: i.of,
	})
}

// ExecuteWorkflow ends the execution in a panic when it is terminated: none of its code is executed after that.
func (i *inbound) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	workflow.Go(ctx, func(ctx workflow.Context) {
		workflow.GetSignalChannel(ctx, termination).Receive(ctx, nil)
		panic(termination)
	})
	return i.Next.ExecuteWorkflow(ctx, in)
}

type outbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	of *executions
}

// GetInfo is of interceptor.WorkflowOutboundInterceptor.
func (o *outbound) GetInfo(ctx workflow.Context) *workflow.Info {
	info := *o.Next.GetInfo(ctx)
	info.FirstRunID = fmt.Sprint("start ", o.of.epoch)
	return &info
}

// ExecuteActivity repeats an activity as a server does. The environment's default is ten attempts.
func (o *outbound) ExecuteActivity(ctx workflow.Context, activity string, args ...any) workflow.Future {
	const asOften = 10_000
	var policy temporal.RetryPolicy
	if is := workflow.GetActivityOptions(ctx).RetryPolicy; is != nil {
		policy = *is
	}
	if policy.MaximumAttempts == 0 {
		policy.MaximumAttempts = asOften
		ctx = workflow.WithRetryPolicy(ctx, policy)
	}
	return o.Next.ExecuteActivity(ctx, activity, args...)
}
