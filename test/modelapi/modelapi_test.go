package modelapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// gemini asks a model every ten turns whether it repeats itself, and waits half a minute if the answer is no JSON.
func TestSideRequestForJSONGetsZeroValues(t *testing.T) {
	api := NewGemini()
	defer api.Close()
	answer, err := http.Post(api.URL+"/v1beta/models/gemini-3-flash:generateContent", "application/json", strings.NewReader(
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
	require.JSONEq(t, `{"why": "", "sure": 0, "all": [], "loop": false, "of": {}}`, got.Candidates[0].Content.Parts[0].Text)
	require.Zero(t, api.Log()[0].Turn, "it is not part of the conversation")
}
