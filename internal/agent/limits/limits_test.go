package limits

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestKind(t *testing.T) {
	for _, row := range []struct {
		name   string
		want   Kind
		report Report
	}{
		{"claude: 401", Login, Report{
			Program: "claude", Code: "authentication_error", HTTP: 401,
			Text: "Invalid API key · Fix external API key",
		}},
		{"claude: no login", Login, Report{Program: "claude", Text: "Not logged in · Please run /login"}},
		{"claude: old 401", Login, Report{Program: "claude", Text: `API Error: 401 {"type":"error"}`}},
		{"claude: 429", Rate, Report{
			Program: "claude", Code: "rate_limit_error", HTTP: 429,
			Text: "API Error: Request rejected (429) · This request would exceed your account's rate limit.",
		}},
		{"claude: old 429", Rate, Report{
			Program: "claude",
			Text: `API Error: 429 {"type":"error","error":{"type":"rate_limit_error","message":"This request ` +
				`would exceed your account's rate limit."}}`,
		}},
		{"claude: text of a 429", Rate, Report{
			Program: "claude",
			Text:    "API Error: Request rejected (429) · Slow down.",
		}},
		{"claude: 529", Overload, Report{
			Program: "claude", Code: "overloaded_error", HTTP: 529,
			Text: "API Error: Repeated 529 Overloaded errors. The API is at capacity.",
		}},
		{"claude: old 529", Overload, Report{
			Program: "claude",
			Text:    `API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`,
		}},
		{"claude: credit", Credit, Report{
			Program: "claude", Code: "invalid_request_error", HTTP: 400,
			Text: "Credit balance is too low",
		}},
		{"claude: plan", Plan, Report{
			Program: "claude", Code: "usage_limit_reached", HTTP: 429,
			Text: "You've hit your 5-hour limit · resets 4:23am (UTC)",
		}},
		{"claude: plan, text", Plan, Report{
			Program: "claude",
			Text:    "You've hit your limit · resets 1:30am (Asia/Dhaka)",
		}},
		{"claude: older plan", Plan, Report{
			Program: "claude",
			Text:    "5-hour limit reached ∙ resets 2pm (Pacific/Auckland)",
		}},
		{"claude: oldest plan", Plan, Report{Program: "claude", Text: "Claude AI usage limit reached|1795400000"}},
		{"claude: plan of an organisation", Plan, Report{
			Program: "claude",
			Text:    "You've hit your org's monthly usage limit",
		}},
		{"claude: output", Output, Report{
			Program: "claude",
			Text: "API Error: Claude's response exceeded the 64000 output token maximum. To configure this " +
				"behavior, set the CLAUDE_CODE_MAX_OUTPUT_TOKENS environment variable.",
		}},
		{"claude: dropped", Unreachable, Report{
			Program: "claude", Code: "connection_failed",
			Text: "API Error: Connection to the API was lost (ECONNRESET). This is usually temporary — try again.",
		}},
		{"claude: no name server", Unreachable, Report{
			Program: "claude",
			Text:    "API Error: Can't reach the API server — check your internet or DNS (ENOTFOUND)",
		}},
		{"claude: refused", Unreachable, Report{
			Program: "claude",
			Text:    "API Error: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED)",
		}},
		{"claude: no route", Unreachable, Report{
			Program: "claude",
			Text:    "API Error: No internet route — check your connection or VPN (ENETUNREACH)",
		}},
		{"claude: output of a tool", "", Report{
			Program: "claude",
			Text:    "make: *** [test] Error 1: TestRateLimit: want 429, got 200",
		}},
		{"claude: bad request", "", Report{
			Program: "claude", Code: "invalid_request_error", HTTP: 400,
			Text: "API Error: 400 prompt is too long",
		}},

		{"codex: 401", Login, Report{
			Program: "codex",
			Text:    "unexpected status 401 Unauthorized: Incorrect API key provided: sk-x., url: http://h/v1/responses",
		}},
		{"codex: 429", Rate, Report{
			Program: "codex",
			Text:    "exceeded retry limit, last status: 429 Too Many Requests",
		}},
		{"codex: 429 in standard error", Rate, Report{
			Program: "codex",
			Stderr:  "stream error: exceeded retry limit, last status: 429 Too Many Requests",
		}},
		{"codex: plan", Plan, Report{
			Program: "codex",
			Text: "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro) or try " +
				"again at 4:20 AM.",
		}},
		{"codex: old plan", Plan, Report{
			Program: "codex",
			Stderr:  "ERROR: You've hit your usage limit. Upgrade to Pro or try again in 3 hours 2 minutes.",
		}},
		{"codex: plan as JSON", Plan, Report{
			Program: "codex",
			Text: `{"type":"error","error":{"type":"usage_limit_reached","message":"The usage limit has been ` +
				`reached"},"status_code":429}`,
		}},
		{"codex: credit", Credit, Report{
			Program: "codex",
			Text:    "Quota exceeded. Check your plan and billing details.",
		}},
		{"codex: capacity", Overload, Report{
			Program: "codex",
			Text:    "Selected model is at capacity. Please try a different model.",
		}},
		{"codex: output", Output, Report{
			Program: "codex",
			Text:    "Incomplete response returned, reason: max_output_tokens",
		}},
		{"codex: dropped", Unreachable, Report{
			Program: "codex",
			Text: "stream disconnected before completion: Transport error: network error: error decoding " +
				"response body",
		}},

		{"gemini: 401", Login, Report{
			Program: "gemini", HTTP: 401, Exit: 145,
			Text: `{"error":{"code":401,"status":"UNAUTHENTICATED"}}`,
		}},
		{"gemini: 401, stream", Login, Report{
			Program: "gemini",
			Text:    `[API Error: {"error":{"code":401,"message":"Request had invalid authentication credentials."}}]`,
		}},
		{"gemini: no key", Login, Report{
			Program: "gemini", Exit: 41,
			Stderr: "When using Gemini API, you must specify the GEMINI_API_KEY environment variable.",
		}},
		{"gemini: 429", Rate, Report{
			Program: "gemini",
			Text:    "[API Error: Resource has been exhausted (e.g. check quota).]",
		}},
		{"gemini: 429 by its exit code", Rate, Report{Program: "gemini", Exit: 173, Text: "[API Error: Slow down.]"}},
		{"gemini: plan", Plan, Report{
			Program: "gemini", HTTP: 429,
			Text: "You have exhausted your daily quota on this model.",
		}},
		{"gemini: older plan", Plan, Report{
			Program: "gemini",
			Stderr:  "You have exhausted your capacity on this model. Your quota will reset after 53s.",
		}},
		{"gemini: credit", Credit, Report{
			Program: "gemini", HTTP: 429,
			Text: "Your prepayment credits are depleted. Please go to AI Studio to manage your project and billing.",
		}},
		{"gemini: 503", Overload, Report{
			Program: "gemini", Exit: 247,
			Text: "[API Error: The model is overloaded. Please try again later.]",
		}},
		{"gemini: dropped", Unreachable, Report{
			Program: "gemini", Exit: 1,
			Text:   "[API Error: terminated]",
			Stderr: "Attempt 1 failed with status 503. Retrying with backoff...",
		}},
		{"gemini: unreachable", Unreachable, Report{
			Program: "gemini", Exit: 1,
			Text: "exception TypeError: fetch failed sending request",
		}},
		{"gemini: no finish", "", Report{Program: "gemini", Text: "Model stream ended without a finish reason."}},

		{"any: credit of gemini", Credit, Report{
			Text: "[API Error: Your prepayment credits are depleted.]", Stderr: "Attempt 1 failed with status 429.",
		}},
		{"any: credit of gemini, in one text", Credit, Report{
			Printed: "Attempt 1 failed with status 429.\n[API Error: Your prepayment credits are depleted.]",
		}},
		{"any: 429", Rate, Report{Stderr: "Input tokens: 5\nHTTP 429"}},
		{"any: counts", "", Report{Stderr: "Input tokens: 429\nusage: in 401 out 2\ncontext capacity: 9"}},
		{"any: capacity", Overload, Report{Stderr: "Service at capacity"}},
		{"any: number that contains 429", "", Report{Stderr: "Input tokens: 14290"}},
		{"any: login", Login, Report{Text: "Please run /login"}},
		{"any: expired login", Login, Report{Text: "OAuth token has expired"}},
		{"any: limit", Rate, Report{Text: "would exceed your rate limit of 30,000 input tokens per minute"}},
		{"any: nothing", "", Report{Stderr: "hook said no"}},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.want, row.report.Limit(time.Time{}, time.UTC).Kind) })
	}
}

