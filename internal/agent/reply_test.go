package agent

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/agent/limits"
	"github.com/passbook-run/passbook/internal/price"
	"github.com/passbook-run/passbook/run"
)

const whole = `{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"hello","session_id":"s-1","total_cost_usd":3.42794175,
"usage":{"input_tokens":863,"output_tokens":42656,"cache_read_input_tokens":2684441,"cache_creation_input_tokens":162401,"service_tier":"x"},
"modelUsage":{"small":{"outputTokens":9,"costUSD":0.1},"large":{"outputTokens":42647,"costUSD":3.3}}}` + "\n"

var prices = Prices{Own: &price.Price{Input: 15, Output: 75, CacheRead: 1.5, CacheWrite: 18.75}}

func TestReadReplyUsesReportedFigures(t *testing.T) {
	reply, failure := ReadReply(adapter.ClaudeJSON, []byte(whole), Exit{}, "429 retried\n", prices, 4000)
	require.Nil(t, failure)
	require.Equal(t, Reply{
		Text: "hello", Model: "large", SessionID: "s-1", Code: "success", Turns: 1, CostUSD: 3.42794175, Known: run.CostExact,
		Tokens: run.Tokens{Input: 863, Output: 42656, CacheRead: 2684441, CacheWrite: 162401},
	}, reply)
}

func TestReadReplyEstimatesMissingFigures(t *testing.T) {
	for name, row := range map[string]struct {
		stdout string
		tokens run.Tokens
		cost   float64
		exact  bool // not estimated
	}{
		"tokens but no cost": {stdout: `{"result":"x","usage":{"input_tokens":1000,"output_tokens":100}}`,
			tokens: run.Tokens{Input: 1000, Output: 100}, cost: 0.0225},
		"cached tokens but no cost": {
			stdout: `{"result":"x","usage":{"cache_read_input_tokens":1000,"cache_creation_input_tokens":1000}}`,
			tokens: run.Tokens{CacheRead: 1000, CacheWrite: 1000}, cost: 0.02025},
		"cost but no tokens": {stdout: `{"result":"12345678","total_cost_usd":0.5}`,
			tokens: run.Tokens{Input: 35723, Output: 2}, cost: 0.5},
		"a cost of 0 without tokens": {stdout: `{"result":"12345678","total_cost_usd":0}`,
			tokens: run.Tokens{Input: 35723, Output: 2}, cost: 0.535995},
		"a cost of 0 with tokens": {stdout: `{"result":"1","total_cost_usd":0,"usage":{"input_tokens":5}}`,
			tokens: run.Tokens{Input: 5}, exact: true},
		"a failed attempt is paid too": {
			stdout: `{"result":"no","is_error":true,"total_cost_usd":0.2,"usage":{"input_tokens":5}}`,
			tokens: run.Tokens{Input: 5}, cost: 0.2, exact: true},
		"half an answer is paid too": {stdout: `{"result":"a`, tokens: run.Tokens{Input: 35723, Output: 3}, cost: 0.53607},
		"nothing printed, nothing":   {},
	} {
		t.Run(name, func(t *testing.T) {
			exit := Exit{}
			if row.stdout == "" {
				exit.Code = 1
			}
			reply, _ := ReadReply(adapter.ClaudeJSON, []byte(row.stdout), exit, "", prices, 142891)
			require.Equal(t, row.tokens, reply.Tokens)
			require.InDelta(t, row.cost, reply.CostUSD, 1e-9)
			require.Equal(t, !row.exact, reply.Estimated)
		})
	}
	reply, _ := ReadReply(adapter.Text, []byte("äöüß"), Exit{}, "", prices, 142891)
	require.Equal(t, run.Tokens{Input: 35723, Output: 1}, reply.Tokens, "text counts characters")
}

