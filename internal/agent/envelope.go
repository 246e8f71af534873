package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// envelope is the output of `claude -p --output-format json`. Nil means that the field is missing.
type envelope struct {
	Type       string                `json:"type"`
	Subtype    string                `json:"subtype"`
	IsError    *bool                 `json:"is_error"`
	Result     *string               `json:"result"`
	SessionID  string                `json:"session_id"`
	NumTurns   int                   `json:"num_turns"`
	CostUSD    *float64              `json:"total_cost_usd"`
	Usage      *usage                `json:"usage"`
	ModelUsage map[string]modelUsage `json:"modelUsage"`
}

type usage struct {
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
}

type modelUsage struct {
	OutputTokens int     `json:"outputTokens"`
	CostUSD      float64 `json:"costUSD"`
}

// parseEnvelope accepts exactly one JSON object that answers a call, and white space around it.
func parseEnvelope(stdout []byte) (*envelope, error) {
	decoder := json.NewDecoder(bytes.NewReader(stdout))
	var e *envelope
	if err := decoder.Decode(&e); err != nil {
		return nil, fmt.Errorf("the reply is not a whole JSON object (%d bytes): %w", len(stdout), err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the reply continues after its JSON object (%d bytes, object ends at %d)", len(stdout),
			decoder.InputOffset())
	}
	if e == nil || (e.Result == nil && e.IsError == nil) {
		return nil, errors.New("the reply is JSON, but no answer of an agent: it has neither result nor is_error")
	}
	return e, nil
}

// Complete reports whether stdout is a complete answer, of success or error. Plain text has no recognizable end,
// so it never is.
func Complete(kind string, stdout []byte) bool {
	if kind != KindJSON {
		return false
	}
	_, err := parseEnvelope(stdout)
	return err == nil
}

// model returns the model that did most of the work.
func (e *envelope) model() string {
	var names []string
	for name := range e.ModelUsage {
		names = append(names, name)
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return slices.MaxFunc(names, func(a, b string) int {
		x, y := e.ModelUsage[a], e.ModelUsage[b]
		return cmp.Or(cmp.Compare(x.CostUSD, y.CostUSD), cmp.Compare(x.OutputTokens, y.OutputTokens))
	})
}

func (e *envelope) failed() bool { return e.IsError != nil && *e.IsError }

func (e *envelope) text() string {
	if e.Result == nil {
		return ""
	}
	return *e.Result
}
