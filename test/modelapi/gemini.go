package modelapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// gemini is generateContent and streamGenerateContent.
type gemini struct{}

func (gemini) read(r *http.Request, body []byte) (Request, bool) {
	model, method, ok := strings.Cut(r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:], ":")
	if !ok || r.Method != http.MethodPost || !strings.HasSuffix(strings.ToLower(method), "generatecontent") {
		return Request{}, false
	}
	var raw struct {
		Contents         []json.RawMessage
		Tools            []struct{ FunctionDeclarations []struct{ Name string } }
		GenerationConfig struct{ ResponseJSONSchema json.RawMessage }
	}
	if json.Unmarshal(body, &raw) != nil {
		return Request{}, false
	}
	asked := Request{
		Key: r.Header.Get("X-Goog-Api-Key"), Model: model, Stream: strings.HasPrefix(method, "stream"),
		Messages: raw.Contents, Schema: raw.GenerationConfig.ResponseJSONSchema,
	}
	for _, t := range raw.Tools {
		for _, f := range t.FunctionDeclarations {
			asked.Tools = append(asked.Tools, f.Name)
		}
	}
	asked.Side = len(asked.Tools) == 0
	for _, c := range raw.Contents {
		var content struct {
			Parts []struct{ FunctionResponse json.RawMessage }
		}
		if json.Unmarshal(c, &content) != nil {
			continue
		}
		for _, p := range content.Parts {
			var response struct{ ID string }
			if p.FunctionResponse != nil && json.Unmarshal(p.FunctionResponse, &response) == nil {
				asked.addResult(response.ID, p.FunctionResponse)
			}
		}
	}
	return asked, true
}

func (gemini) other(w http.ResponseWriter, r *http.Request) bool {
	if !strings.HasSuffix(r.URL.Path, ":countTokens") {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	_, err := w.Write([]byte(`{"totalTokens":10}`))
	return err == nil
}

func (gemini) refusal(f Fault) (int, map[string]string, string) {
	details := []any{}
	if f.After > 0 {
		details = append(details, map[string]string{
			"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": fmt.Sprintf("%ds", f.After),
		})
	}
	body := func(code int, status, message string) string {
		return marshal(map[string]any{
			"error": map[string]any{"code": code, "message": message, "status": status, "details": details},
		})
	}
	switch f.Kind {
	case FaultUnauthorized:
		details = append(details, map[string]string{
			"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com",
		})
		return 401, nil, body(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.")
	case FaultRate:
		return 429, nil, body(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).")
	case FaultPlan:
		details = append(details, map[string]any{
			"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []any{map[string]string{
				"quotaMetric":  "generativelanguage.googleapis.com/generate_content_free_tier_requests",
				"quotaId":      "GenerateRequestsPerDayPerProjectPerModel-FreeTier",
				"quotaValue":   "250",
				"quotaSubject": "project",
			}},
		})
		return 429, nil, body(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and "+
			"billing details.")
	case FaultOverload:
		return 503, nil, body(503, "UNAVAILABLE", "The model is overloaded. Please try again later.")
	case FaultCredit:
		return 429, nil, body(429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted. Please go to AI Studio "+
			"to manage your project and billing.")
	}
	return 0, nil, ""
}

func (gemini) answer(e *exchange) {
	u := e.turn.Usage
	u.CacheWrite = 0
	chunk := func(part map[string]any, finish string, output int) map[string]any {
		candidate := map[string]any{"index": 0, "content": map[string]any{"role": "model", "parts": []any{part}}}
		if finish != "" {
			candidate["finishReason"] = finish
		}
		t := Tokens{Input: u.Input, CacheRead: u.CacheRead, Output: output}
		e.report(t)
		return map[string]any{
			"candidates": []any{candidate}, "modelVersion": e.asked.Model, "responseId": id("response", e.at+1),
			"usageMetadata": map[string]int{
				"promptTokenCount": t.Input + t.CacheRead, "cachedContentTokenCount": t.CacheRead,
				"candidatesTokenCount": t.Output, "totalTokenCount": t.Input + t.CacheRead + t.Output,
			},
		}
	}
	finish := "STOP"
	if e.turn.Fault.Kind == FaultOverlong {
		finish = "MAX_TOKENS"
	}
	if !e.asked.Stream {
		if e.halfway() {
			return
		}
		e.w.Header().Set("Content-Type", "application/json")
		e.write(marshal(chunk(map[string]any{"text": e.turn.Text}, finish, u.Output)))
		return
	}
	e.w.Header().Set("Content-Type", "text/event-stream")
	halves := pieces(e.turn.Text)
	e.event("", chunk(map[string]any{"text": halves[0]}, "", u.Output/2))
	if e.halfway() {
		if e.turn.Fault.Kind == FaultInStream {
			_, _, body := gemini{}.refusal(Fault{Kind: FaultOverload})
			e.write("data: " + body + "\n\n")
		}
		return
	}
	if e.turn.Tool == "" || finish != "STOP" {
		e.event("", chunk(map[string]any{"text": halves[1]}, finish, u.Output))
		return
	}
	e.event("", chunk(map[string]any{"text": halves[1]}, "", u.Output))
	e.event("", chunk(map[string]any{
		"functionCall": map[string]any{"name": e.turn.Tool, "args": e.turn.Input},
	}, finish, u.Output))
}
