package pipeline

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConfigHash(t *testing.T) {
	original := string(read(t, "corpus-integration.yaml"))
	hash := func(src string) string {
		all := folderFor([]byte(src))
		d, problems := Parse("x.yaml", []byte(src), all)
		require.Empty(t, problems)
		return ConfigHash(d)
	}
	first := hash(original)
	require.Regexp(t, `^[0-9a-f]{16}$`, first)
	require.Equal(t, first, hash(original))
	for name, c := range map[string]struct {
		old, new string
		changes  bool
	}{
		"another file": {"R5: research/R5-COMBINATION-THEORY.md", "R5: research/other.md", true},
		"one file more": {"R5: research/R5-COMBINATION-THEORY.md",
			"R5: research/R5-COMBINATION-THEORY.md, R6: x.md", true},
		"another label": {"R5: research", "R-five: research", true},
		"another order of files": {"CD-005: compositional-core/case-studies/CD-005-multi-axis.md, TC-Additions: " +
			"skill-enrichments/tension-composition-additions.md",
			"TC-Additions: skill-enrichments/tension-composition-additions.md, CD-005: " +
				"compositional-core/case-studies/CD-005-multi-axis.md", true},
		"another set id":        {"  S7:", "  S8:", true},
		"another rhythm":        {"- {role: verifier, order: C}", "- {role: builder, order: C}", true},
		"another shift":         {"B: 2/5", "B: 1/5", true},
		"another model":         {"claude-opus-4-6", "claude-opus-4-7", true},
		"another reply format":  {"reply: claude-json", "reply: text", true},
		"another content":       {"Content: _content.md", "Content: other.md", true},
		"another seed":          {"seed/page.html", "seed/other.html", true},
		"another prompt":        {"prompts/weaver.md", "prompts/other.md", true},
		"another check":         {"between: [940, 960]", "between: [940, 961]", true},
		"who sees whom":         {"order: A, see: last", "order: A", true},
		"another word in until": {"until: score >= 3.5", "until: score > 3.5", true},
		"other pictures":        {"768x1024", "800x600", true},
		"the timeout":           {"timeout: 10m", "timeout: 20m", false},
		"the attempts":          {"  attempts: 3\n", "  attempts: 4\n", false},
		"the budget":            {"usd: 350", "usd: 400", false},
		"how often it repeats":  {"max: 6", "max: 3", false},
		"until which threshold": {"score >= 3.5", "score >= 3.75", false},
		"the fallback price":    {"input: 15", "input: 5", false},
		"the pause after a stage": {"    checkpoint: cp-{set}", "    checkpoint: cp-{set}\n    pause_after: true",
			false},
		"a rotation's label":     {"B: 2/5", "B: {shift: 2/5, label: Middle}", false},
		"attempts at pictures":   {"attempts: 3, if_failing", "attempts: 2, if_failing", false},
		"a comment":              {"# S1 … S7", "# all", false},
		"the layout of the file": {"roles:\n", "\n\nroles:\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			src := original
			require.Contains(t, src, c.old)
			require.Equal(t, c.changes, hash(strings.Replace(src, c.old, c.new, 1)) != first)
		})
	}
}
