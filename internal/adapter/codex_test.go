package adapter

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

const (
	codexStart   = `{"type":"thread.started","thread_id":"s-1"}`
	codexTurn    = `{"type":"turn.started"}`
	codexCommand = `{"type":"item.started","item":{"id":"item_0","type":"command_execution","command":"ls",` +
		`"aggregated_output":"","exit_code":null,"status":"in_progress"}}`
	codexFailed = `{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"ls",` +
		`"aggregated_output":"x","exit_code":1,"status":"failed"}}`
	codexFile = `{"type":"item.completed","item":{"id":"item_1","type":"file_change",` +
		`"changes":[{"path":"a.go","kind":"add"}],"status":"completed"}}`
	codexFirst  = `{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"I look."}}`
	codexAnswer = `{"type":"item.completed","item":{"id":"item_3","type":"agent_message","text":"hello"}}`
	codexEnd    = `{"type":"turn.completed","usage":{"input_tokens":30,"cached_input_tokens":20,"output_tokens":5}}`
)

func TestCodexJSONL(t *testing.T) {
	answered := want{status: StatusComplete, text: "hello", session: "s-1", known: run.CostExact,
		tokens: run.Tokens{Input: 10, Output: 5, CacheRead: 20}}
	whole := lineOf(codexStart, codexTurn, codexFirst, codexCommand, codexFailed, codexFile, codexAnswer, codexEnd)
	testCases(t, CodexJSONL, []outputCase{
		{"success", whole, answered},
		{"text around", "Reading prompt\n" + strings.ReplaceAll(whole, "\n", "\nnoise\n"), warned(answered, 9)},
		{"ended before its end", lineOf(codexStart, codexTurn, codexAnswer),
			want{text: "hello", session: "s-1", known: run.CostUnknown}},
		{"without usage", lineOf(codexTurn, codexAnswer, `{"type":"turn.completed"}`),
			want{status: StatusComplete, text: "hello", known: run.CostUnknown}},
		{"a second turn without an answer", lineOf(codexTurn, codexAnswer, codexTurn, `{"type":"turn.completed"}`),
			want{status: StatusComplete, known: run.CostUnknown}},
		{"wrong types", lineOf(codexTurn, `{"type":"turn.completed","usage":7}`, `{"type":"item.completed","item":1}`),
			want{known: run.CostUnknown, warned: 1}},
		{"error", lineOf(codexStart, codexTurn, `{"type":"error","message":"Reconnecting... 1/5"}`,
			`{"type":"turn.failed","error":{"message":"You've hit your usage limit."}}`), want{
			status: StatusError, text: "You've hit your usage limit.", err: "You've hit your usage limit.", session: "s-1",
			known: run.CostUnknown, warned: 1,
		}},
		{"error before a turn", lineOf(`{"type":"error","message":"no login"}`),
			want{err: "no login", known: run.CostUnknown, warned: 1}},
	})
	testPrefixes(t, CodexJSONL, whole)

	_, frames := readIn(find(t, CodexJSONL), lineOf(codexCommand, codexFailed, codexFile), chunkSize)
	for i, want := range []Frame{
		{ID: "item_0", Name: "command_execution", State: ToolStarted, Text: "ls"},
		{ID: "item_0", Name: "command_execution", State: ToolFailed},
		{ID: "item_1", Name: "file_change", State: ToolStarted, Text: `[{"path":"a.go","kind":"add"}]`},
		{ID: "item_1", Name: "file_change", State: ToolOK},
	} {
		want.Kind, want.Digest = KindTool, frames[i].Digest
		require.Equal(t, want, frames[i])
	}
	require.Len(t, frames, 4)
	declined := strings.Replace(codexFailed, `"status":"failed"`, `"status":"declined"`, 1)
	_, frames = readIn(find(t, CodexJSONL), lineOf(codexCommand, declined), chunkSize)
	require.Equal(t, ToolFailed, frames[1].State, "the agent was not allowed to")
}

func TestCodexSessionIsContinued(t *testing.T) {
	for command, resumed := range map[string]string{
		"codex exec --json":                "codex exec --json resume s-1 -",
		"codex exec --json -s read-only -": "codex exec --json -s read-only resume s-1 -",
		"codex exec --json resume s-0 -":   "",
		"codex exec --json --ephemeral":    "",
		"codex --json":                     "",
		"sh codex exec":                    "",
	} {
		argv, ok := find(t, CodexJSONL).Resume(strings.Fields(command), "s-1")
		require.Equal(t, resumed != "", ok, command)
		require.Equal(t, resumed, strings.Join(argv, " "))
	}
}
