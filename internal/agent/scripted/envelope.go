package scripted

import (
	"encoding/json"
	"math"
	"unicode/utf8"
)

// model is the name it goes by, with the prices of requirement 002: USD per million tokens.
const (
	model       = "scripted"
	priceInput  = 15.0
	priceOutput = 75.0
)

// envelope has the fields of claude's JSON output. Times follow from the number of tokens: there is no clock here.
type envelope struct {
	Type        string               `json:"type"`
	Subtype     string               `json:"subtype"`
	IsError     bool                 `json:"is_error"`
	DurationMS  int                  `json:"duration_ms"`
	NumTurns    int                  `json:"num_turns"`
	Result      string               `json:"result"`
	SessionID   string               `json:"session_id"`
	CostUSD     float64              `json:"total_cost_usd"`
	Usage       usage                `json:"usage"`
	ModelUsage  map[string]modelUsed `json:"modelUsage"`
	Permissions []string             `json:"permission_denials"`
}

type usage struct {
	Input      int `json:"input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	Output     int `json:"output_tokens"`
}

type modelUsed struct {
	Input   int     `json:"inputTokens"`
	Output  int     `json:"outputTokens"`
	CostUSD float64 `json:"costUSD"`
}

func newEnvelope(prompt, text string) envelope {
	in, out := tokens(prompt), tokens(text)
	cost := (float64(in)*priceInput + float64(out)*priceOutput) / 1e6
	return envelope{
		Type: "result", Subtype: "success", DurationMS: 10 * out, NumTurns: 1, Result: text,
		SessionID: digest(prompt)[:32],
		CostUSD:   cost, Usage: usage{Input: in, Output: out}, ModelUsage: map[string]modelUsed{model: {in, out, cost}},
		Permissions: []string{},
	}
}

func (e envelope) bytes() ([]byte, error) { return json.Marshal(e) }

func tokens(text string) int { return int(math.Round(float64(utf8.RuneCountInString(text)) / 4)) }
