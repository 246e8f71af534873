package pipeline

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
			var all []string
			for _, p := range problems {
				all = append(all, p.What)
			}
			if row.want == "" {
				require.Empty(t, all)
			} else {
				require.Len(t, all, 1)
				require.Contains(t, all[0], row.want)
			}
		})
	}
}
