package tree

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/store"
)

// TestPatternsMeanWhatGitMeans holds the patterns to git itself.
func TestPatternsMeanWhatGitMeans(t *testing.T) {
	files := []string{
		"a", "b", "ab", "a.log", "c.log", "#c", "!d", "e ", "{x}", "x", "[1]", "1", "A",
		"dir/a", "dir/b", "dir/a.log", "dir/sub/a", "dir/sub/deep/a", "dir/sub/b.log",
		"build/a", "src/build/a", "src/build.go", "src/a/b/c", "logs/x/y/z", "tmp/keep/x", "tmp/x",
	}
	rows := [][]string{
		{"a"}, {"/a"}, {"a/"}, {"dir/"}, {"dir"}, {"/dir/a"}, {"dir/a"}, {"sub/a"}, {"**/sub/a"}, {"dir/**"},
		{"dir/**/a"},
		{"**/a"}, {"**"}, {"*"}, {"/*"}, {"/**"},
		{"*.log"}, {"*.log", "!a.log"}, {"*.log", "!dir/a.log"}, {"!a.log", "*.log"}, {"build/"}, {"/build"},
		{"src/build*"}, {"?"}, {"??"}, {"[ab]"}, {"[!ab]"}, {"[^ab]"}, {"[a-c]"},
		{"#c"}, {`\#c`}, {`\!d`}, {"e "}, {`e\ `}, {"{x}"}, {"{x,1}"}, {`\{x\}`}, {`\[1\]`}, {"[[]1]"}, {`\a`},
		{"[[:alpha:]]"}, {"[![:alpha:]]"}, {"[[:digit:][:upper:]]"}, {"*[[:space:]]"}, {""}, {" "}, {"/"},
		{"tmp/*", "!tmp/keep"}, {"tmp", "!tmp/keep"}, {"tmp/**", "!tmp/keep/"}, {"logs/**/z"}, {"logs/*/z"},
		{"logs/**/*/z"}, {"**/x/**"}, {"src/**/c"}, {"src/a**c"}, {"s*/b*"},
		{"dir/*", "!dir/sub/"}, {"dir/sub/**"}, {"**/deep"}, {"dir/**/deep/**"}, {"a**"}, {"***"}, {"*/a"}, {"/*/a"},
	}
	dir := t.TempDir()
	for _, f := range files {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(f)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, f), nil, 0o600))
	}
	git(t, dir, "init", "-q")
	s := must(store.Open(t.Context(), "file://"+t.TempDir()))(t)
	for _, patterns := range rows {
		t.Run(strings.Join(patterns, " then "), func(t *testing.T) {
			exclude := strings.Join(patterns, "\n") + "\n"
			require.NoError(t, os.WriteFile(filepath.Join(dir, ".git", "info", "exclude"), []byte(exclude), 0o600))
			want := strings.Split(git(t, dir, "ls-files", "-z", "--others", "--exclude-standard"), "\x00")
			saved := must(Save(t.Context(), s, dir, Rules{Ignore: patterns}, nil))(t)
			got := []string{}
			for _, e := range saved.Tree.Entries {
				if e.IsFile() {
					got = append(got, e.Path)
				}
			}
			require.ElementsMatch(t, want[:len(want)-1], got)
		})
	}
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	var output bytes.Buffer
	cmd.Stderr = &output
	out, err := cmd.Output()
	require.NoError(t, err, output.String())
	return string(out)
}

func TestPatternsThatCannotBeRead(t *testing.T) {
	for _, bad := range []string{"[", "a[b-", `a\`, "[[:foo:]]", `[a\`, "[a-\\"} {
		_, err := Rules{Ignore: []string{"fine", bad}}.compile()
		require.ErrorContains(t, err, "invalid ignore pattern", bad)
	}
	must(Rules{Ignore: []string{"*.log", "# [ is a comment", ""}}.compile())(t)
}

func TestSecretFileNames(t *testing.T) {
	s := must(Rules{}.compile())(t)
	for _, path := range []string{
		".env", "deep/.env", ".env.local", "server.pem", "id_rsa", "id_ed25519", "credentials", "x/credentials.json",
		".npmrc", ".netrc", ".git-credentials", "tls.key",
	} {
		require.True(t, matches(s.secrets, path, false), path)
	}
	for _, path := range []string{
		".env.example", "env", "id_rsa.pub", "credentials.go", "credentials_test.go", "keys.md", "monkey",
	} {
		require.False(t, matches(s.secrets, path, false), path)
	}
	for _, path := range []string{".ssh", "home/.aws"} {
		require.True(t, matches(s.secrets, path, true), path)
	}
}
