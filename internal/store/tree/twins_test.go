package tree_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/store/tree"
)

// TestNamesThatOtherSystemsRefuse are left out and stay in the folder, unless they are tracked.
func TestNamesThatOtherSystemsRefuse(t *testing.T) {
	for name, row := range map[string]struct {
		tracked, files, left []string
	}{
		"a new name beside a tracked one":    {[]string{"b"}, []string{"B", "b"}, []string{"B"}},
		"two new names":                      {nil, []string{"B", "b", "bb"}, []string{"b"}},
		"both are tracked":                   {[]string{"B", "b"}, []string{"B", "b"}, nil},
		"another case than a removed file":   {[]string{"b"}, []string{"B"}, nil},
		"a folder":                           {[]string{"d/x"}, []string{"D/x", "d/x"}, []string{"D"}},
		"a file beside a folder":             {nil, []string{"d/x", "D"}, []string{"d"}},
		"an ignored name counts for nothing": {nil, []string{"D.LOG", "d.log"}, []string{"D.LOG"}},
		"in other folders":                   {nil, []string{"d/x", "X"}, nil},
		"not ASCII":                          {[]string{"é"}, []string{"É", "é"}, []string{"É"}},
		"control characters":                 {[]string{"a\x7f"}, []string{"a\nb", "a\tb/x", "a\x7f", "ab"}, []string{"a\tb", "a\nb"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, s := t.TempDir(), openStore(t)
			for _, f := range row.files {
				lay(t, dir, file(f, "x"))
			}
			rules := tree.Rules{Tracked: row.tracked, Ignore: []string{"D.LOG"}, Portable: true}
			saved := must(tree.Save(t.Context(), s, dir, rules, nil))(t)
			var left []string
			for _, l := range saved.Skipped {
				left = append(left, l.Path)
				require.Contains(t, []tree.Reason{tree.ReasonName, tree.ReasonIgnored}, l.Reason)
			}
			require.Equal(t, row.left, left)

			must(tree.CheckoutOver(t.Context(), s, saved.Tree, dir, tree.Rules{Ignore: rules.Ignore, Portable: true}, tree.Over{
				Keep: func(path string) error { t.Errorf("kept %q", path); return nil },
			}))(t)
			for _, f := range row.files {
				must(os.Lstat(dir + "/" + f))(t)
			}
			rules.Tracked = paths(saved.Tree)
			again := must(tree.Save(t.Context(), s, dir, rules, nil))(t)
			require.Equal(t, saved.Digest, again.Digest)
		})
	}
}

// TestHidden: rules of the nearest folder count most, and what is below an ignored folder is ignored.
func TestHidden(t *testing.T) {
	dir := t.TempDir()
	lay(t, dir, file("a.log", ""), file("b.txt", ""), file("build/x/y", ""), file("d/a.log", ""), file("d/keep.log", ""))
	saved := must(tree.Save(t.Context(), openStore(t), dir, tree.Rules{}, nil))(t)
	was := &tree.Ignores{Files: map[string]string{".": "/a.log\n"}}
	now := &tree.Ignores{Files: map[string]string{".": "*.log\nbuild/\n", "d": "!keep.log\n"}}
	require.Equal(t, []string{"build/x/y", "d/a.log"}, saved.Tree.Hidden(was, now))
	require.Equal(t, []string{"a.log"}, saved.Tree.Hidden(nil, was))
	require.Empty(t, saved.Tree.Hidden(now, was))
}
