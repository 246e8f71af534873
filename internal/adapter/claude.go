package adapter

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

// claudeEvents turns the events of claude into frames.
type claudeEvents struct {
	session string
	tools   toolNames
	current map[string]*claudeMessage   // by parent
	carried map[string]claudeModelUsage // what the totals contain of earlier calls of the session; nil: no result yet
}

// claudeMessage is the model request that an agent or subagent is making.
type claudeMessage struct {
	id, model string
	usage     Usage
	sent      *Usage // in the last frame
	streamed  bool   // its text arrives in stream events
}

// newClaudeJSON reads the output of `claude -p --output-format json`: the result, or with --verbose all events.
func newClaudeJSON() Parser {
	var c claudeEvents
	return newDocument(c.frames)
}

// newClaudeStream reads the output of `claude -p --output-format stream-json --verbose`, with or without
// --include-partial-messages.
func newClaudeStream() Parser {
	var c claudeEvents
	return newLines(func(raw []byte) ([]Frame, bool) { return c.frames(raw, false) })
}

type claudeEvent struct {
	Type      string           `json:"type"`
	Subtype   string           `json:"subtype"`
	SessionID string           `json:"session_id"`
	KeySource string           `json:"apiKeySource"` // none: a login or a token
	Model     string           `json:"model"`
	Parent    string           `json:"parent_tool_use_id"`
	Message   *claudeContent   `json:"message"`
	Stream    *claudeRawEvent  `json:"event"`
	Error     claudeErrorField `json:"error"`
	Limit     json.RawMessage  `json:"rate_limit_info"`

	claudeResult
	claudeRetry
	claudeFailure
}

// claudeFailure is how a request failed, in an error message and in a result.
type claudeFailure struct {
	APIStatus int    `json:"api_error_status"`
	APIType   string `json:"api_error_type"` // the provider's
	APIError  string `json:"api_error"`      // claude's
}

// Words of api_error.
const (
	claudeTruncated = "max_output_tokens"
	claudeCut       = "connection_failed"
)

type claudeResult struct {
	IsError    *bool                       `json:"is_error"`
	Result     *string                     `json:"result"`
	Errors     []string                    `json:"errors"`
	NumTurns   int                         `json:"num_turns"`
	CostUSD    *float64                    `json:"total_cost_usd"`
	Usage      *claudeUsage                `json:"usage"`
	ModelUsage map[string]claudeModelUsage `json:"modelUsage"`
	SinceLast  map[string]claudeModelUsage `json:"model_usage_since_last_result"`
	Denials    []struct {
		Tool  string          `json:"tool_name"`
		Input json.RawMessage `json:"tool_input"`
	} `json:"permission_denials"`
}

// claudeRetry is a request that claude repeats.
type claudeRetry struct {
	Attempt int     `json:"attempt"`
	Max     int     `json:"max_retries"`
	DelayMS float64 `json:"retry_delay_ms"`
	Status  int     `json:"error_status"`
}

type claudeContent struct {
	ID      string       `json:"id"`
	Model   string       `json:"model"`
	Content claudeBlocks `json:"content"`
	Usage   *claudeUsage `json:"usage"`
}

// claudeBlocks are the blocks of a message; of a text instead, none.
type claudeBlocks []claudeBlock

type claudeBlock struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	ToolUse string          `json:"tool_use_id"`
	Content json.RawMessage `json:"content"`
	IsError bool            `json:"is_error"`
}

func (b *claudeBlocks) UnmarshalJSON(raw []byte) error {
	if raw[0] != '[' {
		return nil
	}
	return json.Unmarshal(raw, (*[]claudeBlock)(b))
}

// claudeErrorField is a word; other types of values are left out.
type claudeErrorField string

func (e *claudeErrorField) UnmarshalJSON(raw []byte) error {
	if raw[0] != '"' {
		return nil
	}
	return json.Unmarshal(raw, (*string)(e))
}

// claudeRawEvent is an event of the provider.
type claudeRawEvent struct {
	Type    string         `json:"type"`
	Message *claudeContent `json:"message"`
	Delta   claudeBlock    `json:"delta"`
	Usage   *claudeUsage   `json:"usage"`
}

type claudeUsage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

func (u *claudeUsage) usage() Usage {
	var out Usage
	if u != nil {
		out.Input, out.Output, out.CacheRead, out.CacheWrite = u.Input, u.Output, u.CacheRead, u.CacheWrite
	}
	return out
}

type claudeModelUsage struct {
	Input      int64    `json:"inputTokens"`
	Output     int64    `json:"outputTokens"`
	CacheRead  int64    `json:"cacheReadInputTokens"`
	CacheWrite int64    `json:"cacheCreationInputTokens"`
	USD        *float64 `json:"costUSD"`
}

