package adapter

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// lineOf returns JSON in one line.
func lineOf(events ...string) string { return strings.Join(events, "\n") + "\n" }

const (
	claudeInit    = `{"type":"system","subtype":"init","session_id":"s-1","model":"large"}`
	claudePartial = `{"type":"assistant","message":{"id":"m-1","model":"large","content":[{"type":"text","text":"I ` +
		`look."}],` +
		`"usage":{"input_tokens":5,"output_tokens":1,"cache_read_input_tokens":7}},"parent_tool_use_id":null}`
	claudeToolUse = `{"type":"assistant","message":{"id":"m-1","model":"large","content":[{"type":"tool_use","id":"t-1",` +
		`"name":"Bash","input":{"command":"ls\n-l","description":"List"}}],` +
		`"usage":{"input_tokens":5,"output_tokens":1,"cache_read_input_tokens":7}}}`
	claudeToolOK = `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t-1","content":"429"}]}}`
	claudeStart  = `{"type":"stream_event","event":{"type":"message_start","message":{"id":"m-1","model":"large",` +
		`"usage":{"input_tokens":5,"output_tokens":1,"cache_read_input_tokens":7}}},"parent_tool_use_id":null}`
	claudeDelta = `{"type":"stream_event","event":{"type":"content_block_delta",` +
		`"delta":{"type":"text_delta","text":"I look."}}}`
	claudeEnd = `{"type":"stream_event","event":{"type":"message_delta","delta":{"stop_reason":"tool_use"},` +
		`"usage":{"output_tokens":30}}}`
	claudeSub = `{"type":"assistant","message":{"id":"m-2","model":"small","content":[{"type":"text","text":"Sub."}],` +
		`"usage":{"input_tokens":3,"output_tokens":2}},"parent_tool_use_id":"t-1"}`
)

func TestClaudeStream(t *testing.T) {
	soFar := want{text: "I look.", session: "s-1", model: "large", known: run.CostAtLeast,
		tokens: run.Tokens{Input: 5, Output: 1, CacheRead: 7}}
	final := soFar
	final.tokens.Output = 30
	testCases(t, ClaudeStream, []outputCase{
		{"success", lineOf(claudeInit, claudePartial, claudeToolUse, claudeToolOK, claudeAnswer), claudeAnswered},
		{"partial messages", lineOf(claudeInit, claudeStart, claudeDelta, claudePartial, claudeEnd, claudeAnswer),
			claudeAnswered},
		{"garbage", lineOf("npm WARN {", claudeInit, `{"type":`, "\x1b[1m", claudeAnswer, "bye"), warned(claudeAnswered, 4)},
		{"array", "[" + claudeAnswer + "]\n", want{known: run.CostUnknown, warned: 1}},
		{"no request reported", lineOf(claudeInit), want{session: "s-1", model: "large", known: run.CostUnknown}},
		{"ended after a request began", lineOf(claudeInit, claudePartial, claudeToolUse), soFar},
		{"ended while it answered", lineOf(claudeInit, claudeStart, claudeDelta), soFar},
		{"ended after a request", lineOf(claudeInit, claudeStart, claudeDelta, claudePartial, claudeEnd), final},
		{"usage of the start after that of the end", lineOf(claudeInit, claudeStart, claudeDelta, claudeEnd, claudePartial),
			final},
		{"a subagent", lineOf(claudeInit, claudeStart, claudeDelta, claudeEnd, claudeSub), want{
			text: "I look.", session: "s-1", model: "large", known: run.CostAtLeast,
			tokens: run.Tokens{Input: 8, Output: 32, CacheRead: 7},
		}},
		{"continues after a result", lineOf(claudeInit, claudeAnswer, claudePartial), want{
			text: "I look.", session: "s-1", model: "large", usd: 0.5, known: run.CostAtLeast,
			tokens: run.Tokens{Input: 15, Output: 46, CacheRead: 27, CacheWrite: 16},
		}},
		{"a second result", lineOf(claudeInit, claudeAnswer, claudePartial, claudeAnswer), claudeAnswered},
		{"no result", lineOf(claudeInit, `{"type":"result","subtype":"success","is_error":false}`), want{
			status: StatusEmpty, code: "success", session: "s-1", model: "large", known: run.CostUnknown,
		}},
		{"wrong types", lineOf(`{"type":"assistant","message":"x"}`, `{"type":7}`, `{"type":"result","result":7}`),
			want{known: run.CostUnknown, warned: 1}},
		{"request retried", lineOf(claudeInit, `{"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,`+
			`"retry_delay_ms":512.5,"error_status":529,"error":"overloaded"}`), want{
			session: "s-1", model: "large", known: run.CostUnknown, warned: 1,
			err: "request failed, retry 1 of 10 in 0.5 s",
		}},
	})
	testPrefixes(t, ClaudeStream, lineOf(claudeInit, claudeStart, claudeDelta, claudePartial, claudeEnd, claudeToolUse,
		claudeToolOK, claudeAnswer))
}

