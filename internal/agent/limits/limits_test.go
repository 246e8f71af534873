package limits

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestKind(t *testing.T) {
	for program, rows := range map[string][]struct {
		name   string
		want   Kind
		report Report // of the program
	}{
		"claude": {
			{"401", Login, Report{Code: "authentication_error", HTTP: 401,
				Text: "Invalid API key · Fix external API key"}},
			{"no login", Login, Report{Text: "Not logged in · Please run /login"}},
			{"old 401", Login, Report{Text: `API Error: 401 {"type":"error"}`}},
			{"429", Rate, Report{Code: "rate_limit_error", HTTP: 429,
				Text: "API Error: Request rejected (429) · This request would exceed your account's rate limit."}},
			{"old 429", Rate, Report{
				Text: `API Error: 429 {"type":"error","error":{"type":"rate_limit_error","message":"This request would ` +
					`exceed your account's rate limit."}}`}},
			{"text of a 429", Rate, Report{Text: "API Error: Request rejected (429) · Slow down."}},
			{"529", Overload, Report{Code: "overloaded_error", HTTP: 529,
				Text: "API Error: Repeated 529 Overloaded errors. The API is at capacity."}},
			{"old 529", Overload, Report{
				Text: `API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}},
			{"credit", Credit, Report{Code: "invalid_request_error", HTTP: 400, Text: "Credit balance is too low"}},
			{"plan", Plan, Report{Code: "usage_limit_reached", HTTP: 429,
				Text: "You've hit your 5-hour limit · resets 4:23am (UTC)"}},
			{"plan, text", Plan, Report{Text: "You've hit your limit · resets 1:30am (Asia/Dhaka)"}},
			{"older plan", Plan, Report{Text: "5-hour limit reached ∙ resets 2pm (Pacific/Auckland)"}},
			{"oldest plan", Plan, Report{Text: "Claude AI usage limit reached|1795400000"}},
			{"plan of an organisation", Plan, Report{Text: "You've hit your org's monthly usage limit"}},
			{"output", Output, Report{
				Text: "API Error: Claude's response exceeded the 64000 output token maximum. To configure this behavior, " +
					"set the CLAUDE_CODE_MAX_OUTPUT_TOKENS environment variable."}},
			{"dropped", Unreachable, Report{Code: "connection_failed",
				Text: "API Error: Connection to the API was lost (ECONNRESET). This is usually temporary — try " +
					"again."}},
			{"no name server", Unreachable, Report{
				Text: "API Error: Can't reach the API server — check your internet or DNS (ENOTFOUND)"}},
			{"refused", Unreachable, Report{
				Text: "API Error: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED)"}},
			{"no route", Unreachable, Report{
				Text: "API Error: No internet route — check your connection or VPN (ENETUNREACH)"}},
			{"output of a tool", "", Report{Text: "make: *** [test] Error 1: TestRateLimit: want 429, got 200"}},
			{"bad request", "", Report{Code: "invalid_request_error", HTTP: 400,
				Text: "API Error: 400 prompt is too long"}},
		},
		"codex": {
			{"401", Login, Report{
				Text: "unexpected status 401 Unauthorized: Incorrect API key provided: sk-x., url: " +
					"http://h/v1/responses"}},
			{"429", Rate, Report{Text: "exceeded retry limit, last status: 429 Too Many Requests"}},
			{"429 in standard error", Rate, Report{
				Stderr: "stream error: exceeded retry limit, last status: 429 Too Many Requests"}},
			{"plan", Plan, Report{
				Text: "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro) or try again at " +
					"4:20 AM."}},
			{"old plan", Plan, Report{
				Stderr: "ERROR: You've hit your usage limit. Upgrade to Pro or try again in 3 hours 2 minutes."}},
			{"plan as JSON", Plan, Report{
				Text: `{"type":"error","error":{"type":"usage_limit_reached","message":"The usage limit has been ` +
					`reached"},"status_code":429}`}},
			{"credit", Credit, Report{Text: "Quota exceeded. Check your plan and billing details."}},
			{"capacity", Overload, Report{Text: "Selected model is at capacity. Please try a different model."}},
			{"output", Output, Report{Text: "Incomplete response returned, reason: max_output_tokens"}},
			{"dropped", Unreachable, Report{
				Text: "stream disconnected before completion: Transport error: network error: error decoding response " +
					"body"}},
		},
		"gemini": {
			{"401", Login, Report{HTTP: 401, Exit: 145, Text: `{"error":{"code":401,"status":"UNAUTHENTICATED"}}`}},
			{"401, stream", Login, Report{
				Text: `[API Error: {"error":{"code":401,"message":"Request had invalid authentication ` +
					`credentials."}}]`}},
			{"no key", Login, Report{Exit: 41,
				Stderr: "When using Gemini API, you must specify the GEMINI_API_KEY environment variable."}},
			{"429", Rate, Report{Text: "[API Error: Resource has been exhausted (e.g. check quota).]"}},
			{"429 by its exit code", Rate, Report{Exit: 173, Text: "[API Error: Slow down.]"}},
			{"plan", Plan, Report{HTTP: 429, Text: "You have exhausted your daily quota on this model."}},
			{"older plan", Plan, Report{
				Stderr: "You have exhausted your capacity on this model. Your quota will reset after 53s."}},
			{"credit", Credit, Report{HTTP: 429,
				Text: "Your prepayment credits are depleted. Please go to AI Studio to manage your project and " +
					"billing."}},
			{"503", Overload, Report{Exit: 247, Text: "[API Error: The model is overloaded. Please try again later.]"}},
			{"dropped", Unreachable, Report{Exit: 1, Text: "[API Error: terminated]",
				Stderr: "Attempt 1 failed with status 503. Retrying with backoff..."}},
			{"unreachable", Unreachable, Report{Exit: 1, Text: "exception TypeError: fetch failed sending request"}},
			{"no finish", "", Report{Text: "Model stream ended without a finish reason."}},
		},
		"": {
			{"credit of gemini", Credit, Report{Text: "[API Error: Your prepayment credits are depleted.]",
				Stderr: "Attempt 1 failed with status 429."}},
			{"credit of gemini, in one text", Credit, Report{
				Printed: "Attempt 1 failed with status 429.\n[API Error: Your prepayment credits are depleted.]"}},
			{"429", Rate, Report{Stderr: "Input tokens: 5\nHTTP 429"}},
			{"counts", "", Report{Stderr: "Input tokens: 429\nusage: in 401 out 2\ncontext capacity: 9"}},
			{"capacity", Overload, Report{Stderr: "Service at capacity"}},
			{"number that contains 429", "", Report{Stderr: "Input tokens: 14290"}},
			{"login", Login, Report{Text: "Please run /login"}},
			{"expired login", Login, Report{Text: "OAuth token has expired"}},
			{"limit", Rate, Report{Text: "would exceed your rate limit of 30,000 input tokens per minute"}},
			{"nothing", "", Report{Stderr: "hook said no"}},
		},
	} {
		for _, row := range rows {
			t.Run(program+"/"+row.name, func(t *testing.T) {
				row.report.Program = program
				require.Equal(t, row.want, row.report.Limit(time.Time{}, time.UTC).Kind)
			})
		}
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
