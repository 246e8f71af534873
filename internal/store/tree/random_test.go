package tree_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/store/tree"
)

// TestRandomTrees changes a folder at random, as an agent might, and saves it
// after each few changes with the last save's cache. Another folder follows by
// checkouts, and a third is checked out each time. All three agree, with the
// files themselves and in the digest, and so does [tree.Diff].
func TestRandomTrees(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			s, from, follows := openStore(t), t.TempDir(), t.TempDir()
			t.Cleanup(func() { allowAll(from); allowAll(follows) })
			g := gardener{r: rand.New(rand.NewPCG(seed, 1)), dir: from}
			var last tree.Saved
			for range 10 {
				for range 8 {
					require.NoError(t, g.change())
				}
				saved := save(t, s, from, last.Cache)
				require.Empty(t, saved.Skipped)
				require.Equal(t, save(t, s, from, nil).Digest, saved.Digest, "the cache hid a change")
				cache := must(tree.Checkout(t.Context(), s, saved.Digest, follows, tree.Rules{}))(t)
				require.Equal(t, there(t, from), there(t, follows))
				require.Equal(t, saved.Digest, save(t, s, follows, cache).Digest)
				anew := t.TempDir()
				must(tree.Checkout(t.Context(), s, saved.Digest, anew, tree.Rules{}))(t)
				require.Equal(t, there(t, from), there(t, anew))
				require.Equal(t, saved.Tree.Entries, apply(last.Tree, tree.Diff(last.Tree, saved.Tree)))
				last = saved
			}
		})
	}
}

// apply changes a tree.
func apply(from tree.Tree, changes []tree.Change) []tree.Entry {
	all := map[string]tree.Entry{}
	for _, e := range from.Entries {
		all[e.Path] = e
	}
	for _, c := range changes {
		delete(all, c.Before.Path)
	}
	for _, c := range changes {
		if c.Kind != tree.Removed {
			all[c.Path] = c.After
		}
	}
	out := []tree.Entry{}
	for _, e := range all {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b tree.Entry) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// gardener changes a folder at random.
type gardener struct {
	r   *rand.Rand
	dir string
}

func (g gardener) change() error {
	folders, files := g.list()
	in := g.dir + "/" + folders[g.r.IntN(len(folders))] + "/"
	one := g.dir + "/" + files[g.r.IntN(len(files))]
	switch g.r.IntN(10) {
	case 0:
		return ignoreTaken(os.Mkdir(in+g.name(), 0o700|g.perm()))
	case 1, 2, 3:
		return ignoreTaken(os.WriteFile(in+g.name(), g.content(), g.perm()))
	case 4:
		return ignoreTaken(os.Symlink(path.Join("down", g.name()), in+g.name()))
	case 5:
		return ignoreTaken(os.Rename(one, in+g.name()))
	case 6:
		return ignoreTaken(os.Remove(one))
	case 7:
		return ignoreTaken(os.WriteFile(one, g.content(), 0o600))
	case 8:
		return g.chmod(one)
	default:
		if in == g.dir+"/./" || g.r.IntN(3) > 0 {
			return nil
		}
		return os.RemoveAll(in)
	}
}

// list returns the folders, and the other files, at least one that does not exist.
func (g gardener) list() (folders, others []string) {
	others = []string{"nothing"}
	_ = fs.WalkDir(os.DirFS(g.dir), ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			folders = append(folders, path)
		} else if err == nil {
			others = append(others, path)
		}
		return err
	})
	return folders, others
}

// name is of few names of each length, so that they meet, and of any bytes.
func (g gardener) name() string {
	if g.r.IntN(2) == 0 {
		return string(rune('a' + g.r.IntN(5)))
	}
	name := make([]byte, 1+g.r.IntN(3))
	for i := range name {
		for name[i] == 0 || name[i] == '/' {
			name[i] = byte(g.r.IntN(256))
		}
	}
	return strings.ReplaceAll(string(name), ".", "_") + "x"
}

func (g gardener) content() []byte {
	return []byte(strings.Repeat(fmt.Sprint(g.r.IntN(4)), g.r.IntN(3)))
}

func (g gardener) perm() fs.FileMode {
	return []fs.FileMode{0o644, 0o600, 0o755, 0o400, 0o777}[g.r.IntN(5)]
}

func (g gardener) chmod(path string) error {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	return os.Chmod(path, g.perm())
}

// ignoreTaken ignores a change that is impossible at its path.
func ignoreTaken(err error) error {
	if _, ok := err.(*fs.PathError); ok {
		return nil
	}
	if _, ok := err.(*os.LinkError); ok {
		return nil
	}
	return err
}