// frames reads one event. alone means that it is not part of a stream: it may be a result without a type. It returns
// false if it cannot read the event.
func (c *claudeEvents) frames(raw []byte, alone bool) ([]Frame, bool) {
	var e claudeEvent
	ok, exact := decode(raw, &e)
	if !ok {
		return nil, false
	}
	switch {
	case e.Type == "result", alone && e.Type == "" && (e.Result != nil || e.IsError != nil):
		if !exact {
			return nil, false
		}
		return c.result(e), true
	case e.Type == "system":
		return c.system(e), true
	case e.Type == "rate_limit_event" && len(e.Limit) > 0:
		return []Frame{{Kind: KindLimit, Limit: compact(e.Limit)}}, true
	case e.Type == "stream_event" && e.Stream != nil:
		return c.stream(e), true
	case e.Type == "assistant" && e.Message != nil:
		return c.assistant(e), true
	case e.Type == "user" && e.Message != nil:
		return c.user(e), true
	}
	return nil, true
}

func (c *claudeEvents) system(e claudeEvent) []Frame {
	switch e.Subtype {
	case "init":
		c.session = e.SessionID
		return []Frame{{Kind: KindSession, ID: e.SessionID, Model: e.Model, ListPrice: e.KeySource == "none"}}
	case "api_retry":
		f := Frame{Kind: KindWarning, Code: string(e.Error), HTTP: e.Status, Lost: e.Status == 0}
		f.Text = fmt.Sprintf("request failed, retry %d of %d in %.1f s", e.Attempt, e.Max, e.DelayMS/1000)
		return []Frame{f}
	}
	return nil
}

// message returns the current model request of an agent or subagent.
func (c *claudeEvents) message(parent string, m *claudeContent) *claudeMessage {
	if c.current == nil {
		c.current = map[string]*claudeMessage{}
	}
	now := c.current[parent]
	if now == nil || now.id != m.ID {
		if len(c.current) >= maxOpen {
			clear(c.current)
		}
		now = &claudeMessage{id: m.ID, model: m.Model, usage: m.Usage.usage()}
		c.current[parent] = now
	}
	return now
}

func (c *claudeEvents) assistant(e claudeEvent) []Frame {
	if e.Error != "" { // not from the model: claude explains a failed request
		return []Frame{{Kind: KindWarning, Parent: e.Parent, Code: cmp.Or(e.APIError, string(e.Error)), HTTP: e.APIStatus,
			Text: e.Message.text()}}
	}
	now := c.message(e.Parent, e.Message)
	var out []Frame
	for _, b := range e.Message.Content {
		switch {
		case b.Type == "text" && b.Text != "" && !now.streamed:
			out = append(out, Frame{Kind: KindText, ID: now.id, Parent: e.Parent, Text: b.Text})
		case b.Type == "tool_use" && !c.tools.started(b.ID):
			out = append(out, c.tools.start(e.Parent, b.ID, b.Name, b.Input))
		}
	}
	if e.Message.Usage != nil {
		out = append(out, now.frames(e.Parent)...)
	}
	return out
}

// frames reports the usage of a model request if it changed.
func (m *claudeMessage) frames(parent string) []Frame {
	u := m.usage
	if m.sent != nil && m.sent.Tokens == u.Tokens {
		return nil
	}
	m.sent = &u
	return []Frame{{Kind: KindUsage, ID: m.id, Parent: parent, Model: m.model, Usage: &u}}
}

func (m *claudeContent) text() string {
	var texts []string
	for _, b := range m.Content {
		if b.Text != "" {
			texts = append(texts, b.Text)
		}
	}
	return strings.Join(texts, "\n")
}

func (c *claudeEvents) user(e claudeEvent) []Frame {
	var out []Frame
	for _, b := range e.Message.Content {
		if b.Type == "tool_result" {
			out = append(out, c.tools.end(e.Parent, b.ToolUse, b.IsError, b.Content))
		}
	}
	return out
}

func (c *claudeEvents) stream(e claudeEvent) []Frame {
	ev := e.Stream
	if ev.Type == "message_start" && ev.Message != nil {
		now := c.message(e.Parent, ev.Message)
		now.streamed = true
		return now.frames(e.Parent)
	}
	now := c.current[e.Parent]
	switch {
	case now == nil:
		return nil
	case ev.Type == "content_block_delta" && ev.Delta.Type == "text_delta" && ev.Delta.Text != "":
		return []Frame{{Kind: KindText, ID: now.id, Parent: e.Parent, Text: ev.Delta.Text}}
	case ev.Type == "message_delta" && ev.Usage != nil:
		u := ev.Usage.usage()
		now.usage.Output = max(now.usage.Output, u.Output)
		now.usage.Input = max(now.usage.Input, u.Input)
		now.usage.CacheRead = max(now.usage.CacheRead, u.CacheRead)
		now.usage.CacheWrite = max(now.usage.CacheWrite, u.CacheWrite)
		return now.frames(e.Parent)
	}
	return nil
}