// TestReadReplyClassifiesFailures: TestCauseDecidesRetries has what each cause means.
func TestReadReplyClassifiesFailures(t *testing.T) {
	isError := func(text string) string {
		return fmt.Sprintf(`{"type":"result","subtype":"success","is_error":true,"result":%q}`, text)
	}
	for name, row := range map[string]struct {
		kind           string // empty: claude-json
		stdout, stderr string
		exit           Exit
		category       run.Category
		permanent      bool
	}{
		"cut in the middle": {stdout: whole[:100], category: run.CategoryOutputTruncated},
		"empty":             {category: run.CategoryOutputEmpty},
		"white space":       {kind: adapter.Text, stdout: " \n", category: run.CategoryOutputEmpty},
		"no result": {stdout: `{"subtype":"error_max_turns","is_error":false}`,
			category: run.CategoryOutputEmpty},
		"maximum of cost": {stdout: `{"subtype":"error_max_budget_usd","is_error":true,"errors":["Reached it"]}`,
			exit: Exit{Code: 1}, category: run.CategoryBudgetExceeded, permanent: true},
		"is_error with exit 0": {stdout: isError("something broke"), category: run.CategoryAgentExit},
		"is_error: overloaded, exit 1": {stdout: isError("Overloaded"), exit: Exit{Code: 1},
			category: run.CategoryRateLimit},
		"is_error: invalid key": {stdout: isError("Invalid API key · Please run /login"), exit: Exit{Code: 1},
			category: run.CategoryAgentExit, permanent: true},
		"exit 1": {stderr: "Connection reset by peer", exit: Exit{Code: 1}, category: run.CategoryAgentExit},
		"exit 2 is not a rate limit": {stderr: "hook said no", exit: Exit{Code: 2},
			category: run.CategoryAgentExit},
		"exit 1: 429": {stderr: "HTTP 429", exit: Exit{Code: 1}, category: run.CategoryRateLimit},
		"exit 1: complaint on stdout": {kind: adapter.Text, stdout: "Please run /login", exit: Exit{Code: 1},
			category: run.CategoryAgentExit, permanent: true},
		"exit 1: long text is not a complaint": {kind: adapter.Text, stdout: strings.Repeat("capacity ", 200),
			exit: Exit{Code: 1}, category: run.CategoryAgentExit},
		"exit 1 with an answer on capacity": {stdout: `{"result":"capacity","is_error":false}`, exit: Exit{Code: 1},
			category: run.CategoryAgentExit},
		"exit 127": {stderr: "sh: claude: not found", exit: Exit{Code: 127}, category: run.CategorySpawnFailed,
			permanent: true},
		"ended by a signal": {exit: Exit{Code: -1, Signal: "killed"}, category: run.CategoryAgentExit},
		"timeout": {stdout: "half", stderr: "429", exit: Exit{Code: -1, TimedOut: true, Duration: time.Minute},
			category: run.CategoryAgentTimeout},
		"timeout, exit 0, nothing": {kind: adapter.Text, stdout: "half", exit: Exit{TimedOut: true},
			category: run.CategoryAgentTimeout},
		"killed": {kind: adapter.Text, stdout: "half", exit: Exit{Code: -1, Killed: true, KillCause: "run cancelled"},
			category: run.CategoryUnknown},
		"is_error before the timeout": {stdout: isError("overloaded"), exit: Exit{Code: -1, TimedOut: true},
			category: run.CategoryRateLimit},
		"a kind that no pipeline may ask of": {kind: "xml", stdout: "<a/>", category: run.CategoryConfigMismatch,
			permanent: true},
	} {
		t.Run(name, func(t *testing.T) {
			kind := cmp.Or(row.kind, adapter.ClaudeJSON)
			_, failure := ReadReply(kind, []byte(row.stdout), row.exit, row.stderr, prices, 100)
			require.NotNil(t, failure)
			require.Equal(t, row.category, failure.Category, failure.Message)
			require.Equal(t, row.category == run.CategoryRateLimit, failure.Cause.Passes())
			require.Equal(t, row.permanent, failure.Permanent)
			require.NotEmpty(t, failure.Message)
			require.Equal(t, row.exit.Code, failure.ExitCode)
		})
	}
}

