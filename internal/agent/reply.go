package agent

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/agent/limits"
	"github.com/passbook-run/passbook/internal/price"
	"github.com/passbook-run/passbook/run"
)

// Reply is an agent's answer and its cost. For a failed attempt it contains what could be read: failed calls are
// paid for too.
type Reply struct {
	Text      string
	Model     string
	SessionID string
	Code      string // the program's word for the result: "success", "error_max_turns"
	Turns     int
	Tokens    run.Tokens
	CostUSD   float64
	Known     run.CostKnown // whether CostUSD is all that the call cost
	Estimated bool          // tokens or cost are estimated and not reported by the agent
	ListPrice bool          // a subscription or a gateway pays

	Prices []run.ModelPrice // that CostUSD was computed with, of the first models

	Full time.Time // when the window of the account resets, which this call has used up; zero: it has not
}

// Prices are used if a reply contains no cost.
type Prices struct {
	Own   *price.Price // the definition's, of all models
	Model string       // of the command, if the reply names none
	Known price.List
	Usage *regexp.Regexp // finds the usage in plain text, by the names of its groups; may be nil
}

func (p Prices) find(model string) (price.Price, bool) {
	if p.Own != nil {
		return *p.Own, true
	}
	return p.Known.Find(cmp.Or(model, p.Model))
}

// output is what a process left.
type output struct {
	adapter adapter.Adapter
	read    adapter.Summary
	stdout  []byte
	stderr  string // its end
	exit    Exit
}

// ReadReply reads the output of a process with the adapter of a name. A nil Failure means that Reply is a complete
// answer.
//
// A result without an error is an answer if the process exited with 0, or was ended by a signal or timeout
// afterwards: it is paid for. Cost is the agent's own figure, else tokens times price, with characters / 4 if the
// agent reports no tokens. A failed attempt without output costs nothing.
func ReadReply(kind string, stdout []byte, exit Exit, stderr string, prices Prices, promptChars int) (Reply, *Failure) {
	a, ok := adapter.Find(kind)
	if !ok {
		message := fmt.Sprintf("reply kind %q is unknown; use one of: %s", kind, strings.Join(adapter.Names(), ", "))
		return Reply{}, NewFailure(run.CategoryConfigMismatch, message, exit.Code)
	}
	o := output{adapter: a, stdout: stdout, stderr: ending(stderr), exit: exit}
	if a.Ends {
		o.read = a.Read(stdout)
	}
	if o.read.Status == "" && a.Stderr {
		if second := a.Read([]byte(o.stderr)); second.Status == adapter.StatusError {
			o.read = second
		}
	}
	reply, failure := o.reply(prices, promptChars), o.failure()
	reply.Full = limits.Full(o.read.Limit)
	if failure != nil && failure.Category == run.CategoryAgentExit {
		failure.Message += lastWords(o.stderr, o.printed(), failure.Message)
	}
	if failure != nil {
		failure.Diagnostics = diagnose(o.stderr, string(stdout[max(0, len(stdout)-maxExplained):]))
	}
	return reply, failure
}

// Complete reports whether stdout is a complete answer, of success or error. Plain text has no recognizable end,
// so it never is.
func Complete(kind string, stdout []byte) bool {
	a, ok := adapter.Find(kind)
	if !ok || !a.Ends {
		return false
	}
	s := a.Read(stdout)
	return s.Status != ""
}

// maxExplained is the number of bytes at the end of a text in which the reason of a failure is searched.
const maxExplained = 256 << 10

// ending returns the end of a text.
func ending(text string) string { return text[max(0, len(text)-maxExplained):] }

