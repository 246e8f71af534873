package agent

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	rateLimited = regexp.MustCompile(`(?i)rate.?limit|\b429\b|overloaded|capacity`)
	refused     = regexp.MustCompile(`(?i)invalid (x-)?api.key|authentication|please run /login|oauth token has expired|\b401\b`)
	// A line about tokens or usage that complains of nothing only reports counts; "Input tokens: 429" is no rate limit.
	counts    = regexp.MustCompile(`(?i)\b(tokens?|usage|context)\b`)
	complains = regexp.MustCompile(`(?i)rate.?limit|overloaded|exceed|error|fail|too many|retry|expired|invalid|login`)
)

// complaint is the part of a text that can say why an attempt failed.
func complaint(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if !counts.MatchString(line) || complains.MatchString(line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// classify turns a failed attempt into a Failure. said is every text in which the agent may have said why.
func classify(exit Exit, message, said string) *Failure {
	f := &Failure{Category: ExitNonzero, Message: message, ExitCode: exit.Code}
	why := complaint(said)
	switch {
	case exit.Overflow:
		f.Category, f.Message = OutputTruncated, fmt.Sprintf("agent printed more than %d MiB; its output is cut off there", DefaultOutput>>20)
	case exit.Idle:
		f.Category, f.Message = TimedOut, fmt.Sprintf("agent printed nothing for too long and was ended after %s", exit.Duration.Round(1e6))
	case exit.TimedOut:
		f.Category, f.Message = TimedOut, fmt.Sprintf("agent did not finish and was ended after %s", exit.Duration.Round(1e6))
	case exit.Killed:
		f.Category, f.Message = Unknown, "agent was ended: "+exit.KillCause
	case exit.Code == 127:
		f.Category, f.Permanent = SpawnFailed, true
		f.Message = "agent could not start its program (exit code 127: command not found); check agent.run in the pipeline file and PATH"
	case rateLimited.MatchString(why):
		f.Category, f.RateLimited = RateLimit, true
		f.Message = "the provider refused the call for now (rate limit or overload): " + message
	case refused.MatchString(why):
		f.Permanent = true
		f.Message = "the agent is not logged in: " + message + "; log in or set the API key, then resume"
	}
	return f
}
