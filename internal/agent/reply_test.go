package agent

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

const whole = `{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"hello","session_id":"s-1","total_cost_usd":3.42794175,
"usage":{"input_tokens":863,"output_tokens":42656,"cache_read_input_tokens":2684441,"cache_creation_input_tokens":162401,"service_tier":"x"},
"modelUsage":{"small":{"outputTokens":9,"costUSD":0.1},"large":{"outputTokens":42647,"costUSD":3.3}}}` + "\n"

var price = &Price{Input: 15, Output: 75}

func TestReadReplyUsesReportedFigures(t *testing.T) {
	reply, failure := ReadReply(KindJSON, []byte(whole), Exit{}, "429 retried\n", price, 4000)
	require.Nil(t, failure)
	require.Equal(t, Reply{
		Text: "hello", Model: "large", SessionID: "s-1", Subtype: "success", Turns: 1, CostUSD: 3.42794175, Known: true,
		Tokens: Tokens{Input: 863, Output: 42656, CacheRead: 2684441, CacheWrite: 162401},
	}, reply)
}

func TestReadReplyEstimatesMissingFigures(t *testing.T) {
	for name, row := range map[string]struct {
		kind, stdout string
		exit         Exit
		tokens       Tokens
		cost         float64
		estimated    bool
	}{
		"tokens but no cost": {
			KindJSON, `{"result":"x","usage":{"input_tokens":1000,"output_tokens":100}}`, Exit{},
			Tokens{Input: 1000, Output: 100}, 0.0225, true,
		},
		"cached tokens but no cost": {
			KindJSON, `{"result":"x","usage":{"cache_read_input_tokens":1000,"cache_creation_input_tokens":1000}}`,
			Exit{},
			Tokens{CacheRead: 1000, CacheWrite: 1000}, 0.02025, true,
		},
		"cost but no tokens": {
			KindJSON, `{"result":"12345678","total_cost_usd":0.5}`, Exit{}, Tokens{Input: 35723, Output: 2}, 0.5, true,
		},
		"a cost of 0 without tokens": {
			KindJSON, `{"result":"12345678","total_cost_usd":0}`, Exit{}, Tokens{Input: 35723, Output: 2}, 0.535995,
			true,
		},
		"a cost of 0 with tokens": {
			KindJSON, `{"result":"1","total_cost_usd":0,"usage":{"input_tokens":5}}`, Exit{}, Tokens{Input: 5}, 0,
			false,
		},
		"text counts characters": {KindText, "äöüß", Exit{}, Tokens{Input: 35723, Output: 1}, 0.53592, true},
		"a failed attempt is paid too": {
			KindJSON, `{"result":"no","is_error":true,"total_cost_usd":0.2,"usage":{"input_tokens":5}}`, Exit{},
			Tokens{Input: 5}, 0.2, false,
		},
		"half an answer is paid too": {KindJSON, `{"result":"a`, Exit{}, Tokens{Input: 35723, Output: 3}, 0.53607,
			true},
		"nothing printed, nothing": {KindJSON, ``, Exit{Code: 1}, Tokens{}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			reply, _ := ReadReply(row.kind, []byte(row.stdout), row.exit, "", price, 142891)
			require.Equal(t, row.tokens, reply.Tokens)
			require.InDelta(t, row.cost, reply.CostUSD, 1e-9)
			require.Equal(t, row.estimated, reply.Estimated)
		})
	}
}

func TestReadReplyWithoutPriceCostsNothing(t *testing.T) {
	reply, failure := ReadReply(KindText, []byte("hello"), Exit{}, "", nil, 100)
	require.Nil(t, failure)
	require.Equal(t, 25, reply.Tokens.Input)
	require.Zero(t, reply.CostUSD)
	require.True(t, reply.Estimated)
}

