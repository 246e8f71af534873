package realcli

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/agent/limits"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/test/modelapi"
)

var (
	large = modelapi.Tokens{Input: 1234, Output: 567, CacheRead: 8900, CacheWrite: 321}
	small = modelapi.Tokens{Input: 11, Output: 22, CacheRead: 9000, CacheWrite: 44}
)

// answer has words of failures. No answer is judged by its text.
const answer = "You've hit your usage limit. HTTP 429: rate limit. Credit balance is too low. Please run /login"

// TestAnswersAreReadAndCounted calls tools and answers.
func TestAnswersAreReadAndCounted(t *testing.T) {
	for name, f := range forms() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := f.start(t, f.shell("I write.", "echo hello > greeting", large), f.shell("I fail.", "cat missing", small),
				modelapi.Turn{Text: answer, Usage: small})
			o := p.call(f.args, nil)
			reply, failure := p.read(o)
			require.Nil(t, failure, o.stderr)
			require.Equal(t, answer, reply.Text)
			require.NotEmpty(t, reply.SessionID)
			p.requireCost(reply, o, run.CostExact)
			require.Equal(t, "hello\n", p.file(p.work, "greeting"))
			log := p.api.Log()
			require.Equal(t, 2, log[len(log)-1].Results)
		})
	}
}

// failures are the faults of a provider, and what becomes of the call.
var failures = []struct {
	fault    modelapi.FaultKind
	cause    limits.Kind
	category run.Category
	forms    []string
}{
	{modelapi.FaultUnauthorized, limits.Login, run.CategoryAgentExit,
		[]string{adapter.ClaudeStream, adapter.CodexJSONL, adapter.GeminiJSON}},
	{modelapi.FaultRate, limits.Rate, run.CategoryRateLimit,
		[]string{adapter.ClaudeJSON, adapter.CodexJSONL, adapter.GeminiStream}},
	{modelapi.FaultPlan, limits.Plan, run.CategoryRateLimit, []string{adapter.CodexJSONL, adapter.GeminiStream}},
	{modelapi.FaultOverload, limits.Overload, run.CategoryRateLimit,
		[]string{adapter.ClaudeStream, adapter.CodexJSONL, adapter.GeminiJSON}},
	{modelapi.FaultCredit, limits.Credit, run.CategoryAgentExit,
		[]string{adapter.ClaudeJSON, adapter.CodexJSONL, adapter.GeminiStream}},
	{modelapi.FaultOverlong, limits.Output, run.CategoryOutputTruncated,
		[]string{adapter.ClaudeStream, adapter.ClaudeJSON, adapter.CodexJSONL}},
	{modelapi.FaultDropped, limits.Unreachable, run.CategoryUnreachable,
		[]string{adapter.ClaudeStream, adapter.CodexJSONL, adapter.GeminiJSON}},
}

// known is how much of the cost of a failed call its output shows, after a first answer.
func known(form string, fault modelapi.FaultKind) run.CostKnown {
	if fault == modelapi.FaultDropped || form != adapter.ClaudeStream && form != adapter.ClaudeJSON {
		return run.CostAtLeast
	}
	return run.CostExact
}

// TestFailuresAreClassified lets the provider fail after one answer.
func TestFailuresAreClassified(t *testing.T) {
	all := forms()
	for _, row := range failures {
		for _, name := range row.forms {
			t.Run(string(row.fault)+" "+name, func(t *testing.T) {
				t.Parallel()
				f := all[name]
				p := f.start(t, f.shell("I call a tool.", "echo hello", large), modelapi.Turn{
					Text: answer, Usage: small,
					Fault: modelapi.Fault{Kind: row.fault}, Times: modelapi.Always,
				})
				o := p.call(f.args, nil)
				reply, failure := p.read(o)
				require.NotNil(t, failure, o.stdout)
				require.Equal(t, row.category, failure.Category, failure.Message)
				require.Equal(t, row.cause, failure.Cause, failure.Message)
				require.Equal(t, row.cause == limits.Login || row.cause == limits.Credit, failure.Permanent)
				p.requireCost(reply, o, known(name, row.fault))
			})
		}
	}
}

// TestUsageLimitOfSubscription uses the login of a subscription, which claude reports in another way than a key.
func TestUsageLimitOfSubscription(t *testing.T) {
	t.Parallel()
	f := forms()[adapter.ClaudeStream]
	f.cli.Environ = func(url string) []string {
		return []string{"ANTHROPIC_BASE_URL=" + url, "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-test"}
	}
	p := f.start(t, modelapi.Turn{Fault: modelapi.Fault{Kind: modelapi.FaultPlan, After: 7200}, Times: modelapi.Always})
	o := p.call(f.args, nil)
	_, failure := p.read(o)
	require.NotNil(t, failure, o.stdout)
	require.Equal(t, limits.Plan, failure.Cause, failure.Message)
	require.Contains(t, o.stdout, `"rate_limit_info":{"status":"rejected"`)
	require.WithinDuration(t, o.exit.Started.Add(2*time.Hour), failure.Until, 2*time.Minute)
	require.Len(t, p.api.Log(), 1)
}

