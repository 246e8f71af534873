package adapter

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// hidden is the recording in which the program reports less than the provider counted, and nothing shows it.
const hidden = "claude-json/dropped-once"

// TestRecordedOutputs reads outputs of claude 2.1.330, codex 0.169.0 and gemini 0.61.0. Each file also has what the
// model API counted for each request.
func TestRecordedOutputs(t *testing.T) {
	files, err := filepath.Glob("testdata/recorded/*/*.txtar")
	require.NoError(t, err)
	require.Len(t, files, len(recorded))
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "testdata/recorded/"), ".txtar")
		t.Run(name, func(t *testing.T) {
			parts := map[string]string{}
			archive, err := txtar.ParseFile(file)
			require.NoError(t, err)
			for _, f := range archive.Files {
				parts[f.Name] = string(f.Data)
			}
			a := find(t, strings.Split(name, "/")[0])
			s, _ := readIn(a, parts["stdout"], 7)
			if s.Status == "" && a.Stderr {
				s, _ = readIn(a, parts["stderr"], 7)
			}
			want, ok := recorded[name]
			require.True(t, ok)
			u, known := s.Usage()
			require.Equal(t, want, outcome{s.Status, s.Code, s.HTTP, known, clip([]byte(s.Text()), 40)})
			counted := requests(t, parts["requests"])
			if known == run.CostExact && name != hidden {
				require.Equal(t, counted, u.Tokens)
			}
			require.LessOrEqual(t, u.Input, counted.Input)
			require.LessOrEqual(t, u.Output, counted.Output)
			require.LessOrEqual(t, u.CacheRead, counted.CacheRead)
			require.LessOrEqual(t, u.CacheWrite, counted.CacheWrite)
			testEnd(t, a, parts["stdout"])
		})
	}
}

// testEnd requires that an answer is complete at its last byte and not before.
func testEnd(t *testing.T, a Adapter, stdout string) {
	t.Helper()
	var s Summary
	p, stdout := a.New(), strings.TrimRight(stdout, "\n")
	for i := range len(stdout) {
		s.Add(p.Parse([]byte(stdout[i : i+1]))...)
		require.False(t, i < len(stdout)-1 && s.Status == StatusComplete, "complete at %d", i)
	}
}

// requests returns the sum of all requests that the model API answered.
func requests(t *testing.T, lines string) run.Tokens {
	t.Helper()
	var sum Usage
	for line := range strings.Lines(lines) {
		var u Usage
		require.NoError(t, json.Unmarshal([]byte(line), &u))
		sum.add(u)
	}
	return sum.Tokens
}

type outcome struct {
	status Status
	code   string
	http   int
	known  run.CostKnown
	text   string
}