// TestWaited has what codex and gemini print without a network until they are ended.
func TestWaited(t *testing.T) {
	const (
		codex  = `{"type":"error","message":"Reconnecting... waiting for network (Connection failed: error sending request)"}`
		gemini = "Attempt 2 failed. Retrying with backoff... Error: exception TypeError: fetch failed sending request\n" +
			"    at async Models.generateContent (file:///bundle/chunk.js:268643:16)\n"
		begun = `{"type":"init","model":"auto"}` + "\n" + `{"type":"message","role":"user","content":"hi"}` + "\n"
	)
	for name, row := range map[string]struct {
		program, stdout, stderr string
		want                    bool
	}{
		"codex":                     {"codex", `{"type":"turn.started"}` + "\n" + codex + "\n", "", true},
		"codex, connected again":    {"codex", codex + "\n" + `{"type":"item.started"}` + "\n", "", false},
		"codex, another error":      {"codex", `{"type":"error","message":"Sandbox: Reconnecting... x"}`, "", false},
		"codex, nothing printed":    {"codex", "", "", false},
		"gemini":                    {"gemini", begun, gemini, true},
		"gemini as JSON":            {"gemini", "", "Warning: colours\n" + gemini, true},
		"gemini, it has worked":     {"gemini", begun + `{"type":"tool_use","tool_name":"shell"}`, gemini, false},
		"gemini, connected again":   {"gemini", begun, gemini + "Loaded cached credentials.\n", false},
		"gemini, status of a limit": {"gemini", begun, "Attempt 1 failed with status 429. Retrying with backoff...", false},
		"another program":           {"", codex, gemini, false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, row.want, Report{Program: row.program, Stderr: row.stderr}.Waited(row.stdout))
		})
	}
}