// TestRefusedCallsCostNothing refuses the first request.
func TestRefusedCallsCostNothing(t *testing.T) {
	for _, name := range []string{adapter.ClaudeJSON, adapter.CodexJSONL, adapter.GeminiStream} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := forms()[name].start(t, modelapi.Turn{
				Fault: modelapi.Fault{Kind: modelapi.FaultUnauthorized}, Times: modelapi.Always,
			})
			reply, failure := p.read(p.call(p.args, nil))
			require.NotNil(t, failure)
			require.Equal(t, limits.Login, failure.Cause, failure.Message)
			require.Zero(t, reply.CostUSD, "%+v", reply)
		})
	}
}

// TestKilledCallsAreCounted ends calls in the middle of the second answer, and continues their sessions.
func TestKilledCallsAreCounted(t *testing.T) {
	for name, want := range map[string]run.CostKnown{
		adapter.ClaudeStream: run.CostAtLeast, adapter.ClaudeJSON: run.CostUnknown, adapter.CodexJSONL: run.CostAtLeast,
		adapter.GeminiStream: run.CostAtLeast,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := forms()[name]
			p := f.start(t, f.shell("I call a tool.", "expr 1234 \\* 5678", large), modelapi.Turn{
				Text: "This answer ends in the middle.", Usage: small,
				Fault: modelapi.Fault{Kind: modelapi.FaultSilent, For: time.Hour},
			})
			o := p.call(f.args, func(stdout string) {
				<-p.api.Silent()
				a, ok := adapter.Find(name)
				require.True(t, ok)
				require.Eventually(t, func() bool {
					printed := !a.Stream || name == adapter.CodexJSONL || strings.Contains(p.file(stdout), "This answer")
					return printed && p.saved("7006652")
				}, time.Minute, 20*time.Millisecond, "the first half is printed and the tool's result is in the session")
			})
			reply, failure := p.read(o)
			require.NotNil(t, failure)
			require.True(t, o.exit.Killed)
			require.Equal(t, run.CategoryUnknown, failure.Category)
			p.requireCost(reply, o, want)
			if name == adapter.ClaudeStream {
				require.Equal(t, p.counted(), reply.Tokens, "the provider reported no more")
			}
			o.exit.Killed, o.exit.TimedOut = false, true
			again, failure := p.read(o)
			require.Equal(t, run.CategoryAgentTimeout, failure.Category)
			require.Equal(t, reply, again)
			if reply.SessionID != "" {
				p.resume(reply.SessionID)
			}
		})
	}
}

// resume continues the session of a killed call: no answered request is made again.
func (p *place) resume(session string) {
	p.t.Helper()
	a, ok := adapter.Find(p.adapter)
	require.True(p.t, ok)
	argv, ok := a.Resume(append([]string{p.cli.Name}, p.args...), session)
	require.True(p.t, ok)
	p.api.Script(modelapi.Turn{Text: "Done after all.", Usage: small})
	before := len(p.api.Log())
	o := p.call(argv[1:], nil)
	reply, failure := p.read(o)
	require.Nil(p.t, failure, o.stderr)
	require.Equal(p.t, "Done after all.", reply.Text)
	require.Equal(p.t, p.adapter == adapter.ClaudeStream, session != reply.SessionID, "claude continues a copy")
	log := p.api.Log()[before:]
	require.Len(p.t, log, 1)
	require.NotZero(p.t, log[0].Results, "the result of the tool is in the session")
}

// TestClaudeStopsAtBudget reaches the amount that Passbook allows a call after the first model request.
func TestClaudeStopsAtBudget(t *testing.T) {
	t.Parallel()
	f := forms()[adapter.ClaudeJSON]
	p := f.start(t, f.shell("I write.", "echo hello > greeting", large), modelapi.Turn{Text: answer, Usage: small})
	kind, _ := adapter.Find(adapter.ClaudeJSON)
	argv, ok := kind.Budget(append([]string{"claude"}, f.args...), 0.0001)
	require.True(t, ok)
	o := p.call(argv[1:], nil)
	reply, failure := p.read(o)
	require.NotNil(t, failure, o.stdout)
	require.Equal(t, run.CategoryBudgetExceeded, failure.Category, o.stdout)
	require.True(t, failure.Permanent)
	require.Greater(t, reply.CostUSD, 0.0001, "it compares after a request")
}
