package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// TestEveryCommandHasAScript names each command that no script of this package or of the conformance suite executes.
func TestEveryCommandHasAScript(t *testing.T) {
	calls := regexp.MustCompile(`(?m)^(?:exits \d+|.*\bstarter) (.+)$`)
	root, executed := (&app{}).root(), map[string]bool{}
	for _, folder := range []string{"testdata/script", "../../test/conformance/testdata/script"} {
		scripts, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
		require.NoError(t, err)
		require.NotEmpty(t, scripts)
		for _, script := range scripts {
			raw, err := os.ReadFile(script)
			require.NoError(t, err)
			for _, call := range calls.FindAllStringSubmatch(string(raw), -1) {
				if cmd, _, err := root.Find(shellWord.FindAllString(call[1], -1)); err == nil {
					executed[cmd.CommandPath()] = true
				}
			}
		}
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Runnable() && !cmd.Hidden && !executed[cmd.CommandPath()] {
			t.Errorf("no script executes %s: add testdata/script/%s.txtar", cmd.CommandPath(), cmd.Name())
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
}

func TestVerbTableNamesItsCommands(t *testing.T) {
	a := &app{}
	for _, v := range verbs() {
		require.Equal(t, v.name, v.new(a).Name())
	}
}

// TestHelpListsVerbsByGroup requires that each command is in a group, and that no group is empty.
func TestHelpListsVerbsByGroup(t *testing.T) {
	var out strings.Builder
	require.Zero(t, Main([]string{"--help"}, strings.NewReader(""), &out, &out))
	rest, found := out.String(), false
	require.NotContains(t, rest, "Additional Commands:", "add a row with a group to verbs()")
	for _, g := range groups() {
		_, rest, found = strings.Cut(rest, "\n"+g.Title+"\n")
		require.True(t, found, "%s is missing, or not in order:\n%s", g.Title, out.String())
		require.Regexp(t, `^  \S`, rest, "%s has no command", g.Title)
	}
}
