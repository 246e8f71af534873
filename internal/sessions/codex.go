package sessions

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/agent/limits"
	"github.com/passbook-run/passbook/run"
)

// codexEntries reads what codex stores.
type codexEntries struct {
	*Conversation
	calls  map[string]bool // of tools, without a result
	turn   bool            // an answer is not complete
	spoken bool            // there are events of messages: the items repeat them
	resets time.Time       // of the window that is used up
	usage  codexSum
}

type codexRow struct {
	At      string `json:"timestamp"`
	Type    string
	Payload struct {
		Type    string
		Dir     string `json:"cwd"`
		Message string
		Info    json.RawMessage `json:"codex_error_info"`
		Error   *struct {
			Message string
			Info    json.RawMessage `json:"codex_error_info"`
		}
		Call    string `json:"call_id"`
		Role    string
		Content []codexPart
		Item    struct {
			Type    string
			Content []codexPart
		}
		Limits *struct{ Primary, Secondary *codexWindow } `json:"rate_limits"`
	}
}

type codexPart struct{ Text string }

type codexWindow struct {
	Used   float64 `json:"used_percent"`
	Resets float64 `json:"resets_at"`
}

func (e *codexEntries) add(line []byte) bool {
	var row codexRow
	if !decodes(line, &row) {
		return false
	}
	e.at(row.At)
	e.usage.add(line)
	switch row.Type {
	case "session_meta":
		if e.Folder == "" {
			e.Folder = row.Payload.Dir
		}
	case "event_msg":
		e.event(&row)
	case "response_item":
		e.item(&row)
	}
	return true
}

func (e *codexEntries) event(row *codexRow) {
	p := &row.Payload
	switch p.Type {
	case "task_started", "turn_started":
		e.turn, e.resets = true, time.Time{}
		clear(e.calls)
		e.continues(run.EndedEarly)
	case "task_complete", "turn_complete":
		e.turn = false
		if p.Error != nil {
			e.failed(p.Error.Message, p.Error.Info)
		} else if e.Ended != run.EndedByError && e.Ended != run.EndedByLimit {
			e.continues("")
		}
	case "turn_aborted":
		e.turn = false
		e.continues(run.EndedByUser)
	case "error":
		e.failed(p.Message, p.Info)
	case "token_count":
		if p.Limits != nil {
			e.windows(p.Limits.Primary, p.Limits.Secondary)
		}
	case "user_message":
		e.spoke(p.Message, true)
	case "agent_message":
		e.spoke(p.Message, false)
	case "item_completed":
		if of := p.Item.Type; of == "UserMessage" || of == "AgentMessage" {
			e.spoke(texts(p.Item.Content), of == "UserMessage")
		}
	}
}

// windows takes over when the fullest window of the account resets.
func (e *codexEntries) windows(all ...*codexWindow) {
	const full = 100
	for _, w := range all {
		if w == nil || w.Used < full || w.Resets <= 0 {
			continue
		}
		if at := time.Unix(int64(w.Resets), 0).UTC(); at.After(e.resets) {
			e.resets = at
		}
	}
}

func (e *codexEntries) failed(message string, info json.RawMessage) {
	var code string
	if json.Unmarshal(info, &code) != nil {
		code = "" // an object with the status of the provider, which the message names too
	}
	e.fails(limits.Report{Program: "codex", Code: code, Text: message})
	e.addText(message, false)
}

func (e *codexEntries) item(row *codexRow) {
	switch p := &row.Payload; {
	case p.Type == "message" && !e.spoken && p.Role != "developer" && p.Role != "system":
		text := strings.TrimSpace(texts(p.Content))
		if !strings.HasPrefix(text, "<") && !strings.HasPrefix(text, "# AGENTS.md") {
			e.addText(text, p.Role == "user")
		}
	case p.Call != "" && strings.HasSuffix(p.Type, "_output"):
		delete(e.calls, p.Call)
	case p.Call != "" && strings.HasSuffix(p.Type, "_call"):
		e.calls[p.Call] = true
	}
}

func (e *codexEntries) spoke(text string, user bool) {
	e.spoken = true
	e.addText(text, user)
}

func texts(all []codexPart) string {
	var b strings.Builder
	for _, p := range all {
		b.WriteString(p.Text)
	}
	return b.String()
}

func (e *codexEntries) end() {
	switch {
	case e.turn && e.Ended == run.EndedEarly && len(e.calls) > 0:
		e.Ended = run.EndedInTool
	case e.Ended == run.EndedByLimit && e.Limit.Until.IsZero():
		e.Limit.Until = e.resets
	}
	e.Usage = e.usage.Models
}
