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

func TestTableNamesItsCommands(t *testing.T) {
	a := &app{}
	for _, c := range commands() {
		require.Equal(t, c.name, c.new(a).Name())
	}
}

// TestHelpListsCommandsInOrder: the program shows the main commands in the order of the table, and all of them by group
// on request.
func TestHelpListsCommandsInOrder(t *testing.T) {
	helped := func(args ...string) string {
		var out strings.Builder
		require.Zero(t, Main(args, strings.NewReader(""), &out, &out))
		return out.String()
	}
	main := helped("--help")
	require.NotContains(t, main, groups()[1].Title)
	rest, found := main, false
	for _, name := range strings.Fields("init plan run list status watch decide steer pause resume cancel diff report revert " +
		"remove doctor") {
		_, rest, found = strings.Cut(rest, "\n  "+name+" ")
		require.True(t, found, "%s is missing, or not in order:\n%s", name, main)
	}
	rest = "\n" + helped("help", "all")
	for _, g := range groups() {
		_, rest, found = strings.Cut(rest, "\n"+g.Title+"\n")
		require.True(t, found, "%s is missing, or not in order", g.Title)
		require.Regexp(t, `^  \S`, rest, "%s has no command", g.Title)
	}
}

// TestAliasesAreCommandsWithFlags: an alias accepts what its command accepts, also behind flags of the program.
func TestAliasesAreCommandsWithFlags(t *testing.T) {
	root := (&app{}).root()
	for _, row := range [][2]string{
		{"diagnose x", "status --verbose x"}, {"--trust diagnose x --json", "--trust status --verbose x --json"},
		{"--settings f evidence x", "--settings f report --markdown x"}, {"--settings=f attach", "--settings=f watch"},
		{"help diagnose", "help status"}, {"status diagnose", "status diagnose"}, {"--settings", "--settings"}, {"", ""},
	} {
		require.Equal(t, strings.Fields(row[1]), expanded(root, strings.Fields(row[0])), row[0])
	}
}
