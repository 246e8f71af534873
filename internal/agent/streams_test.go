package agent

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/agent/limits"
	"github.com/passbook-run/passbook/internal/price"
	"github.com/passbook-run/passbook/run"
)

// TestReadReplyOfRecordedPrograms reads outputs that claude, codex and gemini printed.
func TestReadReplyOfRecordedPrograms(t *testing.T) {
	for name, want := range map[string]struct {
		category  run.Category
		permanent bool
		known     run.CostKnown
		usd       float64
		estimated bool
	}{
		"claude-stream/success":             {run.CategoryOK, false, run.CostExact, 0.019661, false},
		"claude-stream/dropped-once":        {run.CategoryOK, false, run.CostAtLeast, 0.00014, false},
		"claude-stream/oauth-plan":          {run.CategoryRateLimit, false, run.CostExact, 0, false},
		"claude-stream/sigkill-answer":      {run.CategoryAgentExit, false, run.CostAtLeast, 0.0117, true},
		"claude-stream/overlong-after-tool": {run.CategoryOutputTruncated, false, run.CostExact, 0.02052, false},
		"claude-json/rate":                  {run.CategoryRateLimit, false, run.CostExact, 0, false},
		"claude-json/sigkill-answer":        {run.CategoryAgentExit, false, run.CostUnknown, 0, true},
		"codex-jsonl/tools":                 {run.CategoryOK, false, run.CostExact, 0.0113455, true},
		"codex-jsonl/overlong-after-tool":   {run.CategoryOutputTruncated, false, run.CostUnknown, 0, true},
		"codex-jsonl/unauthorized":          {run.CategoryAgentExit, true, run.CostUnknown, 0, true},
		"gemini-json/tools":                 {run.CategoryOK, false, run.CostExact, 0.0108805, true},
		"gemini-json/plan":                  {run.CategoryRateLimit, false, run.CostUnknown, 0, true},
		"gemini-json/unauthorized":          {run.CategoryAgentExit, true, run.CostUnknown, 0, true},
		"gemini-stream/credit-after-tool":   {run.CategoryAgentExit, true, run.CostAtLeast, 0.003625, true},
		"gemini-stream/in-stream":           {run.CategoryAgentExit, false, run.CostAtLeast, 0.00013, true},
		"gemini-stream/sigterm-tool":        {run.CategoryOutputTruncated, false, run.CostUnknown, 0.00009125, true},
	} {
		t.Run(name, func(t *testing.T) {
			archive, err := txtar.ParseFile("../adapter/testdata/recorded/" + name + ".txtar")
			require.NoError(t, err)
			code, err := strconv.Atoi(strings.Fields(string(archive.Comment))[1])
			require.NoError(t, err)
			kind, _, _ := strings.Cut(name, "/")
			prices := Prices{Known: price.Known()}
			if kind == "codex-jsonl" {
				prices.Model = "gpt-5.1-codex"
			}
			reply, failure := ReadReply(kind, archive.Files[0].Data, Exit{Code: code}, string(archive.Files[1].Data),
				prices, 100)
			require.Equal(t, want.known, reply.Known)
			require.InDelta(t, want.usd, reply.CostUSD, 1e-9)
			require.Equal(t, want.estimated, reply.Estimated)
			require.Equal(t, want.category == run.CategoryOK, failure == nil)
			if failure == nil {
				require.True(t, Complete(kind, archive.Files[0].Data))
			}
			if failure != nil {
				require.Equal(t, want.category, failure.Category, failure.Message)
				require.Equal(t, want.permanent, failure.Permanent, failure.Message)
			}
		})
	}
}

// TestResetTimeOfRecordedLimit reads the time from the event and not from the sentence.
func TestResetTimeOfRecordedLimit(t *testing.T) {
	archive, err := txtar.ParseFile("../adapter/testdata/recorded/claude-stream/oauth-plan.txtar")
	require.NoError(t, err)
	exit := Exit{Code: 1, Started: time.Unix(1795486900, 0), Duration: time.Minute}
	_, failure := ReadReply("claude-stream", archive.Files[0].Data, exit, "", Prices{}, 100)
	require.Equal(t, limits.Plan, failure.Cause)
	require.Equal(t, time.Unix(1795494185, 0).UTC(), failure.Until)
}

// TestAnswersAreNotJudged requires that no text of an answer, whole or cut off, classifies a failure.
func TestAnswersAreNotJudged(t *testing.T) {
	const answer = `API Error: 429 rate limit, 401, please run /login, exceeded the 64000 output token maximum`
	for kind, stdout := range map[string]string{
		"claude-json": `{"type":"result","is_error":false,"result":"` + answer + `"}`,
		"claude-stream": `{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"` +
			answer + `"}]}}` + "\n" +
			`{"type":"result","is_error":false,"result":"` + answer + `"}` + "\n",
		"codex-jsonl": `{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"` + answer + `"}}` + "\n" +
			`{"type":"turn.completed"}` + "\n",
		"gemini-json": `{"response":"` + answer + `"}`,
		"gemini-stream": `{"type":"message","role":"assistant","content":"` + answer + `"}` + "\n" +
			`{"type":"result","status":"success"}` + "\n",
	} {
		reply, failure := ReadReply(kind, []byte(stdout), Exit{}, "", Prices{}, 0)
		require.Nil(t, failure, kind)
		require.Equal(t, answer, reply.Text, kind)
		for _, out := range []string{stdout, stdout[:len(stdout)-10]} {
			_, failure = ReadReply(kind, []byte(out), Exit{Code: 1}, "", Prices{}, 0)
			require.Equal(t, run.CategoryAgentExit, failure.Category, "%s: %s", kind, failure.Message)
			require.False(t, failure.Permanent, kind)
		}
	}
}
