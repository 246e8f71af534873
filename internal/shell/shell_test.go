package shell_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/shell"
)

func TestShellReadsQuotedWords(t *testing.T) {
	words := []string{
		"plain", "/a/b-c_d.e", "two words", "it's", `"quoted"`, "$HOME", "`id`", "a;b", "a&b", "a|b", "*", "?", "[a]",
		"{a,b}", "~", "~root", "a~b", "=ls", "a=b", "#a",
		"!a", `back\slash`, "line\nfeed", "tab\tstop", "<in", ">out", "(a)", "--flag=x", "ä", "",
	}
	for _, sh := range []string{"sh", "bash"} {
		path, err := exec.LookPath(sh)
		if err != nil {
			continue
		}
		out, err := exec.Command(path, "-c", "printf '%s\\0' "+shell.Line(words...)).Output()
		require.NoError(t, err)
		require.Equal(t, words, strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"))
	}
}

func TestQuoteOnlyWhenNeeded(t *testing.T) {
	require.Equal(t, "starter resume /runs/one --usd 5", shell.Sprintf("starter resume %s --usd %d", "/runs/one", 5))
	require.Equal(t, `starter resume '/my runs/it'\''s'`, shell.Sprintf("starter resume %s", "/my runs/it's"))
}
