// Package modelapi is a model API on loopback for tests of real agent programs: Anthropic Messages, with streaming and
// tool use. It answers from a script and keeps what it was asked. It is no model.
package modelapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
)

// Turn is one answer of the model: text, and the tool that it calls; without a tool the agent is done.
type Turn struct {
	Text  string
	Tool  string
	Input any
}

// Block is a part of a message.
type Block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text,omitempty"`
	Content json.RawMessage `json:"content,omitempty"` // of a tool_result
	IsError bool            `json:"is_error,omitempty"`
}

// Message is one message of a request. Its content is a text or blocks.
type Message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// Request is what an agent asked.
type Request struct {
	Key      string // of the header x-api-key
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []Message
	Tools    []struct{ Name string }
}

// Results returns the results of tools in the last message, as JSON.
func (r Request) Results() (all []Block) {
	var blocks []Block
	if len(r.Messages) == 0 || json.Unmarshal(r.Messages[len(r.Messages)-1].Content, &blocks) != nil {
		return nil
	}
	return slices.DeleteFunc(blocks, func(b Block) bool { return b.Type != "tool_result" })
}

// Anthropic is a server of the Messages API.
type Anthropic struct {
	*httptest.Server

	mu    sync.Mutex
	turns []Turn
	asked []Request
	other []string
}

// NewAnthropic starts a server that answers requests with tools by these turns, in order. A request without tools, such
// as one for a title, gets a short text.
func NewAnthropic(turns ...Turn) *Anthropic {
	a := &Anthropic{turns: turns}
	a.Server = httptest.NewServer(http.HandlerFunc(a.serve))
	return a
}

// Asked returns the requests with tools so far, and the paths of all other requests.
func (a *Anthropic) Asked() (requests []Request, other []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.asked), slices.Clone(a.other)
}

func (a *Anthropic) serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/messages/count_tokens"):
		w.Header().Set("Content-Type", "application/json")
		write(w, `{"input_tokens":10}`)
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/v1/messages"):
		a.message(w, r)
	default:
		a.mu.Lock()
		a.other = append(a.other, r.Method+" "+r.URL.Path)
		a.mu.Unlock()
		http.NotFound(w, r)
	}
}

func (a *Anthropic) message(w http.ResponseWriter, r *http.Request) {
	asked := Request{Key: r.Header.Get("X-Api-Key")}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	turn := a.next(asked)
	content := []map[string]any{{"type": "text", "text": turn.Text}}
	stop := "end_turn"
	if turn.Tool != "" {
		stop = "tool_use"
		content = append(content, map[string]any{
			"type": "tool_use", "id": fmt.Sprintf("toolu_%d", len(asked.Messages)), "name": turn.Tool, "input": turn.Input,
		})
	}
	message := map[string]any{
		"id": "msg_1", "type": "message", "role": "assistant", "model": asked.Model, "stop_sequence": nil,
		"usage": map[string]int{"input_tokens": 10, "output_tokens": 5},
	}
	if asked.Stream {
		w.Header().Set("Content-Type", "text/event-stream")
		stream(w, message, content, stop)
		return
	}
	message["content"], message["stop_reason"] = content, stop
	w.Header().Set("Content-Type", "application/json")
	if json.NewEncoder(w).Encode(message) != nil {
		return // the agent is gone
	}
}

func (a *Anthropic) next(asked Request) Turn {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(asked.Tools) == 0 {
		return Turn{Text: "A title"}
	}
	a.asked = append(a.asked, asked)
	if len(a.asked) > len(a.turns) {
		return Turn{Text: "Nothing is left to do."}
	}
	return a.turns[len(a.asked)-1]
}

// write sends a text to an agent, which may be gone.
func write(w io.Writer, text string) {
	if _, err := io.WriteString(w, text); err != nil {
		return
	}
}

// stream sends a message as server-sent events, each block in one piece.
func stream(w http.ResponseWriter, message map[string]any, content []map[string]any, stop string) {
	send := func(kind string, fields map[string]any) {
		fields["type"] = kind
		data, err := json.Marshal(fields)
		if err != nil {
			panic(err) // plain data always marshals
		}
		write(w, fmt.Sprintf("event: %s\ndata: %s\n\n", kind, data))
	}
	message["content"], message["stop_reason"] = []any{}, nil
	send("message_start", map[string]any{"message": message})
	for i, block := range content {
		begin, delta := map[string]any{"type": "text", "text": ""}, map[string]any{
			"type": "text_delta", "text": block["text"],
		}
		if block["type"] == "tool_use" {
			input, err := json.Marshal(block["input"])
			if err != nil {
				panic(err) // as above
			}
			begin = map[string]any{"type": "tool_use", "id": block["id"], "name": block["name"], "input": map[string]any{}}
			delta = map[string]any{"type": "input_json_delta", "partial_json": string(input)}
		}
		send("content_block_start", map[string]any{"index": i, "content_block": begin})
		send("content_block_delta", map[string]any{"index": i, "delta": delta})
		send("content_block_stop", map[string]any{"index": i})
	}
	send("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}, "usage": map[string]int{"output_tokens": 5},
	})
	send("message_stop", map[string]any{})
}