func TestClaudeFrames(t *testing.T) {
	_, frames := readIn(find(t, ClaudeStream), lineOf(claudeInit, claudeStart, claudeDelta, claudePartial, claudeToolUse,
		claudeToolUse, claudeEnd, claudeSub, claudeToolOK,
		`{"type":"rate_limit_event","rate_limit_info":{"status": "rejected", "resetsAt":1795400000}}`,
		`{"type":"user","message":{"content":"text"}}`,
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t-9","is_error":true}]}}`), chunkSize)
	start, end := Usage{Tokens: run.Tokens{Input: 5, Output: 1, CacheRead: 7}}, Usage{Tokens: run.Tokens{Input: 5,
		Output: 30, CacheRead: 7}}
	require.NotEmpty(t, ended(frames))
	require.Equal(t, []Frame{
		{Kind: KindSession, ID: "s-1", Model: "large"},
		{Kind: KindUsage, ID: "m-1", Model: "large", Usage: &start},
		{Kind: KindText, ID: "m-1", Text: "I look."},
		{Kind: KindTool, ID: "t-1", Name: "Bash", State: ToolStarted, Text: "ls -l",
			Digest: "928287fd8b8ecb06f2597d1c7fb1d75f2f281cae964677ec41ead904cfd76390"},
		{Kind: KindUsage, ID: "m-1", Model: "large", Usage: &end},
		{Kind: KindText, ID: "m-2", Parent: "t-1", Text: "Sub."},
		{Kind: KindUsage, ID: "m-2", Parent: "t-1", Model: "small",
			Usage: &Usage{Tokens: run.Tokens{Input: 3, Output: 2}}},
		{Kind: KindTool, ID: "t-1", Name: "Bash", State: ToolOK},
		{Kind: KindLimit, Limit: []byte(`{"status":"rejected","resetsAt":1795400000}`)},
		{Kind: KindTool, ID: "t-9", State: ToolFailed},
	}, frames)
}

// TestClaudeTotalsOfContinuedSession: the totals of a session that is continued contain its earlier calls.
func TestClaudeTotalsOfContinuedSession(t *testing.T) {
	row := func(in, out int, usd float64) string {
		return fmt.Sprintf(`{"m":{"inputTokens":%d,"outputTokens":%d,"costUSD":%g}}`, in, out, usd)
	}
	result := func(usd float64, total, since string) string {
		return fmt.Sprintf(`{"type":"result","subtype":"success","is_error":false,"result":"x","total_cost_usd":%g,`+
			`"usage":{"input_tokens":7,"output_tokens":3},"modelUsage":%s%s}`+"\n", usd, total, since)
	}
	const since = `,"model_usage_since_last_result":`
	for name, c := range map[string]struct {
		stdout string
		tokens run.Tokens
		usd    float64
	}{
		"continued": {result(0.5, row(107, 53, 0.5), since+row(7, 3, 0.1)), run.Tokens{Input: 7, Output: 3}, 0.1},
		"continued, two results": {result(0.5, row(107, 53, 0.5), since+row(7, 3, 0.1)) +
			result(0.75, row(110, 55, 0.75), since+row(3, 2, 0.25)), run.Tokens{Input: 10, Output: 5}, 0.35},
		"new":                   {result(0.1, row(7, 3, 0.1), since+row(7, 3, 0.1)), run.Tokens{Input: 7, Output: 3}, 0.1},
		"of an earlier version": {result(0.1, row(7, 3, 0.1), ""), run.Tokens{Input: 7, Output: 3}, 0.1},
		"no totals at the end": {result(0.5, row(107, 53, 0.5), since+row(7, 3, 0.1)) + result(0.5, "null", ""),
			run.Tokens{Input: 7, Output: 3}, 0.1},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := Find(ClaudeStream)
			s := a.Read([]byte(c.stdout))
			got, _ := s.Usage()
			require.Equal(t, c.tokens, got.Tokens)
			require.InDelta(t, c.usd, *got.USD, 1e-9)
		})
	}
}

// TestClaudeNamesWhoPays: without an API key it is a subscription or a gateway.
func TestClaudeNamesWhoPays(t *testing.T) {
	for source, want := range map[string]bool{"none": true, "ANTHROPIC_API_KEY": false, "": false} {
		s, _ := readIn(find(t, ClaudeStream),
			lineOf(`{"type":"system","subtype":"init","session_id":"s","apiKeySource":"`+source+`"}`, claudeAnswer), chunkSize)
		require.Equal(t, want, s.ListPrice, source)
	}
}

// ended removes the digests of the results of tools from frames, and returns them.
func ended(frames []Frame) (results []string) {
	for i, f := range frames {
		if f.Kind == KindTool && f.State != ToolStarted {
			results, frames[i].Digest = append(results, f.Digest), ""
		}
	}
	return results
}

// Two calls with other results have other digests.
func TestResultsOfTools(t *testing.T) {
	result := func(id, content string) string {
		return `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"` + id + `","content":` + content + `}]}}`
	}
	of := func(kind string, lines ...string) []string {
		_, frames := readIn(find(t, kind), lineOf(lines...), chunkSize)
		return ended(frames)
	}
	claude := of(ClaudeStream, result("a", `"1 passed"`), result("b", `"1 passed"`), result("c", `"2 passed"`))
	item := `{"type":"item.completed","item":{"id":"i","type":"command_execution","command":"make","aggregated_output":"`
	codex := of(CodexJSONL, item+`1 passed"}}`, item+`1 passed"}}`, item+`2 passed"}}`)
	tool := `{"type":"tool_result","tool_id":"t","status":"success","output":"`
	gemini := of(GeminiStream, tool+`1 passed"}`, tool+`1 passed"}`, tool+`2 passed"}`)
	for name, results := range map[string][]string{"claude": claude, "codex": codex, "gemini": gemini} {
		require.Len(t, results, 3, name)
		require.Equal(t, results[0], results[1], name)
		require.NotEqual(t, results[0], results[2], name)
	}
}