var recorded = map[string]outcome{
	"claude-json/credit-after-tool": {StatusError, "invalid_request_error", 400, run.CostExact,
		"Credit balance is too low"},
	"claude-json/dropped-once": {StatusComplete, "success", 0, run.CostExact, "Done at last."},
	"claude-json/dropped": {StatusError, "connection_failed", 0, run.CostAtLeast,
		"API Error: Connection to the API was los…"},
	"claude-json/oauth-plan": {StatusError, "usage_limit_reached", 429, run.CostExact,
		"You've hit your 5-hour limit · resets 4…"},
	"claude-json/overlong-after-tool": {StatusTruncated, "max_output_tokens", 0, run.CostExact,
		"API Error: Claude's response exceeded th…"},
	"claude-json/rate": {StatusError, "rate_limit_error", 429, run.CostExact,
		"API Error: Request rejected (429) · Thi…"},
	"claude-json/sigkill-answer": {"", "", 0, run.CostUnknown, ""},
	"claude-json/success":        {StatusComplete, "success", 0, run.CostExact, "The answer is 42."},
	"claude-json/tools":          {StatusComplete, "success", 0, run.CostExact, "All is done."},
	"claude-stream/credit-after-tool": {StatusError, "invalid_request_error", 400, run.CostExact,
		"Credit balance is too low"},
	"claude-stream/dropped-once": {StatusComplete, "success", 0, run.CostAtLeast, "Done at last."},
	"claude-stream/dropped": {StatusError, "connection_failed", 0, run.CostAtLeast,
		"API Error: Connection to the API was los…"},
	"claude-stream/in-stream": {StatusComplete, "success", 0, run.CostExact,
		"This is the beginning of an answer."},
	"claude-stream/oauth-plan": {StatusError, "usage_limit_reached", 429, run.CostExact,
		"You've hit your 5-hour limit · resets 4…"},
	"claude-stream/overload-once": {StatusComplete, "success", 0, run.CostExact, "Done at last."},
	"claude-stream/overlong-after-tool": {StatusTruncated, "max_output_tokens", 0, run.CostExact,
		"API Error: Claude's response exceeded th…"},
	"claude-stream/sigkill-answer":  {"", "", 0, run.CostAtLeast, "I call the tool.This is the begin"},
	"claude-stream/sigterm-tool":    {"", "", 0, run.CostAtLeast, "I call the tool.I wait."},
	"claude-stream/success":         {StatusComplete, "success", 0, run.CostExact, "The answer is 42."},
	"claude-stream/tools":           {StatusComplete, "success", 0, run.CostExact, "All is done."},
	"codex-jsonl/credit-after-tool": {StatusError, "", 0, run.CostUnknown, "Quota exceeded. Check your plan and bill…"},
	"codex-jsonl/dropped-once":      {StatusComplete, "", 0, run.CostAtLeast, "Done at last."},
	"codex-jsonl/dropped":           {StatusError, "", 0, run.CostUnknown, "stream disconnected before completion: T…"},
	"codex-jsonl/overlong-after-tool": {StatusTruncated, "", 0, run.CostUnknown,
		"Incomplete response returned, reason: ma…"},
	"codex-jsonl/rate-after-2s":  {StatusError, "", 0, run.CostUnknown, "exceeded retry limit, last status: 429 T…"},
	"codex-jsonl/sigkill-answer": {"", "", 0, run.CostUnknown, "I call the tool."},
	"codex-jsonl/success":        {StatusComplete, "", 0, run.CostExact, "The answer is 42."},
	"codex-jsonl/tools":          {StatusComplete, "", 0, run.CostExact, "All is done."},
	"codex-jsonl/unauthorized":   {StatusError, "", 0, run.CostUnknown, "unexpected status 401 Unauthorized: Inco…"},
	"gemini-json/credit-after-tool": {StatusError, "Error", 429, run.CostUnknown,
		"Your prepayment credits are depleted. Pl…"},
	"gemini-json/dropped": {StatusError, "Error", 0, run.CostUnknown, "terminated"},
	"gemini-json/in-stream": {StatusError, "INVALID_STREAM", 0, run.CostAtLeast,
		"Model stream ended without a finish reas…"},
	"gemini-json/no-login": {StatusError, "Error", 0, run.CostUnknown,
		"When using Gemini API, you must specify…"},
	"gemini-json/overlong": {StatusComplete, "", 0, run.CostExact, "This is the beginning of an answer."},
	"gemini-json/plan": {StatusError, "Error", 429, run.CostUnknown,
		"You have exhausted your daily quota on t…"},
	"gemini-json/sigterm-tool": {"", "", 0, run.CostUnknown, ""},
	"gemini-json/success":      {StatusComplete, "", 0, run.CostExact, "The answer is 42."},
	"gemini-json/tools":        {StatusComplete, "", 0, run.CostExact, "All is done."},
	"gemini-json/unauthorized": {StatusError, "Error", 401, run.CostUnknown,
		"{\"error\":{\"code\":401,\"details\":[{\"@type\"…"},
	"gemini-stream/credit-after-tool": {StatusError, "unknown", 0, run.CostAtLeast,
		"[API Error: Your prepayment credits are…"},
	"gemini-stream/dropped":      {StatusError, "unknown", 0, run.CostUnknown, "[API Error: terminated]"},
	"gemini-stream/in-stream":    {StatusError, "", 0, run.CostAtLeast, "Model stream ended without a finish reas…"},
	"gemini-stream/no-login":     {"", "", 0, run.CostUnknown, ""},
	"gemini-stream/overlong":     {StatusComplete, "", 0, run.CostExact, "This is the beginning of an answer."},
	"gemini-stream/sigterm-tool": {"", "", 0, run.CostUnknown, "I call the tool.I wait."},
	"gemini-stream/success":      {StatusComplete, "", 0, run.CostExact, "The answer is 42."},
	"gemini-stream/tools":        {StatusComplete, "", 0, run.CostExact, "All is done."},
	"gemini-stream/unauthorized": {StatusError, "unknown", 0, run.CostUnknown,
		"[API Error: {\"error\":{\"code\":401,\"detail…"},
}
