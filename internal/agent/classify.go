package agent

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

var (
	rateLimited = regexp.MustCompile(`(?i)rate.?limit|\b429\b|overloaded|capacity`)
	refused     = regexp.MustCompile(
		`(?i)invalid (x-)?api.key|authentication|please run /login|oauth token has expired|\b401\b`,
	)
	// A line that only reports counts is no rate limit: "Input tokens: 429".
	counts    = regexp.MustCompile(`(?i)\b(tokens?|usage|context)\b`)
	complaint = regexp.MustCompile(`(?i)rate.?limit|overloaded|exceed|error|fail|too many|retry|expired|invalid|login`)
)

// explanation returns the lines of a text that can explain a failed attempt.
func explanation(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if !counts.MatchString(line) || complaint.MatchString(line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// classify turns a failed attempt into a Failure. said is all text in which the agent may have explained it.
func classify(exit Exit, message, said string) *Failure {
	f := NewFailure(run.CategoryAgentExit, message, exit.Code)
	took := exit.Duration.Round(1e6)
	why := explanation(said)
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
	case rateLimited.MatchString(why):
		message = "the provider refused the call for now (rate limit or overload): " + message
		return NewFailure(run.CategoryRateLimit, message, exit.Code)
	case refused.MatchString(why):
		f.Permanent = true
		f.Message = "the agent is not logged in: " + message + "; log in or set the API key, then resume"
	}
	return f
}
