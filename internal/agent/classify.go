package agent

import (
	"cmp"
	"fmt"
	"time"

	"github.com/passbook-run/passbook/internal/agent/limits"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// classify turns a failed attempt into a Failure. reports is what the agent reported about it.
func classify(exit Exit, message string, reports limits.Report) *Failure {
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
	return refusal(reports.Limit(exit.Started.Add(exit.Duration), time.Local), message, exit.Code)
}

// refusal describes a call that the provider did not answer.
func refusal(limit limits.Limit, message string, code int) *Failure {
	category := run.CategoryAgentExit
	switch limit.Kind {
	case limits.Login:
		message = "the agent is not logged in: " + message + "; log in or set the API key, then resume"
	case limits.Credit:
		message = "the account has no credit: " + message + "; add credit, then resume"
	case limits.Model:
		message = "the account cannot use the model: " + message + "; correct the agent's command, then resume"
	case limits.Plan:
		category = run.CategoryRateLimit
		message = "the usage limit of the account is reached: " + message
	case limits.Rate, limits.Overload:
		category = run.CategoryRateLimit
		message = "the provider refused the call for now (rate limit or overload): " + message
	case limits.Output:
		category = run.CategoryOutputTruncated
		message = "the answer exceeded the maximum number of output tokens: " + message
	case limits.Unreachable:
		category = run.CategoryUnreachable
		message = "the connection to the provider failed: " + message
	}
	f := NewFailure(category, message, code)
	f.Permanent, f.Cause, f.Until = f.Permanent || limit.Kind.Blocks(), limit.Kind, limit.Until
	return f
}
