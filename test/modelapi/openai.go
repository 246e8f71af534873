package modelapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// openAI is the Responses API.
type openAI struct{}

func (openAI) read(r *http.Request, body []byte) (Request, bool) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/responses") {
		return Request{}, false
	}
	var raw struct {
		Model  string
		Stream bool
		Input  json.RawMessage
		Tools  []struct{ Type, Name string }
	}
	if json.Unmarshal(body, &raw) != nil {
		return Request{}, false
	}
	asked := Request{Key: bearer(r), Model: raw.Model, Stream: raw.Stream, Messages: rawList(raw.Input)}
	for _, t := range raw.Tools {
		name := t.Name
		if name == "" {
			name = t.Type
		}
		asked.Tools = append(asked.Tools, name)
	}
	for _, m := range asked.Messages {
		var item struct {
			Type   string
			Call   string `json:"call_id"`
			Output json.RawMessage
		}
		if json.Unmarshal(m, &item) == nil && strings.HasSuffix(item.Type, "_call_output") {
			asked.addResult(item.Call, item.Output)
		}
	}
	return asked, true
}

// other refuses WebSockets, which codex tries first: it then streams over HTTP at once.
func (openAI) other(w http.ResponseWriter, r *http.Request) bool {
	if r.Header.Get("Upgrade") == "" {
		return false
	}
	w.WriteHeader(http.StatusUpgradeRequired)
	return true
}

func (openAI) refusal(f Fault) (int, map[string]string, string) {
	body := func(kind, code, message string) string {
		return marshal(map[string]any{
			"error": map[string]any{"message": message, "type": kind, "param": nil, "code": code},
		})
	}
	header := map[string]string{}
	if f.After > 0 {
		header["Retry-After"] = strconv.Itoa(f.After)
	}
	switch f.Kind {
	case FaultUnauthorized:
		return 401, header, body("invalid_request_error", "invalid_api_key", "Incorrect API key provided: sk-test. "+
			"You can find your API key at https://platform.openai.com/account/api-keys.")
	case FaultRate:
		return 429, header, body("requests", "rate_limit_exceeded",
			"Rate limit reached for this model in organization org-test on requests per min (RPM): Limit 3, Used 3, "+
				"Requested 1. Please try again in 20s.")
	case FaultPlan:
		reset := time.Now().Add(time.Duration(f.After) * time.Second).Unix()
		return 429, nil, marshal(map[string]any{"error": map[string]any{
			"type": "usage_limit_reached", "message": "The usage limit has been reached", "plan_type": "plus",
			"resets_at": reset, "resets_in_seconds": f.After,
		}})
	case FaultOverload:
		return 503, header, body("server_error", "server_is_overloaded",
			"The server is currently overloaded with other requests. Please retry your request later.")
	case FaultCredit:
		return 429, header, body("insufficient_quota", "insufficient_quota", "You exceeded your current quota, please "+
			"check your plan and billing details.")
	}
	return 0, nil, ""
}

func (openAI) answer(e *exchange) {
	response := map[string]any{
		"id": id("resp", e.at+1), "object": "response", "status": "in_progress", "model": e.asked.Model, "output": []any{},
		"usage": nil, "error": nil, "incomplete_details": nil,
	}
	e.w.Header().Set("Content-Type", "text/event-stream")
	e.event("response.created", map[string]any{"type": "response.created", "response": response})
	if r := e.turn.Refusal; r != nil {
		response["status"], response["error"] = "failed", r.Failed
		e.event("response.failed", map[string]any{"type": "response.failed", "response": response})
		return
	}
	text := map[string]any{
		"type": "message", "role": "assistant", "id": id("msg", e.at+1), "status": "in_progress", "content": []any{},
	}
	e.event("response.output_item.added", map[string]any{
		"type": "response.output_item.added", "output_index": 0, "item": text,
	})
	for n, piece := range pieces(e.turn.Text) {
		if n == 1 && e.halfway() {
			if e.turn.Fault.Kind == FaultInStream {
				response["status"] = "failed"
				response["error"] = map[string]string{
					"code": "server_is_overloaded", "message": "Our servers are currently overloaded. Please try again later.",
				}
				e.event("response.failed", map[string]any{"type": "response.failed", "response": response})
			}
			return
		}
		e.event("response.output_text.delta", map[string]any{
			"type": "response.output_text.delta", "item_id": text["id"], "output_index": 0, "content_index": 0, "delta": piece,
		})
	}
	part := map[string]any{"type": "output_text", "text": e.turn.Text, "annotations": []any{}}
	text["status"], text["content"] = "completed", []any{part}
	output := []any{text}
	e.event("response.output_item.done", map[string]any{
		"type": "response.output_item.done", "output_index": 0, "item": text,
	})
	if e.turn.Tool != "" && e.turn.Fault.Kind != FaultOverlong {
		call := map[string]any{
			"type": "function_call", "id": id("fc", e.at+1), "call_id": id("call", e.at+1), "name": e.turn.Tool,
			"arguments": marshal(e.turn.Input), "status": "completed",
		}
		output = append(output, call)
		e.event("response.output_item.done", map[string]any{
			"type": "response.output_item.done", "output_index": 1, "item": call,
		})
	}
	u := e.turn.Usage
	input := u.Input + u.CacheRead + u.CacheWrite
	response["status"], response["output"] = "completed", output
	response["usage"] = map[string]any{
		"input_tokens":         input,
		"input_tokens_details": map[string]int{"cached_tokens": u.CacheRead, "cache_write_tokens": u.CacheWrite},
		"output_tokens":        u.Output, "output_tokens_details": map[string]int{"reasoning_tokens": 0},
		"total_tokens": input + u.Output,
	}
	kind := "response.completed"
	if e.turn.Fault.Kind == FaultOverlong {
		kind = "response.incomplete"
		response["status"], response["incomplete_details"] = "incomplete", map[string]string{"reason": "max_output_tokens"}
	}
	e.event(kind, map[string]any{"type": kind, "response": response})
	e.report(u)
}
