package agent

import (
	"cmp"
	"fmt"

	"github.com/passbook-run/passbook/internal/provider"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// classify turns a failed attempt into a Failure. said is what the agent reported about it.
func classify(exit Exit, message string, said provider.Report) *Failure {
	took := exit.Duration.Round(1e6)
	switch {
	case exit.Overflow:
		message = fmt.Sprintf("agent printed more than %s; its output is cut off there (limits.output)",
			pipeline.Bytes(cmp.Or(exit.Limit, DefaultOutput)))
		return NewFailure(run.CategoryOutputTruncated, message, exit.Code)
	case exit.Idle:
		message = fmt.Sprintf("agent printed nothing for too long (limits.idle) and was ended after %s", took)
		return NewFailure(run.CategoryAgentTimeout, message, exit.Code)
	case exit.TimedOut:
		message = fmt.Sprintf("agent did not finish and was ended after %s", took)
		return NewFailure(run.CategoryAgentTimeout, message, exit.Code)
	case exit.Killed:
		return NewFailure(run.CategoryUnknown, "agent was ended: "+exit.KillCause, exit.Code)
	case exit.Code == 127:
		message = "agent could not start its program (exit code 127: command not found); " +
			"check agent.run in the pipeline file and PATH"
		return NewFailure(run.CategorySpawnFailed, message, exit.Code)
	}
	return refusal(said.Cause(), message, exit.Code)
}

// refusal describes a call that the provider did not answer.
func refusal(cause provider.Cause, message string, code int) *Failure {
	category, permanent := run.CategoryAgentExit, false
	switch cause {
	case provider.Login:
		permanent = true
		message = "the agent is not logged in: " + message + "; log in or set the API key, then resume"
	case provider.Credit:
		permanent = true
		message = "the account has no credit: " + message + "; add credit, then resume"
	case provider.Plan:
		category = run.CategoryRateLimit
		message = "the usage limit of the account is reached: " + message
	case provider.Rate, provider.Overload:
		category = run.CategoryRateLimit
		message = "the provider refused the call for now (rate limit or overload): " + message
	case provider.Output:
		category = run.CategoryOutputTruncated
		message = "the answer exceeded the maximum number of output tokens: " + message
	case provider.Unreachable:
		message = "the connection to the provider failed: " + message
	}
	f := NewFailure(category, message, code)
	f.Permanent, f.Cause = f.Permanent || permanent, cause
	return f
}
