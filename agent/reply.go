package agent

import (
	"bytes"
	"fmt"
	"math"
	"unicode/utf8"
)

// Kinds of replies.
const (
	KindJSON = "claude-json" // the JSON object of `claude -p --output-format json`
	KindText = "text"        // standard output is the reply
)

// Reply is what an agent answered and what it cost. Of a failed attempt it holds what could still be read: failed calls are paid too.
type Reply struct {
	Text      string  `json:"text"`
	Model     string  `json:"model,omitempty"`
	SessionID string  `json:"session_id,omitempty"`
	Subtype   string  `json:"subtype,omitempty"` // "success", "error_max_turns"
	Turns     int     `json:"turns,omitempty"`
	Tokens    Tokens  `json:"tokens"`
	CostUSD   float64 `json:"cost_usd"`
	Estimated bool    `json:"estimated,omitempty"` // tokens or cost are our guess, not the agent's report
}

// Tokens are what an agent read and wrote.
type Tokens struct {
	Input      int `json:"input"`
	Output     int `json:"output"`
	CacheRead  int `json:"cache_read"`
	CacheWrite int `json:"cache_write"`
}

// Price is in USD per million tokens. It is only used when a reply carries no cost.
type Price struct {
	Input  float64
	Output float64
}

// Cached tokens cost this share of an input token; a price list of two numbers does not say it.
const (
	cacheReadShare  = 0.1
	cacheWriteShare = 1.25
)

// ReadReply reads what a process of the given kind left behind. A nil Failure means that Reply is a whole answer.
//
// A whole envelope without is_error is an answer when the process exited with 0, and also when a signal or a timeout ended it afterwards:
// it is paid for. Cost is the agent's own figure, else tokens times price (nil: 0), the tokens counted as characters / 4 when the agent
// reports none. A failed attempt that printed nothing is counted as nothing.
func ReadReply(kind string, stdout []byte, exit Exit, stderr string, price *Price, promptChars int) (Reply, *Failure) {
	var reply Reply
	var failure *Failure
	switch kind {
	case KindJSON:
		reply, failure = readJSON(stdout, exit, stderr, price, promptChars)
	case KindText:
		reply, failure = readText(stdout, exit, stderr, price, promptChars)
	default:
		failure = &Failure{Category: ConfigMismatch, Message: fmt.Sprintf("reply kind %q is unknown; use %s or %s", kind, KindJSON, KindText), Permanent: true, ExitCode: exit.Code}
	}
	if failure != nil {
		failure.Diagnostics = diagnose(stderr, string(stdout))
	}
	return reply, failure
}

func readText(stdout []byte, exit Exit, stderr string, price *Price, promptChars int) (Reply, *Failure) {
	text := string(stdout)
	reply := guess(text, exit, price, promptChars)
	switch {
	case unfinished(exit):
		return reply, classify(exit, ended(exit), stderr+"\n"+short(text))
	case len(bytes.TrimSpace(stdout)) == 0:
		return reply, classify(exit, "agent exited with 0 and printed nothing", stderr).unless(OutputEmpty)
	}
	return reply, nil
}

func readJSON(stdout []byte, exit Exit, stderr string, price *Price, promptChars int) (Reply, *Failure) {
	e, err := parseEnvelope(stdout)
	if err != nil {
		return guess(string(stdout), exit, price, promptChars), unreadable(err, stdout, exit, stderr)
	}
	reply := e.reply(exit, price, promptChars)
	switch {
	case e.failed():
		exit.TimedOut, exit.Idle, exit.Overflow, exit.Killed = false, false, false, false // it answered before it was ended: the answer says why it failed
		return reply, classify(exit, fmt.Sprintf("agent reported an error (%s): %s", e.Subtype, clip(e.text(), 300)), stderr+"\n"+e.text())
	case exit.Code > 0 && !exit.TimedOut && !exit.Killed:
		return reply, classify(exit, ended(exit), stderr)
	case e.Result == nil:
		return reply, classify(exit, fmt.Sprintf("agent's answer holds no result (%s)", e.Subtype), stderr).unless(OutputEmpty)
	}
	return reply, nil
}

// unreadable says what is wrong with a reply that is no envelope.
func unreadable(err error, stdout []byte, exit Exit, stderr string) *Failure {
	switch {
	case unfinished(exit):
		return classify(exit, ended(exit), stderr+"\n"+short(string(stdout)))
	case len(bytes.TrimSpace(stdout)) == 0:
		return classify(exit, "agent exited with 0 and printed nothing", stderr).unless(OutputEmpty)
	}
	return classify(exit, err.Error(), stderr).unless(OutputTruncated)
}

// unless gives a failure without a better reason this category.
func (f *Failure) unless(category Category) *Failure {
	if f.Category == ExitNonzero && !f.Permanent {
		f.Category = category
	}
	return f
}

// short leaves out what is too long for an error message: half an answer may speak of anything.
func short(stdout string) string {
	if len(stdout) > 1000 {
		return ""
	}
	return stdout
}

func unfinished(exit Exit) bool {
	return exit.Code != 0 || exit.TimedOut || exit.Overflow || exit.Killed
}

func ended(exit Exit) string {
	if exit.Signal != "" {
		return "agent was ended by a signal: " + exit.Signal
	}
	return fmt.Sprintf("agent exited with code %d", exit.Code)
}

// reply takes the envelope's own figures, and estimates what it leaves out.
func (e *envelope) reply(exit Exit, price *Price, promptChars int) Reply {
	r := Reply{Text: e.text(), Model: e.model(), SessionID: e.SessionID, Subtype: e.Subtype, Turns: e.NumTurns}
	if e.Usage == nil {
		estimate := guess(r.Text, exit, price, promptChars)
		r.Tokens, r.CostUSD, r.Estimated = estimate.Tokens, estimate.CostUSD, true
	} else {
		r.Tokens = Tokens(*e.Usage)
		r.CostUSD, r.Estimated = cost(r.Tokens, price), e.CostUSD == nil
	}
	if e.CostUSD != nil && (e.Usage != nil || *e.CostUSD > 0) {
		r.CostUSD = *e.CostUSD
	}
	return r
}

// guess counts characters when the agent counted no tokens.
func guess(text string, exit Exit, price *Price, promptChars int) Reply {
	r := Reply{Text: text, Estimated: true}
	if text == "" && exit.Code != 0 {
		return r
	}
	r.Tokens = Tokens{Input: quarter(promptChars), Output: quarter(utf8.RuneCountInString(text))}
	r.CostUSD = cost(r.Tokens, price)
	return r
}

func quarter(chars int) int { return int(math.Round(float64(chars) / 4)) }

func cost(t Tokens, price *Price) float64 {
	if price == nil {
		return 0
	}
	input := float64(t.Input) + cacheReadShare*float64(t.CacheRead) + cacheWriteShare*float64(t.CacheWrite)
	return (input*price.Input + float64(t.Output)*price.Output) / 1e6
}