func TestReadReplyAcceptsAnswerBeforeKill(t *testing.T) {
	for name, exit := range map[string]Exit{
		"timeout":             {Code: -1, Signal: "killed", TimedOut: true},
		"killed":              {Code: 143, Killed: true},
		"parent died with it": {Code: -1, Signal: "killed"},
		"voluntary":           {},
	} {
		t.Run(name, func(t *testing.T) {
			reply, failure := ReadReply(adapter.ClaudeJSON, []byte(whole), exit, "", prices, 100)
			require.Nil(t, failure)
			require.Equal(t, "hello", reply.Text)
		})
	}
}

// TestTimeoutWithoutNetworkIsNotAnAttempt ends an agent that waited for a connection itself.
func TestTimeoutWithoutNetworkIsNotAnAttempt(t *testing.T) {
	waits := `{"type":"turn.started"}` + "\n" +
		`{"type":"error","message":"Reconnecting... waiting for network (x)"}` + "\n"
	for name, exit := range map[string]Exit{
		"timeout": {Code: -1, TimedOut: true, Duration: time.Minute}, "idle": {Code: -1, Idle: true, TimedOut: true},
	} {
		t.Run(name, func(t *testing.T) {
			_, failure := ReadReply(adapter.CodexJSONL, []byte(waits), exit, "", prices, 100)
			require.Equal(t, run.CategoryUnreachable, failure.Category)
			require.Equal(t, limits.Unreachable, failure.Cause)
			_, failure = ReadReply(adapter.CodexJSONL, []byte(waits+`{"type":"item.started"}`+"\n"), exit, "", prices, 100)
			require.Equal(t, run.CategoryAgentTimeout, failure.Category)
		})
	}
}

func TestReadReplyAcceptsEmptyResult(t *testing.T) {
	_, failure := ReadReply(adapter.ClaudeJSON, []byte(`{"result":"","is_error":false}`), Exit{}, "", prices, 100)
	require.Nil(t, failure, "the answer may be a file that the agent wrote")
}

func TestDiagnosticsAreTruncatedToEnd(t *testing.T) {
	stderr := strings.Repeat("ä", 10_000) + "Connection reset by peer"
	_, failure := ReadReply(adapter.ClaudeJSON, []byte(strings.Repeat("z", 5000)), Exit{Code: 1}, stderr, prices, 100)
	require.LessOrEqual(t, len([]rune(failure.Diagnostics)), 2000)
	require.Greater(t, len([]rune(failure.Diagnostics)), 1900)
	require.Contains(t, failure.Diagnostics, "Connection reset by peer\nstdout: …zzz")
	_, failure = ReadReply(adapter.ClaudeJSON, nil, Exit{Code: 1}, "Connection reset by peer\n", prices, 100)
	require.Equal(t, "stderr: Connection reset by peer", failure.Diagnostics)
}

func TestComplete(t *testing.T) {
	require.True(t, Complete(adapter.ClaudeJSON, []byte(whole)))
	require.True(t, Complete(adapter.ClaudeJSON, []byte(`{"is_error":true}`)), "an error is an answer")
	require.False(t, Complete(adapter.Text, []byte("text has no end")))
	for n := range strings.TrimRight(whole, "\n") {
		require.False(t, Complete(adapter.ClaudeJSON, []byte(whole[:n])), "cut at %d", n)
	}
}

func FuzzReadReply(f *testing.F) {
	f.Add([]byte(whole), "429", 0)
	f.Add([]byte(`{"result":null,"is_error":true}`), "", 1)
	f.Fuzz(func(t *testing.T, stdout []byte, stderr string, code int) {
		reply, failure := ReadReply(adapter.ClaudeJSON, stdout, Exit{Code: code}, stderr, prices, 10)
		require.True(t, failure != nil || Complete(adapter.ClaudeJSON, stdout))
		require.True(t, failure == nil || len([]rune(failure.Diagnostics)) <= 2000)
		require.NotNil(t, reply)
	})
}