// failure returns why the output is not an answer; nil: it is one.
func (o *output) failure() *Failure {
	exit, empty := o.exit, len(bytes.TrimSpace(o.stdout)) == 0
	switch status := o.read.Status; {
	case status == adapter.StatusBudget:
		return NewFailure(run.CategoryBudgetExceeded, "the agent stopped at its maximum cost: "+lastChars(o.read.Error, 300),
			exit.Code)
	case status == adapter.StatusTruncated:
		return refusal(limits.Limit{Kind: limits.Output}, o.reported(), exit.Code)
	case status == adapter.StatusError, status == adapter.StatusMaxTurns && o.read.Error != "":
		// it answered before it was ended: the answer explains the failure
		exit.TimedOut, exit.Idle, exit.Overflow, exit.Killed = false, false, false, false
		return classify(exit, o.reported(), o.report())
	case status == "" && (exit.TimedOut || exit.Idle) && o.report().Waited(string(o.stdout)):
		message := fmt.Sprintf("agent was ended after %s", exit.Duration.Round(1e6))
		return refusal(limits.Limit{Kind: limits.Unreachable}, message, exit.Code)
	case status == "" && unfinished(exit):
		return classify(exit, exitMessage(exit), o.report())
	case status == "" && empty:
		return classify(exit, "agent exited with 0 and printed nothing", o.report()).withCategory(run.CategoryOutputEmpty)
	case !o.adapter.Ends:
		return nil
	case status == "":
		message := fmt.Sprintf("agent's output (%d bytes) is not in the format %s: %s", len(o.stdout), o.adapter.Name,
			cmp.Or(lastChars(o.read.Problem, 300), "it has no result"))
		return classify(exit, message, o.report()).withCategory(run.CategoryOutputTruncated)
	case exit.Code > 0 && !exit.TimedOut && !exit.Killed:
		return classify(exit, exitMessage(exit), o.report())
	case status != adapter.StatusComplete:
		return classify(exit, fmt.Sprintf("agent's answer holds no result (%s)", o.read.Code),
			o.report()).withCategory(run.CategoryOutputEmpty)
	}
	return nil
}

// report returns what the program reported about a failure: never the text of an answer.
func (o *output) report() limits.Report {
	report := limits.Report{
		Program: o.adapter.Program, HTTP: o.read.HTTP, Stderr: o.stderr, Exit: o.exit.Code,
		Event: o.read.Limit, Text: ending(o.read.Error), Printed: o.printed(),
	}
	if o.read.Code != "success" {
		report.Code = o.read.Code
	}
	return report
}

