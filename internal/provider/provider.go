// Package provider finds out why a model provider did not answer a call: one table for each provider, after what its
// command line really reports.
//
// It is pure. It judges the error report and the standard error of a failed call, never the text of an answer.
package provider

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Cause is why a provider did not answer.
type Cause string

// Causes. The zero value means that the provider gave no known one.
const (
	Login       Cause = "login"       // the agent is not logged in, or its key is refused
	Credit      Cause = "credit"      // the account has no credit
	Plan        Cause = "plan"        // the usage limit of a subscription or of a day
	Rate        Cause = "rate"        // too many requests
	Overload    Cause = "overload"    // the provider is overloaded
	Output      Cause = "output"      // the answer exceeded the maximum number of output tokens
	Unreachable Cause = "unreachable" // the connection failed or broke off
)

// Report is what a program reported about a failed call.
type Report struct {
	Program string // claude, codex or gemini; else any
	Code    string // its own word for the error
	HTTP    int    // status of the provider's refusal; 0: unknown
	Text    string // of the error
	Stderr  string
	Exit    int // exit code of the program
}

// rule recognizes a cause by one of its signs.
type rule struct {
	cause Cause
	codes []string
	http  []int
	text  *regexp.Regexp // of a line
}

// Cause returns the cause of a failed call. The error report decides, and without a cause in it standard error.
func (r Report) Cause() Cause {
	rules := slices.Concat(claudeRules, codexRules, geminiRules)
	switch r.Program {
	case "claude":
		rules = claudeRules
	case "codex":
		rules = codexRules
	case "gemini":
		rules = geminiRules
		if r.HTTP == 0 && r.Exit > 128 {
			r.HTTP = r.Exit + 256 // its exit code is the lower byte of the status
		}
	}
	rules = append(slices.Clone(rules), generalRules...)
	if c := find(rules, r.Code, r.HTTP, r.Text); c != "" {
		return c
	}
	return find(rules, "", 0, r.Stderr)
}

func find(rules []rule, code string, http int, text string) Cause {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && (!counts.MatchString(line) || complaint.MatchString(line)) {
			lines = append(lines, line)
		}
	}
	statuses := []int{http}
	for _, line := range lines {
		if m := status.FindStringSubmatch(line); m != nil && http == 0 {
			n, err := strconv.Atoi(m[1])
			if err == nil {
				statuses = append(statuses, n)
			}
		}
	}
	for _, r := range rules {
		if slices.Contains(r.codes, code) || r.text != nil && slices.ContainsFunc(lines, r.text.MatchString) {
			return r.cause
		}
	}
	for _, r := range rules { // words tell more than the status: 429 is also a lack of credit
		if slices.ContainsFunc(statuses, func(n int) bool { return slices.Contains(r.http, n) }) {
			return r.cause
		}
	}
	return ""
}

var (
	// status is how programs print the status of a refusal. A number alone is none.
	status = regexp.MustCompile(`(?i)(?:^API Error: |Request rejected \(|\b(?:HTTP|status)(?: code)?[ :]+|"code": ?)` +
		`([45]\d\d)\b`)
	// A line that only reports counts explains nothing: "Input tokens: 429".
	counts    = regexp.MustCompile(`(?i)\b(tokens?|usage|context)\b`)
	complaint = regexp.MustCompile(`(?i)limit|overloaded|exceed|error|fail|too many|retry|expired|invalid|login`)
)
