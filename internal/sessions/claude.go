package sessions

import (
	"encoding/json"
	"strings"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/agent/limits"
	"github.com/passbook-run/passbook/run"
)

// claudeEntries reads what claude stores.
type claudeEntries struct {
	*Conversation
	calls    map[string]bool // of tools, without a result
	usage    *Usage
	messages map[string]adapter.ModelUsage // since the last total
	order    []string
}

type claudeRow struct {
	Type    string
	Side    bool   `json:"isSidechain"` // of a subagent
	Meta    bool   `json:"isMeta"`
	Summary bool   `json:"isCompactSummary"`
	At      string `json:"timestamp"`
	Dir     string `json:"cwd"`
	Message *struct {
		ID      string
		Model   string
		Stop    string `json:"stop_reason"`
		Content json.RawMessage
		Usage   *struct {
			Input      int64 `json:"input_tokens"`
			Output     int64 `json:"output_tokens"`
			CacheRead  int64 `json:"cache_read_input_tokens"`
			CacheWrite int64 `json:"cache_creation_input_tokens"`
		}
	}
	// of an error
	Failed bool            `json:"isApiErrorMessage"`
	Error  string          `json:"error"`
	Status int             `json:"apiErrorStatus"`
	Quota  json.RawMessage `json:"quotaLimits"`
	// of the total of a session
	USD     float64 `json:"totalCostUSD"`
	Unknown bool    `json:"hasUnknownModelCost"`
}

type claudeBlock struct {
	Type string
	Text string
	ID   string
	Use  string `json:"tool_use_id"`
}

func (e *claudeEntries) add(line []byte) bool {
	var row claudeRow
	if !decodes(line, &row) {
		return false
	}
	e.at(row.At)
	if e.Folder == "" {
		e.Folder = row.Dir
	}
	switch {
	case row.Type == "cost-state":
		e.USD, e.Unknown, e.order = max(0, row.USD), row.Unknown, nil
	case row.Message == nil || row.Meta:
	case row.Type == "assistant":
		e.used(&row)
		if !row.Side {
			e.assistant(&row)
		}
	case row.Type == "user" && !row.Side:
		e.user(&row)
	}
	return true
}

// used takes over what a message used. Its last entry counts.
func (e *claudeEntries) used(row *claudeRow) {
	m := row.Message
	if m.Usage == nil || row.Failed {
		return
	}
	if _, known := e.messages[m.ID]; !known {
		e.order = append(e.order, m.ID)
	}
	next := adapter.ModelUsage{Model: m.Model}
	next.Tokens = run.Tokens{Input: m.Usage.Input, Output: m.Usage.Output, CacheRead: m.Usage.CacheRead,
		CacheWrite: m.Usage.CacheWrite}
	e.messages[m.ID] = next
}

func (e *claudeEntries) assistant(row *claudeRow) {
	text, _ := e.blocks(row)
	e.addText(text, false)
	switch {
	case row.Failed:
		e.fails(limits.Report{Program: "claude", Code: row.Error, HTTP: row.Status, Event: row.Quota, Text: text})
	case row.Message.Stop == "tool_use":
		e.open()
	default:
		e.continues("")
	}
	if !row.Failed && len(e.calls) > 0 {
		e.open()
	}
}

// open takes over that an answer is not complete.
func (e *claudeEntries) open() {
	e.continues(run.EndedEarly)
	if len(e.calls) > 0 {
		e.continues(run.EndedInTool)
	}
}

func (e *claudeEntries) user(row *claudeRow) {
	text, results := e.blocks(row)
	switch text = strings.TrimSpace(text); {
	case strings.HasPrefix(text, "[Request interrupted by user"):
		e.continues(run.EndedByUser)
		clear(e.calls)
	case results:
		e.open()
	case text == "", strings.HasPrefix(text, "<"), strings.HasPrefix(text, "Caveat: "): // a command of the terminal
	default:
		e.addText(text, !row.Summary)
		clear(e.calls) // those before were given up
		e.open()
	}
}

// blocks returns the text of a message, and takes over the tools that it calls or answers.
func (e *claudeEntries) blocks(row *claudeRow) (text string, results bool) {
	var all []claudeBlock
	if json.Unmarshal(row.Message.Content, &text) == nil {
		return text, false
	}
	if !decodes(row.Message.Content, &all) {
		return "", false
	}
	for _, b := range all {
		switch b.Type {
		case "text":
			text += b.Text + "\n"
		case "tool_use":
			e.calls[b.ID] = true
		case "tool_result":
			delete(e.calls, b.Use)
			results = true
		}
	}
	return text, results
}

func (e *claudeEntries) end() {
	for _, id := range e.order {
		m := e.messages[id]
		e.usage.add(m.Model, m.Tokens)
	}
	e.Usage = e.usage.Models
}
