package mcp

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/api"
)

var update = flag.Bool("update", false, "write the list of docs/mcp.md")

// TestDocs compares the list of docs/mcp.md with the operations.
func TestDocs(t *testing.T) {
	const page, from, to = "../../docs/mcp.md", "<!-- tools -->\n", "<!-- /tools -->\n"
	list := ""
	for _, o := range api.Table() {
		list += fmt.Sprintf("- `%s%s` (%s): %s\n", prefix, o.Name, o.Access, o.Summary)
	}
	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(raw), from)
	require.True(t, ok)
	written, after, ok := strings.Cut(rest, to)
	require.True(t, ok)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(before+from+list+to+after), 0o644))
		return
	}
	require.Equal(t, list, written, "go test ./internal/mcp -run TestDocs -update")
	for _, r := range templates() {
		address := regexp.MustCompile(`\{(\w+)\}`).ReplaceAllStringFunc(r.URITemplate, func(name string) string {
			return strings.ToUpper(strings.Trim(name, "{}"))
		})
		require.Contains(t, after, "- `"+address+"`: ")
	}
}

// TestSkill: the skill has the front matter of the format, and names only tools and fields that exist.
func TestSkill(t *testing.T) {
	raw, err := os.ReadFile("../../skills/passbook/SKILL.md")
	require.NoError(t, err)
	front := regexp.MustCompile(`^---\nname: passbook\ndescription: ([^\n]+)\n---\n`).FindStringSubmatch(string(raw))
	require.Len(t, front, 2)
	require.LessOrEqual(t, len(front[1]), 1024)
	require.NotContains(t, front[1], ": ", "it would be no plain YAML scalar")
	require.Less(t, strings.Count(string(raw), "\n"), 100)
	tools := regexp.MustCompile(`passbook_(\w+)`).FindAllStringSubmatch(string(raw)+instructions, -1)
	require.NotEmpty(t, tools)
	for _, tool := range tools {
		row(t, tool[1])
	}
}
