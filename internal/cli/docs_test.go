package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// TestDocsNameCommandsThatExist parses each command and flag that a page names, as far as that is possible without
// running it. TestPagesMatchTheRun runs the blocks.
func TestDocsNameCommandsThatExist(t *testing.T) {
	top := filepath.Join("..", "..")
	pages, err := filepath.Glob(filepath.Join(top, "docs", "*.md"))
	require.NoError(t, err)
	found := 0
	for _, page := range append(pages, filepath.Join(top, "README.md"), filepath.Join(top, "SECURITY.md"),
		filepath.Join(top, "examples", "README.md")) {
		raw, err := os.ReadFile(page)
		require.NoError(t, err)
		commands, wrong := namedCommands(string(raw))
		found += commands
		require.Empty(t, wrong, page)
	}
	require.Greater(t, found, 200, "commands in pages")
}

var (
	fencedBlock   = regexp.MustCompile("(?ms)^```(.*?)\n(.*?)^```$")
	indentedLine  = regexp.MustCompile(`(?m)^    (.*starter .*)$`)
	inlineCode    = regexp.MustCompile("`([^`\n]+(?:\n[^`\n]+)?)`")
	starterCall   = regexp.MustCompile(`(?:^|\s)(?:[\w./~-]*/)?starter((?:\s+(?:"[^"]*"|'[^']*'|[^\s#|&;>"']+)+)+)`)
	shellWord     = regexp.MustCompile(`(?:"[^"]*"|'[^']*'|[^\s"'])+`)
	flagOfOthers  = regexp.MustCompile(`^--(?:profile)\b`)
	placeholders  = strings.NewReplacer("--usd N", "--usd 1", "…", "")
	shellLanguage = regexp.MustCompile(`^(?:sh|bash|console.*|)$`)
)

// namedCommands counts the commands of the starter in a page, and lists those that it would refuse.
func namedCommands(page string) (count int, wrong []string) {
	check := func(text string, complete bool) {
		for _, m := range starterCall.FindAllStringSubmatch(placeholders.Replace(text), -1) {
			count++
			if err := parseCommand(m[1], complete); err != nil {
				wrong = append(wrong, fmt.Sprintf("starter%s: %v", m[1], err))
			}
		}
	}
	for _, m := range fencedBlock.FindAllStringSubmatch(page, -1) {
		for line := range strings.Lines(strings.ReplaceAll(m[2], "\\\n", " ")) {
			command, typed := strings.CutPrefix(line, "$ ")
			if shellLanguage.MatchString(m[1]) && (typed || m[1] == "sh" || m[1] == "bash") {
				check(strings.TrimSpace(command), true)
			}
		}
	}
	page = fencedBlock.ReplaceAllString(page, "")
	for _, m := range indentedLine.FindAllStringSubmatch(page, -1) {
		check(m[1], true)
	}
	for _, m := range inlineCode.FindAllStringSubmatch(page, -1) {
		check(m[1], false)
		if name, ok := strings.CutPrefix(m[1], "--"); ok && !flagOfOthers.MatchString(m[1]) && !someVerbHas(name) {
			wrong = append(wrong, m[1]+": no command has this flag")
		}
	}
	return count, wrong
}

// parseCommand parses the arguments of a command. Those of a complete one are counted, too.
func parseCommand(text string, complete bool) error {
	var args []string
	for _, word := range shellWord.FindAllString(text, -1) {
		args = append(args, strings.NewReplacer(`"`, "", "'", "").Replace(word))
	}
	root := (&app{}).root()
	verb, rest, err := root.Find(expanded(root, args))
	if err != nil {
		return err
	}
	verb.InitDefaultHelpFlag()
	if err := verb.ParseFlags(rest); err != nil && (complete || !strings.HasPrefix(err.Error(), "flag needs an arg")) {
		return err
	}
	if help, err := verb.Flags().GetBool("help"); err != nil || help {
		return err
	}
	if verb.HasSubCommands() && verb.Flags().NArg() > 0 {
		return fmt.Errorf("%s has no command %s", verb.CommandPath(), verb.Flags().Arg(0))
	}
	if complete && verb.Args != nil {
		return verb.Args(verb, verb.Flags().Args())
	}
	return nil
}

// someVerbHas reports whether any command has the flag, which may be followed by a value.
func someVerbHas(flag string) bool {
	name, _, _ := strings.Cut(strings.ReplaceAll(flag, "=", " "), " ")
	var has func(cmd *cobra.Command) bool
	has = func(cmd *cobra.Command) bool {
		found := name == "help" || cmd.Flags().Lookup(name) != nil || cmd.PersistentFlags().Lookup(name) != nil
		for _, sub := range cmd.Commands() {
			found = found || has(sub)
		}
		return found
	}
	return has((&app{}).root())
}
