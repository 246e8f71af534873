package cli

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra/doc"
	"github.com/stretchr/testify/require"
)

//go:generate go test . -run ^TestReferenceMatchesHelp$ -update

var update = flag.Bool("update", false, "write docs/cli, and the texts that scripts compare")

// repeated is what the pages of all commands would repeat: the flags of starter, which its page documents, and --help.
var repeated = regexp.MustCompile("(?s)### Options inherited from parent commands\n.*?\n```\n\n|### Options\n\n```\n  -h, --help [^\n]*\n```\n\n|  -h, --help [^\n]*\n")

// TestReferenceMatchesHelp compares docs/cli with the help of the commands.
func TestReferenceMatchesHelp(t *testing.T) {
	pages := filepath.Join("..", "..", "docs", "cli")
	fresh := t.TempDir()
	if *update {
		require.NoError(t, os.RemoveAll(pages))
		require.NoError(t, os.MkdirAll(pages, 0o755))
		fresh = pages
	}
	root := (&app{in: strings.NewReader(""), out: io.Discard, err: &outlet{to: io.Discard}}).root()
	root.DisableAutoGenTag = true
	root.Version = ""
	require.NoError(t, doc.GenMarkdownTree(root, fresh))
	for name, page := range pagesOf(t, fresh) {
		require.NoError(t, os.WriteFile(filepath.Join(fresh, name), []byte(repeated.ReplaceAllString(page, "")), 0o600))
	}
	want, got := pagesOf(t, fresh), pagesOf(t, pages)
	require.Greater(t, len(want), 20, "there are commands")
	for name, page := range want {
		require.Equal(t, page, got[name], "docs/cli/%s is not the help of the command: go generate ./internal/cli", name)
	}
	for name := range got {
		require.Contains(t, want, name, "docs/cli/%s is of a command that does not exist: go generate ./internal/cli", name)
	}
}

// pagesOf reads a folder of pages.
func pagesOf(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	out := map[string]string{}
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(folder, e.Name()))
		require.NoError(t, err)
		out[e.Name()] = string(raw)
	}
	return out
}