func TestReadReplyClassifiesFailures(t *testing.T) {
	isError := func(text string) string {
		return fmt.Sprintf(`{"type":"result","subtype":"success","is_error":true,"result":%q}`, text)
	}
	type want struct {
		category               run.Category
		rateLimited, permanent bool
	}
	for name, row := range map[string]struct {
		kind, stdout, stderr string
		exit                 Exit
		want                 want
	}{
		"trailing garbage": {KindJSON, whole + "}", "", Exit{}, want{
			category: run.CategoryOutputTruncated,
		}},
		"two objects": {KindJSON, whole + whole, "", Exit{}, want{
			category: run.CategoryOutputTruncated,
		}},
		"cut in the middle": {KindJSON, whole[:100], "", Exit{}, want{
			category: run.CategoryOutputTruncated,
		}},
		"text instead of JSON": {KindJSON, "hello", "", Exit{}, want{category: run.CategoryOutputTruncated}},
		"an array": {KindJSON, "[" + whole + "]", "", Exit{}, want{
			category: run.CategoryOutputTruncated,
		}},
		"null": {KindJSON, "null", "", Exit{}, want{category: run.CategoryOutputTruncated}},
		"some other JSON": {KindJSON, `{"ok":true}`, "", Exit{}, want{
			category: run.CategoryOutputTruncated,
		}},
		"empty":       {KindJSON, "", "", Exit{}, want{category: run.CategoryOutputEmpty}},
		"white space": {KindText, " \n", "", Exit{}, want{category: run.CategoryOutputEmpty}},
		"no result": {KindJSON, `{"subtype":"error_max_turns","is_error":false}`, "", Exit{}, want{
			category: run.CategoryOutputEmpty,
		}},
		"is_error with exit 0": {KindJSON, isError("something broke"), "", Exit{}, want{
			category: run.CategoryAgentExit,
		}},
		"is_error: 429": {
			KindJSON, isError("API Error: 429 rate_limit_error"), "", Exit{}, want{run.CategoryRateLimit, true, false},
		},
		"is_error: rate limit in tokens": {
			KindJSON, isError("would exceed your rate limit of 30,000 input tokens per minute"), "", Exit{},
			want{run.CategoryRateLimit, true, false},
		},
		"is_error: overloaded, exit 1": {
			KindJSON, isError("Overloaded"), "", Exit{Code: 1}, want{run.CategoryRateLimit, true, false},
		},
		"is_error: invalid key": {
			KindJSON, isError("Invalid API key · Please run /login"), "", Exit{Code: 1},
			want{run.CategoryAgentExit, false, true},
		},
		"is_error: token expired": {
			KindJSON, isError("OAuth token has expired"), "", Exit{}, want{run.CategoryAgentExit, false, true},
		},
		"is_error: 401": {
			KindJSON, isError("API Error: 401"), "", Exit{}, want{run.CategoryAgentExit, false, true},
		},
		"exit 1": {KindJSON, "", "Connection reset by peer", Exit{Code: 1}, want{
			category: run.CategoryAgentExit,
		}},
		"exit 2 is no rate limit": {KindJSON, "", "hook said no", Exit{Code: 2}, want{
			category: run.CategoryAgentExit,
		}},
		"exit 1: at capacity": {
			KindJSON, "", "Service at capacity", Exit{Code: 1}, want{run.CategoryRateLimit, true, false},
		},
		"exit 1: number that holds 429": {KindJSON, "", "Input tokens: 14290", Exit{Code: 1}, want{
			category: run.CategoryAgentExit,
		}},
		"exit 1: count of 429": {
			KindJSON, "", "Input tokens: 429\nusage: in 401 out 2\ncontext capacity: 9", Exit{Code: 1}, want{
				category: run.CategoryAgentExit,
			},
		},
		"exit 1: count, then a limit": {
			KindJSON, "", "Input tokens: 5\nHTTP 429", Exit{Code: 1}, want{run.CategoryRateLimit, true, false},
		},
		"exit 1: complaint on stdout": {
			KindText, "Please run /login", "", Exit{Code: 1}, want{run.CategoryAgentExit, false, true},
		},
		"exit 1: long text is no complaint": {KindText, strings.Repeat("capacity ", 200), "", Exit{Code: 1}, want{
			category: run.CategoryAgentExit,
		}},
		"exit 1 with an answer on capacity": {KindJSON, `{"result":"capacity","is_error":false}`, "", Exit{Code: 1},
			want{
				category: run.CategoryAgentExit,
			}},
		"exit 127": {
			KindJSON, "", "sh: claude: not found", Exit{Code: 127}, want{run.CategorySpawnFailed, false, true},
		},
		"ended by a signal": {KindJSON, "", "", Exit{Code: -1, Signal: "killed"}, want{
			category: run.CategoryAgentExit,
		}},
		"timeout": {
			KindJSON, "half", "429", Exit{Code: -1, TimedOut: true, Duration: time.Minute}, want{
				category: run.CategoryAgentTimeout,
			},
		},
		"timeout, exit 0, nothing": {KindText, "half", "", Exit{TimedOut: true}, want{
			category: run.CategoryAgentTimeout,
		}},
		"killed": {
			KindText, "half", "", Exit{Code: -1, Killed: true, KillCause: "run cancelled"},
			want{category: run.CategoryUnknown},
		},
		"is_error before the timeout": {
			KindJSON, isError("overloaded"), "", Exit{Code: -1, TimedOut: true},
			want{run.CategoryRateLimit, true, false},
		},
		"a kind that no pipeline may ask of": {"xml", "<a/>", "", Exit{},
			want{run.CategoryConfigMismatch, false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			_, failure := ReadReply(row.kind, []byte(row.stdout), row.exit, row.stderr, price, 100)
			require.NotNil(t, failure)
			require.Equal(t, row.want, want{failure.Category, failure.RateLimited, failure.Permanent}, failure.Message)
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
		"of its own accord":   {},
	} {
		t.Run(name, func(t *testing.T) {
			reply, failure := ReadReply(KindJSON, []byte(whole), exit, "", price, 100)
			require.Nil(t, failure)
			require.Equal(t, "hello", reply.Text)
		})
	}
}

func TestReadReplyAcceptsEmptyResult(t *testing.T) {
	_, failure := ReadReply(KindJSON, []byte(`{"result":"","is_error":false}`), Exit{}, "", price, 100)
	require.Nil(t, failure, "the answer may be a file that the agent wrote")
}

func TestDiagnosticsAreTruncatedToEnd(t *testing.T) {
	stderr := strings.Repeat("ä", 10_000) + "Connection reset by peer"
	_, failure := ReadReply(KindJSON, []byte(strings.Repeat("z", 5000)), Exit{Code: 1}, stderr, price, 100)
	require.LessOrEqual(t, len([]rune(failure.Diagnostics)), 2000)
	require.Greater(t, len([]rune(failure.Diagnostics)), 1900)
	require.Contains(t, failure.Diagnostics, "Connection reset by peer\nstdout: …zzz")
	_, failure = ReadReply(KindJSON, nil, Exit{Code: 1}, "Connection reset by peer\n", price, 100)
	require.Equal(t, "stderr: Connection reset by peer", failure.Diagnostics)
}

func TestComplete(t *testing.T) {
	require.True(t, Complete(KindJSON, []byte(whole)))
	require.True(t, Complete(KindJSON, []byte(`{"is_error":true}`)), "an error is an answer")
	require.False(t, Complete(KindText, []byte("text has no end")))
	for n := range strings.TrimRight(whole, "\n") {
		require.False(t, Complete(KindJSON, []byte(whole[:n])), "cut at %d", n)
	}
}

func FuzzReadReply(f *testing.F) {
	f.Add([]byte(whole), "429", 0)
	f.Add([]byte(`{"result":null,"is_error":true}`), "", 1)
	f.Fuzz(func(t *testing.T, stdout []byte, stderr string, code int) {
		reply, failure := ReadReply(KindJSON, stdout, Exit{Code: code}, stderr, price, 10)
		require.True(t, failure != nil || Complete(KindJSON, stdout))
		require.True(t, failure == nil || len([]rune(failure.Diagnostics)) <= 2000)
		require.NotNil(t, reply)
	})
}
