package adapter

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

const claudeAnswer = `{"type":"result","subtype":"success","is_error":false,"num_turns":2,"result":"hello",` +
	`"session_id":"s-1","total_cost_usd":0.5,"usage":{"input_tokens":8,"output_tokens":40,"cache_read_input_tokens":20,` +
	`"cache_creation_input_tokens":16},"modelUsage":{"small":{"inputTokens":2,"outputTokens":5,"costUSD":0.1},` +
	`"large":{"inputTokens":8,"outputTokens":40,"cacheReadInputTokens":20,"cacheCreationInputTokens":16,"costUSD":0.4}}}`

var claudeAnswered = want{
	status: StatusComplete, code: "success", text: "hello", session: "s-1", model: "large", turns: 2,
	tokens: run.Tokens{Input: 10, Output: 45, CacheRead: 20, CacheWrite: 16}, usd: 0.5, known: run.CostExact,
}

func warned(w want, n int) want {
	w.warned = n
	return w
}

func TestClaudeJSON(t *testing.T) {
	isError := func(subtype, text string) string {
		return fmt.Sprintf(`{"type":"result","subtype":%q,"is_error":true,"result":%q}`, subtype, text)
	}
	unknown, unanswered := want{known: run.CostUnknown, warned: 1}, warned(claudeAnswered, 1)
	unanswered.status, unanswered.code, unanswered.text, unanswered.turns = "", "", "", 0
	negative := claudeAnswered
	negative.model, negative.tokens, negative.usd = "small", run.Tokens{}, 0
	testCases(t, ClaudeJSON, []outputCase{
		{"success", claudeAnswer + "\n", claudeAnswered},
		{"less than nothing", strings.NewReplacer(`"total_cost_usd":0.5`, `"total_cost_usd":-9`, ":8,", ":-8,", ":40", ":-9000",
			":20,", ":-20,", ":16", ":-16", ":0.4", ":-0.4").Replace(claudeAnswer), negative},
		{"without a newline", claudeAnswer, claudeAnswered},
		{"in several lines", strings.ReplaceAll(claudeAnswer, ",", ",\r\n\t"), claudeAnswered},
		{"array", `[{"type":"system","subtype":"init","session_id":"s-1","model":"large"},` + claudeAnswer + "]\n",
			claudeAnswered},
		{"array in several lines", "[\n" + `  {"type":"x"},` + "\n" + claudeAnswer + "\n]\n", claudeAnswered},
		{"text before", "[WARN] {old} node\n(x) y\n" + claudeAnswer, warned(claudeAnswered, 2)},
		{"brackets before", "{\n{x\n[x]\n" + claudeAnswer, warned(claudeAnswered, 3)},
		{"text after", claudeAnswer + "\nnpm notice\n", warned(claudeAnswered, 1)},
		{"another object before", `{"level":"warn"}` + "\n" + claudeAnswer, claudeAnswered},
		{"no UTF-8", `{"is_error":false,"result":"a` + "\xff" + `"}`,
			want{status: StatusComplete, text: "a\uFFFD", known: run.CostUnknown}},
		{"no text", `{"is_error":false,"result":""}`, want{status: StatusComplete, known: run.CostUnknown}},
		{"no result", `{"subtype":"x","is_error":false}`,
			want{status: StatusEmpty, code: "x", known: run.CostUnknown}},
		{"error", isError("success", "API Error: 429"),
			want{status: StatusError, code: "success", text: "API Error: 429", err: "API Error: 429", known: run.CostUnknown}},
		{"error without text", `{"subtype":"error_during_execution","is_error":true,"errors":["a","b"]}`, want{
			status: StatusError, code: "error_during_execution", text: "a\nb", err: "a\nb", known: run.CostUnknown,
		}},
		{"maximum of turns", isError("error_max_turns", "stop"),
			want{status: StatusMaxTurns, code: "error_max_turns", text: "stop", err: "stop", known: run.CostUnknown}},
		{"maximum of cost", isError("error_max_budget_usd", "stop"),
			want{status: StatusBudget, code: "error_max_budget_usd", text: "stop", err: "stop", known: run.CostUnknown}},
		{"maximum of tokens", isError("success", "Claude's response exceeded the 64000 output token maximum."), want{
			status: StatusTruncated, code: "success", text: "Claude's response exceeded the 64000 output token maximum.",
			err: "Claude's response exceeded the 64000 output token maximum.", known: run.CostUnknown,
		}},
		{"an answer about limits",
			`{"is_error":false,"result":"It exceeded the 64000 output token maximum, 429, and rate limits."}`, want{
				status: StatusComplete, text: "It exceeded the 64000 output token maximum, 429, and rate limits.",
				known: run.CostUnknown,
			}},
		{"nothing", "", unknown},
		{"white space", " \n\t", unknown},
		{"text", "hello", warned(unknown, 2)},
		{"other JSON", `{"ok":true}`, unknown},
		{"a number", "7", warned(unknown, 2)},
		{"cut off", claudeAnswer[:100], unknown},
		{"array cut off", "[" + claudeAnswer, unanswered},
		{"bracket after", claudeAnswer + "\n}", warned(unanswered, 2)},
		{"two objects", claudeAnswer + claudeAnswer, unanswered},
		{"two results in an array", "[" + claudeAnswer + "," + claudeAnswer + "]", unanswered},
		{"no JSON with as many brackets", `{"result":"a",}`, warned(unknown, 2)},
		{"wrong types", `{"result":7,"is_error":"x"}`, warned(unknown, 2)},
	})
	testPrefixes(t, ClaudeJSON, claudeAnswer)
	testPrefixes(t, ClaudeJSON, `[{"type":"system","subtype":"init"},`+claudeAnswer+"]")
}