// printed returns what the program printed to standard output instead of a result.
func (o *output) printed() string {
	switch {
	case !o.adapter.Ends:
		return shortText(string(o.stdout))
	case o.read.Status == "":
		return o.read.Problem
	}
	return ""
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

// reported describes the error that a result reports.
func (o *output) reported() string {
	message := "agent reported an error"
	if code := o.read.Code; code != "" && code != "success" {
		message += " (" + code + ")"
	}
	if o.exit.Code > 0 {
		message += fmt.Sprintf(" and exited with code %d", o.exit.Code)
	}
	return message + ": " + lastChars(o.read.Error, 300)
}

// lastWords returns the last lines that an agent printed, to follow a message that does not have them.
func lastWords(stderr, printed, message string) string {
	for _, text := range []string{stderr, printed} {
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

// reply uses the program's figures and estimates missing ones.
func (o *output) reply(prices Prices, promptChars int) Reply {
	r := Reply{Text: o.read.Text(), Model: cmp.Or(o.read.Model(), prices.Model), SessionID: o.read.Session,
		Code: o.read.Code, Turns: o.read.Turns, ListPrice: o.read.ListPrice}
	printed := r.Text
	if o.read.Status == "" && (!o.adapter.Ends || !o.adapter.Stream) {
		printed = string(o.stdout)
	}
	if !o.adapter.Ends {
		r.Text = printed
	}
	u, known := o.usage(prices.Usage)
	r.Tokens, r.Known = u.Tokens, known
	models := o.read.Models()
	if prices.Usage != nil && known != run.CostUnknown {
		models = []adapter.ModelUsage{{Model: r.Model, Usage: u}}
	}
	answered := o.read.Status == "" || o.read.Status == adapter.StatusComplete
	if u.Tokens == (run.Tokens{}) && answered && (known == run.CostUnknown || u.USD != nil && *u.USD > 0) {
		r.Tokens, r.Estimated = estimate(printed, o.exit, promptChars), true
		models = []adapter.ModelUsage{{Model: r.Model, Usage: adapter.Usage{Tokens: r.Tokens}}}
	}
	if u.USD != nil {
		r.CostUSD = *u.USD
		return r
	}
	r.Estimated = true
	if known == run.CostUnknown && r.Tokens != (run.Tokens{}) && o.failure() == nil {
		r.Known = run.CostExact // as exact as the price and the number of characters
	}
	usd, used, all := prices.cost(models)
	if !all {
		r.Known = run.CostUnknown
	}
	r.CostUSD, r.Prices = usd, used
	return r
}

// cost returns what tokens cost, with the prices of the first models, and whether every price is known.
func (p Prices) cost(models []adapter.ModelUsage) (usd float64, used []run.ModelPrice, all bool) {
	all = true
	for _, m := range models {
		own, ok := p.find(m.Model)
		if !ok {
			all = false
		} else if len(used) < maxPrices {
			used = append(used, run.ModelPrice{Model: m.Model, Input: own.Input, Output: own.Output,
				CacheRead: own.CacheRead, CacheWrite: own.CacheWrite})
		}
		usd += own.Cost(m.Tokens)
	}
	return usd, used, all
}

// Spend returns what a call has cost at least whose program did not report it: tokens, and their price.
func (p Prices) Spend(models []adapter.ModelUsage) run.Spend {
	usd, used, all := p.cost(models)
	s := run.Spend{USD: run.Cents(usd), Estimated: true, Known: run.CostAtLeast, Prices: used}
	if !all {
		s.Known = run.CostUnknown
	}
	for _, m := range models {
		s.Model = cmp.Or(s.Model, m.Model, p.Model)
		s.Tokens = run.Spend{Tokens: s.Tokens}.Plus(run.Spend{Tokens: m.Tokens}).Tokens
	}
	return s
}

// usage returns what the program reported, or what an expression finds in plain text.
func (o *output) usage(find *regexp.Regexp) (adapter.Usage, run.CostKnown) {
	if find == nil || o.adapter.Ends {
		return o.read.Usage()
	}
	var u adapter.Usage
	text := ending(string(o.stdout)) + "\n" + o.stderr
	all := find.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return u, run.CostUnknown
	}
	found, last := false, all[len(all)-1]
	for i, name := range find.SubexpNames() {
		value, err := strconv.ParseFloat(strings.NewReplacer(",", "", "_", "", " ", "").Replace(last[i]), 64)
		if name == "" || err != nil || !(value >= 0 && value < adapter.MaxUsage) {
			continue
		}
		found = true
		switch name {
		case "input":
			u.Input = int64(value)
		case "output":
			u.Output = int64(value)
		case "cache_read":
			u.CacheRead = int64(value)
		case "cache_write":
			u.CacheWrite = int64(value)
		case "usd":
			u.USD = &value
		}
	}
	switch {
	case !found:
		return u, run.CostUnknown
	case unfinished(o.exit):
		return u, run.CostAtLeast
	}
	return u, run.CostExact
}

// maxPrices is the number of prices that a call records.
const maxPrices = 8

// estimate estimates tokens from characters.
func estimate(text string, exit Exit, promptChars int) run.Tokens {
	if text == "" && exit.Code != 0 {
		return run.Tokens{}
	}
	return run.Tokens{Input: estimateTokens(promptChars), Output: estimateTokens(utf8.RuneCountInString(text))}
}

func estimateTokens(chars int) int64 { return int64(math.Round(float64(chars) / 4)) }
