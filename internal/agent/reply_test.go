package agent

import (
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
		kind, stdout string
		exit         Exit
		tokens       run.Tokens
		cost         float64
		estimated    bool
	}{
		"tokens but no cost": {
			adapter.ClaudeJSON, `{"result":"x","usage":{"input_tokens":1000,"output_tokens":100}}`, Exit{},
			run.Tokens{Input: 1000, Output: 100}, 0.0225, true,
		},
		"cached tokens but no cost": {
			adapter.ClaudeJSON, `{"result":"x","usage":{"cache_read_input_tokens":1000,"cache_creation_input_tokens":1000}}`,
			Exit{},
			run.Tokens{CacheRead: 1000, CacheWrite: 1000}, 0.02025, true,
		},
		"cost but no tokens": {
			adapter.ClaudeJSON, `{"result":"12345678","total_cost_usd":0.5}`, Exit{}, run.Tokens{Input: 35723, Output: 2},
			0.5, true,
		},
		"a cost of 0 without tokens": {
			adapter.ClaudeJSON, `{"result":"12345678","total_cost_usd":0}`, Exit{}, run.Tokens{Input: 35723, Output: 2},
			0.535995,
			true,
		},
		"a cost of 0 with tokens": {
			adapter.ClaudeJSON, `{"result":"1","total_cost_usd":0,"usage":{"input_tokens":5}}`, Exit{}, run.Tokens{Input: 5}, 0,
			false,
		},
		"text counts characters": {adapter.Text, "äöüß", Exit{}, run.Tokens{Input: 35723, Output: 1}, 0.53592, true},
		"a failed attempt is paid too": {
			adapter.ClaudeJSON, `{"result":"no","is_error":true,"total_cost_usd":0.2,"usage":{"input_tokens":5}}`, Exit{},
			run.Tokens{Input: 5}, 0.2, false,
		},
		"half an answer is paid too": {adapter.ClaudeJSON, `{"result":"a`, Exit{}, run.Tokens{Input: 35723, Output: 3},
			0.53607,
			true},
		"nothing printed, nothing": {adapter.ClaudeJSON, ``, Exit{Code: 1}, run.Tokens{}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			reply, _ := ReadReply(row.kind, []byte(row.stdout), row.exit, "", prices, 142891)
			require.Equal(t, row.tokens, reply.Tokens)
			require.InDelta(t, row.cost, reply.CostUSD, 1e-9)
			require.Equal(t, row.estimated, reply.Estimated)
		})
	}
}

func TestReadReplyClassifiesFailures(t *testing.T) {
	isError := func(text string) string {
		return fmt.Sprintf(`{"type":"result","subtype":"success","is_error":true,"result":%q}`, text)
	}
	type want struct {
		category          run.Category
		passes, permanent bool
	}
	for name, row := range map[string]struct {
		kind, stdout, stderr string
		exit                 Exit
		want                 want
	}{
		"cut in the middle": {adapter.ClaudeJSON, whole[:100], "", Exit{}, want{category: run.CategoryOutputTruncated}},
		"empty":             {adapter.ClaudeJSON, "", "", Exit{}, want{category: run.CategoryOutputEmpty}},
		"white space":       {adapter.Text, " \n", "", Exit{}, want{category: run.CategoryOutputEmpty}},
		"no result": {adapter.ClaudeJSON, `{"subtype":"error_max_turns","is_error":false}`, "", Exit{}, want{
			category: run.CategoryOutputEmpty,
		}},
		"maximum of cost": {
			adapter.ClaudeJSON, `{"subtype":"error_max_budget_usd","is_error":true,"errors":["Reached it"]}`, "", Exit{Code: 1},
			want{run.CategoryBudgetExceeded, false, true},
		},
		"is_error with exit 0": {adapter.ClaudeJSON, isError("something broke"), "", Exit{}, want{
			category: run.CategoryAgentExit,
		}},
		"is_error: overloaded, exit 1": {
			adapter.ClaudeJSON, isError("Overloaded"), "", Exit{Code: 1}, want{run.CategoryRateLimit, true, false},
		},
		"is_error: invalid key": {
			adapter.ClaudeJSON, isError("Invalid API key · Please run /login"), "", Exit{Code: 1},
			want{run.CategoryAgentExit, false, true},
		},
		"exit 1": {adapter.ClaudeJSON, "", "Connection reset by peer", Exit{Code: 1}, want{
			category: run.CategoryAgentExit,
		}},
		"exit 2 is not a rate limit": {adapter.ClaudeJSON, "", "hook said no", Exit{Code: 2}, want{
			category: run.CategoryAgentExit,
		}},
		"exit 1: 429": {adapter.ClaudeJSON, "", "HTTP 429", Exit{Code: 1}, want{run.CategoryRateLimit, true, false}},
		"exit 1: complaint on stdout": {
			adapter.Text, "Please run /login", "", Exit{Code: 1}, want{run.CategoryAgentExit, false, true},
		},
		"exit 1: long text is not a complaint": {adapter.Text, strings.Repeat("capacity ", 200), "", Exit{Code: 1}, want{
			category: run.CategoryAgentExit,
		}},
		"exit 1 with an answer on capacity": {adapter.ClaudeJSON, `{"result":"capacity","is_error":false}`, "", Exit{Code: 1},
			want{
				category: run.CategoryAgentExit,
			}},
		"exit 127": {
			adapter.ClaudeJSON, "", "sh: claude: not found", Exit{Code: 127}, want{run.CategorySpawnFailed, false, true},
		},
		"ended by a signal": {adapter.ClaudeJSON, "", "", Exit{Code: -1, Signal: "killed"}, want{
			category: run.CategoryAgentExit,
		}},
		"timeout": {
			adapter.ClaudeJSON, "half", "429", Exit{Code: -1, TimedOut: true, Duration: time.Minute}, want{
				category: run.CategoryAgentTimeout,
			},
		},
		"timeout, exit 0, nothing": {adapter.Text, "half", "", Exit{TimedOut: true}, want{
			category: run.CategoryAgentTimeout,
		}},
		"killed": {
			adapter.Text, "half", "", Exit{Code: -1, Killed: true, KillCause: "run cancelled"},
			want{category: run.CategoryUnknown},
		},
		"is_error before the timeout": {
			adapter.ClaudeJSON, isError("overloaded"), "", Exit{Code: -1, TimedOut: true},
			want{run.CategoryRateLimit, true, false},
		},
		"a kind that no pipeline may ask of": {"xml", "<a/>", "", Exit{},
			want{run.CategoryConfigMismatch, false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			_, failure := ReadReply(row.kind, []byte(row.stdout), row.exit, row.stderr, prices, 100)
			require.NotNil(t, failure)
			require.Equal(t, row.want, want{failure.Category, failure.Cause.Passes(), failure.Permanent}, failure.Message)
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