func TestLargeValueIsNotRead(t *testing.T) {
	p := newClaudeJSON().(*document)
	var s Summary
	s.Add(p.Parse([]byte(`{"result":"`))...)
	chunk := []byte(strings.Repeat("x", 1<<20))
	for range MaxValue/len(chunk) + 2 {
		s.Add(p.Parse(chunk)...)
		require.LessOrEqual(t, cap(p.split.buf), 2*MaxValue)
	}
	s.Add(p.Parse([]byte(`"}` + "\n" + claudeAnswer))...)
	s.Add(p.End()...)
	require.Equal(t, warned(claudeAnswered, 1), summaryOf(&s))
}

func TestClaudeSessionIsContinued(t *testing.T) {
	for command, resumed := range map[string]string{
		"claude -p --output-format json": "claude -p --output-format json --resume s-1 --fork-session",
		"/opt/bin/claude -p":             "/opt/bin/claude -p --resume s-1 --fork-session",
		"claude -p --resume s-0":         "",
		"claude -p --session-id=s-0":     "",
		"sh -c claude":                   "",
	} {
		argv, ok := find(t, ClaudeJSON).Resume(strings.Fields(command), "s-1")
		require.Equal(t, resumed != "", ok, command)
		require.Equal(t, resumed, strings.Join(argv, " "))
	}
}

func TestClaudeStopsAtAmount(t *testing.T) {
	for command, want := range map[string]string{
		"/opt/bin/claude -p --output-format json": "/opt/bin/claude -p --output-format json --max-budget-usd 0.2500",
		"claude --print":               "claude --print --max-budget-usd 0.2500",
		"claude":                       "", // it only works with --print
		"claude -p --max-budget-usd 2": "",
		"claude -p --max-budget-usd=2": "",
		"wrapper -p":                   "",
	} {
		argv, ok := find(t, ClaudeStream).Budget(strings.Fields(command), 0.25)
		require.Equal(t, want != "", ok, command)
		require.Equal(t, want, strings.Join(argv, " "), command)
	}
	argv, _ := find(t, ClaudeJSON).Budget([]string{"claude", "-p"}, 0.00001)
	require.Equal(t, "0.0001", argv[len(argv)-1], "claude refuses 0")
}
