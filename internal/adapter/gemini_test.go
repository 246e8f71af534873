package adapter

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

const (
	geminiInit    = `{"type":"init","timestamp":"x","session_id":"s-1","model":"pro"}`
	geminiPrompt  = `{"type":"message","role":"user","content":"Do it."}`
	geminiFirst   = `{"type":"message","role":"assistant","content":"I look.","delta":true}`
	geminiTool    = `{"type":"tool_use","tool_name":"read_file","tool_id":"t-1","parameters":{"file_path":"a.go"}}`
	geminiToolBad = `{"type":"tool_result","tool_id":"t-1","status":"error","error":{"type":"x","message":"y"}}`
	geminiHello   = `{"type":"message","role":"assistant","content":"hel","delta":true}` + "\n" +
		`{"type":"message","role":"assistant","content":"lo","delta":true}`
	geminiStats = `"stats":{"total_tokens":42,"models":{"pro":{"total_tokens":42,"input_tokens":30,"output_tokens":5,` +
		`"cached":20,"input":10}}}`
	geminiEnd = `{"type":"result","status":"success",` + geminiStats + `}`
)

func TestGeminiStream(t *testing.T) {
	answered := want{status: StatusComplete, text: "hello", session: "s-1", model: "pro", known: run.CostExact,
		tokens: run.Tokens{Input: 10, Output: 12, CacheRead: 20}} // thoughts are in the total only
	whole := lineOf(geminiInit, geminiPrompt, geminiFirst, geminiTool, geminiToolBad, geminiHello, geminiEnd)
	failed := want{status: StatusError, code: "unknown", text: "[API Error: terminated]", err: "[API Error: terminated]",
		session: "s-1", model: "pro", known: run.CostAtLeast, tokens: answered.tokens}
	refused := failed
	refused.known, refused.tokens = run.CostUnknown, run.Tokens{}
	testCases(t, GeminiStream, []outputCase{
		{"success", whole, answered},
		{"text around", "YOLO {\n" + whole + "bye\n", warned(answered, 2)},
		{"ended before its end", lineOf(geminiInit, geminiHello),
			want{text: "hello", session: "s-1", model: "pro", known: run.CostUnknown}},
		{"error", lineOf(geminiInit, geminiFirst, `{"type":"result","status":"error","error":{"type":"unknown",`+
			`"message":"[API Error: terminated]"},`+geminiStats+`}`), failed},
		{"refused", lineOf(geminiInit, `{"type":"result","status":"error","error":{"type":"unknown",`+
			`"message":"[API Error: terminated]"},"stats":{"models":{"pro":{"total_tokens":0}}}}`), refused},
		{"error event", lineOf(geminiInit, `{"type":"error","severity":"warning","message":"loop"}`,
			`{"type":"error","severity":"error","message":"no finish reason"}`, `{"type":"result","status":"error"}`), want{
			status: StatusError, text: "no finish reason", err: "no finish reason", session: "s-1", model: "pro",
			known: run.CostUnknown, warned: 2,
		}},
		{"wrong types", lineOf(`{"type":"result","status":7}`, `{"type":"message","role":1,"content":2}`),
			want{known: run.CostUnknown, warned: 1}},
	})
	testPrefixes(t, GeminiStream, whole)

	_, frames := readIn(find(t, GeminiStream), lineOf(geminiTool, geminiToolBad), chunkSize)
	require.Len(t, ended(frames), 1)
	require.Equal(t, []Frame{
		{Kind: KindTool, ID: "t-1", Name: "read_file", State: ToolStarted, Text: "a.go", Digest: frames[0].Digest},
		{Kind: KindTool, ID: "t-1", Name: "read_file", State: ToolFailed},
	}, frames)
}

func TestGeminiJSON(t *testing.T) {
	const whole = `{
  "session_id": "s-1",
  "response": "hello",
  "stats": {"models": {
    "flash": {"tokens": {"prompt": 4, "candidates": 1, "cached": 0, "thoughts": 0, "tool": 0}},
    "pro": {"tokens": {"prompt": 30, "candidates": 5, "cached": 20, "thoughts": 7, "tool": 3}}
  }}
}`
	answered := want{status: StatusComplete, text: "hello", session: "s-1", model: "pro", known: run.CostExact,
		tokens: run.Tokens{Input: 17, Output: 13, CacheRead: 20}}
	testCases(t, GeminiJSON, []outputCase{
		{"success", whole + "\n", answered},
		{"text before", "Loaded cached credentials.\n" + whole, warned(answered, 1)},
		{"warnings", `{"response":"hello","warnings":["Loop detected"]}`,
			want{status: StatusComplete, text: "hello", known: run.CostUnknown, warned: 1}},
		{"error", `{"session_id":"s-1","error":{"type":"Error","message":"quota","code":429}}`, want{
			status: StatusError, code: "Error", text: "quota", err: "quota", session: "s-1", known: run.CostUnknown,
		}},
		{"truncated", `{"response":"","error":{"type":"INVALID_STREAM","message":` +
			`"Model response was truncated because it exceeded the token limit. Try using /compress."}}`, want{
			status: StatusTruncated, code: "INVALID_STREAM", known: run.CostUnknown,
			text: "Model response was truncated because it exceeded the token limit. Try using /compress.",
			err:  "Model response was truncated because it exceeded the token limit. Try using /compress.",
		}},
		{"nothing", "", want{known: run.CostUnknown, warned: 1}},
		{"other JSON", "{}", want{known: run.CostUnknown, warned: 1}},
		{"wrong types", `{"response":7}`, want{known: run.CostUnknown, warned: 2}},
	})
	testPrefixes(t, GeminiJSON, whole)
}

func TestGeminiSessionIsContinued(t *testing.T) {
	for command, resumed := range map[string]string{
		"gemini -o stream-json": "gemini -o stream-json --resume s-1",
		"gemini -r latest":      "",
		"sh gemini":             "",
	} {
		argv, ok := find(t, GeminiStream).Resume(strings.Fields(command), "s-1")
		require.Equal(t, resumed != "", ok, command)
		require.Equal(t, resumed, strings.Join(argv, " "))
	}
}
