package modelapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// gemini asks a model every ten turns whether it repeats itself, and waits half a minute if the answer is not JSON.
func TestSideRequestForJSONGetsZeroValues(t *testing.T) {
	api := NewGemini()
	defer api.Close()
	url := api.URL + "/v1beta/models/gemini-3-flash:generateContent"
	answer, err := http.Post(url, "application/json", strings.NewReader(
		`{"contents": [{"role": "user", "parts": [{"text": "Is it a loop?"}]}], "generationConfig": {"responseJsonSchema":
		{"type": "object", "properties": {"why": {"type": "string"}, "sure": {"type": "number"}, "all": {"type": "array"},
		"loop": {"type": "boolean"}, "of": {"type": "object"}}}}}`))
	require.NoError(t, err)
	defer func() { require.NoError(t, answer.Body.Close()) }()
	var got struct {
		Candidates []struct {
			Content struct{ Parts []struct{ Text string } }
		}
	}
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&got))
	text := got.Candidates[0].Content.Parts[0].Text
	require.JSONEq(t, `{"why": "", "sure": 0, "all": [], "loop": false, "of": {}}`, text)
	require.Zero(t, api.Log()[0].Turn, "it is not part of the conversation")
}

// gemini sends each result twice in a session that it continues.
func TestResultsOfAToolCallCountOnce(t *testing.T) {
	for name, row := range map[string]struct {
		start func(...Turn) *API
		path  string
		body  string
	}{
		"anthropic": {NewAnthropic, "/v1/messages", `{"tools": [{"name": "Bash"}], "messages": [{"role": "user", "content": [
			{"type": "tool_result", "tool_use_id": "a", "content": "1"}, {"type": "tool_result", "tool_use_id": "a",
			"content": "1"}, {"type": "tool_result", "tool_use_id": "b", "content": "1"}]}]}`},
		"openai": {NewOpenAI, "/v1/responses", `{"tools": [{"type": "shell"}], "input": [
			{"type": "function_call_output", "call_id": "a", "output": "1"},
			{"type": "function_call_output", "call_id": "a", "output": "1"},
			{"type": "function_call_output", "call_id": "b", "output": "1"}]}`},
		"gemini": {NewGemini, "/v1beta/models/gemini-2.5-pro:generateContent", `{"tools": [{"functionDeclarations":
			[{"name": "shell"}]}], "contents": [{"role": "user", "parts": [
			{"functionResponse": {"id": "a", "response": {}}}, {"functionResponse": {"id": "a", "response": {}}},
			{"functionResponse": {"id": "b", "response": {}}}]}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			api := row.start()
			defer api.Close()
			answer, err := http.Post(api.URL+row.path, "application/json", strings.NewReader(row.body))
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			require.Equal(t, 2, api.Log()[0].Results)
		})
	}
}
