package agent

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/passbook-run/passbook/run"
)

// Kinds of replies.
const (
	KindJSON = "claude-json" // output of `claude -p --output-format json`
	KindText = "text"        // plain standard output
)

// Reply is an agent's answer and its cost. For a failed attempt it contains what could be read: failed calls are
// paid for too.
type Reply struct {
	Text      string  `json:"text"`
	Model     string  `json:"model,omitempty"`
	SessionID string  `json:"session_id,omitempty"`
	Subtype   string  `json:"subtype,omitempty"` // "success", "error_max_turns"
	Turns     int     `json:"turns,omitempty"`
	Tokens    Tokens  `json:"tokens"`
	CostUSD   float64 `json:"cost_usd"`
	Known     bool    `json:"cost_known,omitempty"`
	Estimated bool    `json:"estimated,omitempty"` // tokens or cost are estimated and not reported by the agent
}

// Tokens are the tokens of a call.
type Tokens struct {
	Input      int `json:"input"`
	Output     int `json:"output"`
	CacheRead  int `json:"cache_read"`
	CacheWrite int `json:"cache_write"`
}

// Price is in USD per million tokens. It is used if a reply contains no cost.
type Price struct {
	Input  float64
	Output float64
}

// Cached tokens cost this share of an input token.
const (
	cacheReadShare  = 0.1
	cacheWriteShare = 1.25
)

// ReadReply reads the output of a process of the given kind. A nil Failure means that Reply is a complete answer.
//
// A complete envelope without is_error is an answer if the process exited with 0, or was ended by a signal or
// timeout afterwards: it is paid for. Cost is the agent's own figure, else tokens times price (nil: 0), with
// characters / 4 if the agent reports no tokens. A failed attempt without output costs nothing.
func ReadReply(kind string, stdout []byte, exit Exit, stderr string, price *Price, promptChars int) (Reply, *Failure) {
	stderr = ending(stderr)
	var reply Reply
	var failure *Failure
	switch kind {
	case KindJSON:
		reply, failure = readJSON(stdout, exit, stderr, price, promptChars)
	case KindText:
		reply, failure = readText(stdout, exit, stderr, price, promptChars)
	default:
		message := fmt.Sprintf("reply kind %q is unknown; use %s or %s", kind, KindJSON, KindText)
		failure = NewFailure(run.CategoryConfigMismatch, message, exit.Code)
	}
	if failure != nil && failure.Category == run.CategoryAgentExit {
		failure.Message += lastWords(stderr, string(stdout), failure.Message)
	}
	if failure != nil {
		failure.Diagnostics = diagnose(stderr, string(stdout[max(0, len(stdout)-maxExplained):]))
	}
	return reply, failure
}

// maxExplained is the number of bytes at the end of a text in which the reason of a failure is searched.
const maxExplained = 256 << 10

// ending returns the end of a text.
func ending(text string) string { return text[max(0, len(text)-maxExplained):] }

func readText(stdout []byte, exit Exit, stderr string, price *Price, promptChars int) (Reply, *Failure) {
	text := string(stdout)
	reply := estimateReply(text, exit, price, promptChars)
	switch {
	case unfinished(exit):
		return reply, classify(exit, exitMessage(exit), stderr+"\n"+shortText(text))
	case len(bytes.TrimSpace(stdout)) == 0:
		return reply, classify(exit, "agent exited with 0 and printed nothing",
			stderr).withCategory(run.CategoryOutputEmpty)
	}
	return reply, nil
}

func readJSON(stdout []byte, exit Exit, stderr string, price *Price, promptChars int) (Reply, *Failure) {
	e, err := parseEnvelope(stdout)
	if err != nil {
		return estimateReply(string(stdout), exit, price, promptChars), classifyUnreadable(err, stdout, exit, stderr)
	}
	reply := e.toReply(exit, price, promptChars)
	switch {
	case e.failed():
		// it answered before it was ended: the answer explains the failure
		exit.TimedOut, exit.Idle, exit.Overflow, exit.Killed = false, false, false, false
		return reply, classify(exit, e.reported(exit), stderr+"\n"+ending(e.text()))
	case exit.Code > 0 && !exit.TimedOut && !exit.Killed:
		return reply, classify(exit, exitMessage(exit), stderr)
	case e.Result == nil:
		return reply, classify(exit, fmt.Sprintf("agent's answer holds no result (%s)", e.Subtype),
			stderr).withCategory(run.CategoryOutputEmpty)
	}
	return reply, nil
}