// outputMaximum is how claude reports an answer that exceeds CLAUDE_CODE_MAX_OUTPUT_TOKENS.
var outputMaximum = lazyregexp.New(`(?i)exceeded the \d+ output token maximum`)

func (c *claudeEvents) result(e claudeEvent) []Frame {
	var out []Frame
	if e.SessionID != "" && e.SessionID != c.session {
		out = append(out, Frame{Kind: KindSession, ID: e.SessionID})
	}
	for _, d := range e.Denials {
		out = append(out, Frame{Kind: KindWarning, Text: "permission denied: " + d.Tool + " " + inputText(d.Input)})
	}
	c.subtractCarried(&e)
	if total, ok := e.total(); ok {
		out = append(out, total)
	}
	r := Frame{Kind: KindResult, Status: StatusComplete, Code: e.Subtype, Turns: e.NumTurns, HTTP: e.APIStatus}
	if e.Result != nil {
		r.Text = *e.Result
	}
	switch {
	case e.Subtype == "error_max_turns":
		r.Status = StatusMaxTurns
	case e.Subtype == "error_max_budget_usd":
		r.Status = StatusBudget
	case e.IsError != nil && *e.IsError, strings.HasPrefix(e.Subtype, "error"):
		r.Status = StatusError
	case e.Result == nil:
		r.Status = StatusEmpty
	}
	if r.Status == StatusError || r.Status == StatusMaxTurns || r.Status == StatusBudget {
		if r.Text == "" {
			r.Text = strings.Join(e.Errors, "\n")
		}
		if e.Subtype == "success" { // claude's word for an error of a request
			r.Code = cmp.Or(e.APIError, e.APIType, e.Subtype)
		}
		r.Lost = e.APIError == claudeCut
		if e.APIError == claudeTruncated || outputMaximum.MatchString(r.Text) {
			r.Status = StatusTruncated
		}
	}
	return append(out, r)
}

// subtractCarried removes what the totals contain of earlier calls of a session that is continued: what the first
// result has more than it reports of this call. Versions that do not report that carry nothing.
func (c *claudeEvents) subtractCarried(e *claudeEvent) {
	if c.carried == nil {
		c.carried = map[string]claudeModelUsage{}
		for model, m := range e.ModelUsage {
			if e.SinceLast != nil {
				c.carried[model] = m.minus(e.SinceLast[model])
			}
		}
	}
	for model, before := range c.carried {
		if e.CostUSD != nil && before.USD != nil {
			usd := max(0, *e.CostUSD-*before.USD)
			e.CostUSD = &usd
		}
		m, ok := e.ModelUsage[model]
		if rest := m.minus(before); ok {
			e.ModelUsage[model] = rest
			if rest.Input+rest.Output+rest.CacheRead+rest.CacheWrite == 0 {
				delete(e.ModelUsage, model)
			}
		}
	}
}

func (m claudeModelUsage) minus(o claudeModelUsage) claudeModelUsage {
	m.Input, m.Output = max(0, m.Input-o.Input), max(0, m.Output-o.Output)
	m.CacheRead, m.CacheWrite = max(0, m.CacheRead-o.CacheRead), max(0, m.CacheWrite-o.CacheWrite)
	if m.USD != nil && o.USD != nil {
		usd := max(0, *m.USD-*o.USD)
		m.USD = &usd
	}
	return m
}

// total is the usage of the whole call. usage lacks subagents and small models, modelUsage has all.
func (e *claudeEvent) total() (Frame, bool) {
	if e.Usage == nil && (e.CostUSD == nil || len(e.ModelUsage) == 0 && *e.CostUSD == 0) {
		return Frame{}, false
	}
	f := Frame{Kind: KindUsage, Total: true}
	var all Usage
	for model, m := range e.ModelUsage {
		row := ModelUsage{Model: model}
		row.Input, row.Output, row.CacheRead, row.CacheWrite = m.Input, m.Output, m.CacheRead, m.CacheWrite
		row.USD = m.USD
		all.add(row.Usage)
		f.Models = append(f.Models, row)
	}
	slices.SortFunc(f.Models, func(a, b ModelUsage) int { return strings.Compare(a.Model, b.Model) })
	u := e.Usage.usage()
	u.Input, u.Output = max(u.Input, all.Input), max(u.Output, all.Output)
	u.CacheRead, u.CacheWrite = max(u.CacheRead, all.CacheRead), max(u.CacheWrite, all.CacheWrite)
	u.USD = e.CostUSD
	f.Usage = &u
	if n := len(f.Models); n > 0 { // tokens that no model has are of the one that did most
		most := &f.Models[0]
		for i := range f.Models {
			if f.Models[i].Output > most.Output {
				most = &f.Models[i]
			}
		}
		most.Input, most.Output = most.Input+u.Input-all.Input, most.Output+u.Output-all.Output
		most.CacheRead += u.CacheRead - all.CacheRead
		most.CacheWrite += u.CacheWrite - all.CacheWrite
	}
	return f, true
}
