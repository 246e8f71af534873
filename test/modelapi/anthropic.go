package modelapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// anthropic is the Messages API.
type anthropic struct{}

func (anthropic) read(r *http.Request, body []byte) (Request, bool) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/v1/messages") {
		return Request{}, false
	}
	var raw struct {
		Model    string            `json:"model"`
		Stream   bool              `json:"stream"`
		Messages []json.RawMessage `json:"messages"`
		Tools    []struct{ Name string }
	}
	if json.Unmarshal(body, &raw) != nil {
		return Request{}, false
	}
	asked := Request{Key: r.Header.Get("X-Api-Key"), Model: raw.Model, Stream: raw.Stream, Messages: raw.Messages}
	if asked.Key == "" {
		asked.Key = bearer(r)
	}
	for _, t := range raw.Tools {
		asked.Tools = append(asked.Tools, t.Name)
	}
	asked.Side = len(asked.Tools) == 0
	for _, m := range raw.Messages {
		var message struct{ Content json.RawMessage }
		if json.Unmarshal(m, &message) != nil {
			continue
		}
		for _, b := range rawList(message.Content) {
			var block struct {
				Type    string
				Use     string `json:"tool_use_id"`
				Content json.RawMessage
			}
			if json.Unmarshal(b, &block) == nil && block.Type == "tool_result" {
				asked.addResult(block.Use, block.Content)
			}
		}
	}
	return asked, true
}

func (anthropic) other(w http.ResponseWriter, r *http.Request) bool {
	if !strings.HasSuffix(r.URL.Path, "/messages/count_tokens") {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	_, err := w.Write([]byte(`{"input_tokens":10}`))
	return err == nil
}

func (anthropic) refusal(f Fault) (int, map[string]string, string) {
	body := func(kind, message string) string {
		return marshal(map[string]any{
			"type": "error", "error": map[string]string{"type": kind, "message": message}, "request_id": "req_test",
		})
	}
	header := map[string]string{}
	if f.After > 0 {
		header["Retry-After"] = strconv.Itoa(f.After)
	}
	switch f.Kind {
	case FaultUnauthorized:
		return 401, header, body("authentication_error", "invalid x-api-key")
	case FaultRate:
		return 429, header, body("rate_limit_error",
			"This request would exceed your account's rate limit. Please try again later.")
	case FaultPlan:
		reset := strconv.FormatInt(time.Now().Add(time.Duration(f.After)*time.Second).Unix(), 10)
		header["Anthropic-Ratelimit-Unified-Status"] = "rejected"
		header["Anthropic-Ratelimit-Unified-Reset"] = reset
		header["Anthropic-Ratelimit-Unified-Representative-Claim"] = "five_hour"
		header["Anthropic-Ratelimit-Unified-5h-Status"] = "rejected"
		header["Anthropic-Ratelimit-Unified-5h-Reset"] = reset
		header["Anthropic-Ratelimit-Unified-5h-Utilization"] = "1"
		return 429, header, body("rate_limit_error", "This request would exceed your account's rate limit.")
	case FaultOverload:
		return 529, header, body("overloaded_error", "Overloaded")
	case FaultCredit:
		return 400, header, body("invalid_request_error", "Your credit balance is too low to access the Anthropic API. "+
			"Please go to Plans & Billing to upgrade or purchase credits.")
	}
	return 0, nil, ""
}

func (anthropic) answer(e *exchange) {
	u := e.turn.Usage
	usage := map[string]int{
		"input_tokens": u.Input, "output_tokens": 1, "cache_read_input_tokens": u.CacheRead,
		"cache_creation_input_tokens": u.CacheWrite,
	}
	message := map[string]any{
		"id": id("msg", e.at+1), "type": "message", "role": "assistant", "model": e.asked.Model, "stop_sequence": nil,
		"stop_reason": nil, "usage": usage, "content": []any{},
	}
	stop := "end_turn"
	blocks := []map[string]any{{"type": "text", "text": e.turn.Text}}
	switch {
	case e.turn.Fault.Kind == FaultOverlong:
		stop = "max_tokens"
	case e.turn.Tool != "":
		stop = "tool_use"
		blocks = append(blocks, map[string]any{
			"type": "tool_use", "id": id("toolu", e.at+1), "name": e.turn.Tool, "input": e.turn.Input,
		})
	}
	if !e.asked.Stream {
		if e.halfway() {
			return
		}
		usage["output_tokens"], message["stop_reason"], message["content"] = u.Output, stop, blocks
		e.w.Header().Set("Content-Type", "application/json")
		e.report(u)
		e.write(marshal(message))
		return
	}
	e.w.Header().Set("Content-Type", "text/event-stream")
	e.event("message_start", map[string]any{"type": "message_start", "message": message})
	e.report(Tokens{Input: u.Input, Output: 1, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite})
	for i, block := range blocks {
		if streamBlock(e, i, block) {
			return
		}
	}
	usage["output_tokens"] = u.Output
	e.event("message_delta", map[string]any{
		"type": "message_delta", "delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}, "usage": usage,
	})
	e.report(u)
	e.event("message_stop", map[string]any{"type": "message_stop"})
}

// streamBlock sends a block. It reports whether the answer ends in it.
func streamBlock(e *exchange, i int, block map[string]any) bool {
	begin, kind, member := map[string]any{"type": "text", "text": ""}, "text_delta", "text"
	text := e.turn.Text
	if block["type"] == "tool_use" {
		begin = map[string]any{"type": "tool_use", "id": block["id"], "name": block["name"], "input": map[string]any{}}
		kind, member, text = "input_json_delta", "partial_json", marshal(block["input"])
	}
	e.event("content_block_start", map[string]any{"type": "content_block_start", "index": i, "content_block": begin})
	for n, piece := range pieces(text) {
		if n == 1 && i == 0 && e.halfway() {
			if e.turn.Fault.Kind == FaultInStream {
				e.event("error", map[string]any{
					"type": "error", "error": map[string]string{"type": "overloaded_error", "message": "Overloaded"},
				})
			}
			return true
		}
		e.event("content_block_delta", map[string]any{
			"type": "content_block_delta", "index": i, "delta": map[string]any{"type": kind, member: piece},
		})
	}
	e.event("content_block_stop", map[string]any{"type": "content_block_stop", "index": i})
	return e.gone
}