// classifyUnreadable classifies a reply that is no envelope.
func classifyUnreadable(err error, stdout []byte, exit Exit, stderr string) *Failure {
	switch {
	case unfinished(exit):
		return classify(exit, exitMessage(exit), stderr+"\n"+shortText(string(stdout)))
	case len(bytes.TrimSpace(stdout)) == 0:
		return classify(exit, "agent exited with 0 and printed nothing", stderr).withCategory(run.CategoryOutputEmpty)
	}
	return classify(exit, err.Error(), stderr).withCategory(run.CategoryOutputTruncated)
}

// withCategory sets the category of a failure that has no specific one.
func (f *Failure) withCategory(category run.Category) *Failure {
	if f.Category == run.CategoryAgentExit && !f.Permanent {
		f.setCategory(category)
	}
	return f
}

// shortText omits a text that is too long for an error message: part of an answer may mention anything.
func shortText(stdout string) string {
	if len(stdout) > 1000 {
		return ""
	}
	return stdout
}

func unfinished(exit Exit) bool {
	return exit.Code != 0 || exit.TimedOut || exit.Overflow || exit.Killed
}

func exitMessage(exit Exit) string {
	if exit.Signal != "" {
		return "agent was ended by a signal: " + exit.Signal
	}
	return fmt.Sprintf("agent exited with code %d", exit.Code)
}

// reported describes the error that an envelope reports.
func (e *envelope) reported(exit Exit) string {
	message := "agent reported an error"
	if e.Subtype != "" && e.Subtype != "success" {
		message += " (" + e.Subtype + ")"
	}
	if exit.Code > 0 {
		message += fmt.Sprintf(" and exited with code %d", exit.Code)
	}
	return message + ": " + lastChars(e.text(), 300)
}

// lastWords returns the last lines that an agent printed, to follow a message that does not have them.
func lastWords(stderr, stdout, message string) string {
	for _, text := range []string{stderr, shortText(stdout)} {
		var lines []string
		for line := range strings.Lines(strings.ToValidUTF8(text, "?")) {
			if line = strings.TrimSpace(line); line != "" {
				lines = append(lines, line)
			}
		}
		last := lastChars(strings.Join(lines[max(0, len(lines)-3):], "; "), 200)
		if last != "" && !strings.Contains(message, last) && !strings.HasPrefix(last, "{") {
			return ": " + last
		}
	}
	return ""
}

// toReply uses the envelope's figures and estimates missing ones.
func (e *envelope) toReply(exit Exit, price *Price, promptChars int) Reply {
	r := Reply{Text: e.text(), Model: e.model(), SessionID: e.SessionID, Subtype: e.Subtype, Turns: e.NumTurns}
	if e.Usage == nil {
		estimate := estimateReply(r.Text, exit, price, promptChars)
		r.Tokens, r.CostUSD, r.Estimated = estimate.Tokens, estimate.CostUSD, true
	} else {
		r.Tokens = Tokens(*e.Usage)
		r.CostUSD, r.Estimated = cost(r.Tokens, price), e.CostUSD == nil
	}
	r.Known = price != nil
	if e.CostUSD != nil && (e.Usage != nil || *e.CostUSD > 0) {
		r.CostUSD, r.Known = *e.CostUSD, true
	}
	return r
}

// estimateReply estimates tokens from characters.
func estimateReply(text string, exit Exit, price *Price, promptChars int) Reply {
	r := Reply{Text: text, Estimated: true, Known: price != nil}
	if text == "" && exit.Code != 0 {
		return r
	}
	r.Tokens = Tokens{Input: estimateTokens(promptChars), Output: estimateTokens(utf8.RuneCountInString(text))}
	r.CostUSD = cost(r.Tokens, price)
	return r
}

func estimateTokens(chars int) int { return int(math.Round(float64(chars) / 4)) }

func cost(t Tokens, price *Price) float64 {
	if price == nil {
		return 0
	}
	input := float64(t.Input) + cacheReadShare*float64(t.CacheRead) + cacheWriteShare*float64(t.CacheWrite)
	return (input*price.Input + float64(t.Output)*price.Output) / 1e6
}
