package pipeline

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUsageOfPlainText(t *testing.T) {
	for name, row := range map[string]struct{ agent, want string }{
		"tokens": {`reply: text, usage: {find: '(?P<input>\d+) in, (?P<output>\d+) out'}`, ""},
		"no group": {`reply: text, usage: {find: '(\d+) in'}`,
			"has no named group; write one such as (?P<output>[0-9]+)"},
		"another name": {`reply: text, usage: {find: '(?P<tokens>\d+)'}`,
			`has a group "tokens"; name its groups input, output`},
		"a mistake": {`reply: text, usage: {find: '(?P<input>'}`, "is not a regular expression: missing closing )"},
		"an agent that reports": {`reply: claude-stream, usage: {find: '(?P<input>\d+)'}`,
			"is for reply: text, and claude-stream reports what a call used; leave it out"},
		"a budget in USD":     {"reply: text, usage: {find: '(?P<usd>[0-9.]+) USD'}}\nbudget: {usd: 5", ""},
		"a budget and no USD": {"reply: text, usage: {find: '(?P<input>[0-9.]+)'}}\nbudget: {usd: 5", "write price: "},
		"a budget and a price": {
			"reply: text, price: {input: 1, output: 2}, usage: {find: '(?P<input>[0-9.]+)'}}\nbudget: {usd: 5", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(healthy, "reply: text", row.agent, 1)
			_, problems := Parse("x.yaml", []byte(text), folderFor([]byte(healthy)))
			onlyProblem(t, problems, row.want)
		})
	}
}

// onlyProblem requires a problem with this text, and no other; empty: none.
func onlyProblem(t *testing.T, problems []Problem, want string) {
	t.Helper()
	var all []string
	for _, p := range problems {
		all = append(all, p.What)
	}
	if want == "" {
		require.Empty(t, all)
		return
	}
	require.Len(t, all, 1)
	require.Contains(t, all[0], want)
}

// TestRolesThatContinueTheirSession: only a role whose agent can, and that is asked alone.
func TestRolesThatContinueTheirSession(t *testing.T) {
	const alone, together = "{role: judge, order: Y, see: last}", "{together: [judge, jury]}"
	for name, row := range map[string]struct{ run, reply, step, want string }{
		"claude":                {"[claude, -p]", "claude-stream", alone, ""},
		"codex":                 {"[codex, exec, --json]", "codex-jsonl", alone, ""},
		"gemini":                {"[/opt/gemini, -o, json]", "gemini-json", alone, ""},
		"a session is selected": {"[claude, -p, --continue]", "claude-stream", alone, "its agent cannot continue sessions"},
		"a text":                {"[claude, -p]", "text", alone, "its agent cannot continue sessions"},
		"in a group": {"[claude, -p]", "claude-stream", together,
			"continues its session, and roles under together cannot"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.NewReplacer("agent: {run: [claude, -p], reply: text}", "agent: {run: "+row.run+", reply: "+
				row.reply+"}", "gives: report,", "gives: report, session: continue,", alone, row.step,
				"corpus:", "  jury: {prompt: prompts/judge.md, gives: report}\ncorpus:").Replace(healthy)
			_, problems := Parse("x.yaml", []byte(text), folderFor([]byte(healthy)))
			onlyProblem(t, problems, row.want)
		})
	}
}
