package adapter

import (
	"encoding/json"

	"github.com/passbook-run/passbook/run"
)

// Kind is what a frame reports.
type Kind string

// Kinds of frames, and the fields that they have.
const (
	KindSession Kind = "session" // ID of the session, Model
	KindText    Kind = "text"    // Text that follows the earlier ones; ID of the model request, if known
	KindTool    Kind = "tool"    // ID of the tool call, Name, State; when it starts, Text and Digest of its input
	KindUsage   Kind = "usage"   // Usage of the model request ID and its Model; with Total, of the whole call and Models
	KindLimit   Kind = "limit"   // Limit
	KindWarning Kind = "warning" // Text; Code, if the program has one
	KindResult  Kind = "result"  // Status and Text: the answer, or the error; Code and Turns, if reported
)

// State is what became of a tool call.
type State string

// States of tool calls.
const (
	ToolStarted State = "started"
	ToolOK      State = "ok"
	ToolFailed  State = "failed"
)

// Status is how a call ended.
type Status string

// Statuses of results. The zero value means that the output has no result.
const (
	StatusComplete  Status = "complete"  // Text is the answer
	StatusEmpty     Status = "empty"     // no error, and no answer
	StatusError     Status = "error"     // Text is the error
	StatusTruncated Status = "truncated" // the answer exceeded a limit of the model
	StatusMaxTurns  Status = "max_turns" // the program stopped after its maximum number of turns
	StatusBudget    Status = "budget"    // the program stopped at its maximum cost
)

// Frame is one report of a program. Texts are valid UTF-8.
type Frame struct {
	Kind   Kind   `json:"kind"`
	ID     string `json:"id,omitempty"`
	Parent string `json:"parent,omitempty"` // the tool call of the subagent that this is about; empty: the agent itself
	Model  string `json:"model,omitempty"`
	Name   string `json:"name,omitempty"`
	State  State  `json:"state,omitempty"`
	Status Status `json:"status,omitempty"`
	Code   string `json:"code,omitempty"`        // the program's own word for a result or warning
	HTTP   int    `json:"http_status,omitempty"` // of the provider's refusal
	Lost   bool   `json:"lost,omitempty"`        // a model request was cut off: no total contains its usage
	Turns  int    `json:"turns,omitempty"`
	// of a session: a subscription or a gateway pays, and costs are those at list price
	ListPrice bool   `json:"list_price,omitempty"`
	Digest    string `json:"digest,omitempty"` // SHA-256 of the input of a tool that starts, or of the result of one that ends, as printed
	Text      string `json:"text,omitempty"`

	Usage  *Usage          `json:"usage,omitempty"`
	Total  bool            `json:"total,omitempty"` // replaces all earlier usage
	Models []ModelUsage    `json:"models,omitempty"`
	Limit  json.RawMessage `json:"limit,omitempty"` // the provider's own fields, compact
}

// Usage is what a provider counted. Input does not include cached tokens; Output includes reasoning.
type Usage struct {
	run.Tokens
	USD *float64 `json:"usd,omitempty"` // nil: not reported
}

// ModelUsage is the usage of one model.
type ModelUsage struct {
	Model string `json:"model"`
	Usage
}

// MaxUsage is the largest number that is believed.
const MaxUsage = 1e15

// bounded returns the usage with numbers that can be added. An agent may print any: less than nothing is nothing.
func (u Usage) bounded() Usage {
	for _, n := range []*int64{&u.Input, &u.Output, &u.CacheRead, &u.CacheWrite} {
		*n = min(max(0, *n), MaxUsage)
	}
	if u.USD != nil {
		usd := min(max(0, *u.USD), MaxUsage)
		u.USD = &usd
	}
	return u
}

// add adds an usage.
func (u *Usage) add(v Usage) {
	u.Input += v.Input
	u.Output += v.Output
	u.CacheRead += v.CacheRead
	u.CacheWrite += v.CacheWrite
	if v.USD != nil {
		sum := *v.USD
		if u.USD != nil {
			sum += *u.USD
		}
		u.USD = &sum
	}
}
