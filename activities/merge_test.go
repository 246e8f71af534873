package activities

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/run"
)

// content describes a tree: path to content, "x:" before the content of an executable, "->" before a symlink's target.
type content map[string]string

func (f content) with(pairs ...string) content {
	out := content{}
	for p, c := range f {
		out[p] = c
	}
	for i := 0; i < len(pairs); i += 2 {
		if out[pairs[i]] = pairs[i+1]; pairs[i+1] == "" {
			delete(out, pairs[i])
		}
	}
	return out
}

func putTree(t *testing.T, s *store.Store, f content) run.Blob {
	t.Helper()
	var entries []tree.Entry
	for path, text := range f {
		e := tree.Entry{Path: path, Mode: tree.ModeFile, Perm: 0o644}
		if target, ok := strings.CutPrefix(text, "->"); ok {
			entries = append(entries, tree.Entry{Path: path, Mode: tree.ModeSymlink, Link: target})
			continue
		}
		if rest, ok := strings.CutPrefix(text, "x:"); ok {
			text, e.Mode, e.Perm = rest, tree.ModeExecutable, 0o755
		}
		b, err := blobs.Put(t.Context(), s, []byte(text))
		require.NoError(t, err)
		e.Digest, e.Size = store.Digest(b.Digest), int64(len(text))
		entries = append(entries, e)
	}
	tr := (tree.Tree{}).With(entries...)
	require.NoError(t, tree.Put(t.Context(), s, tr))
	return run.Blob{Digest: string(tr.Digest())}
}

// TestLanesMerge merges two lanes by table: either the whole result, or only conflicts.
func TestLanesMerge(t *testing.T) {
	s, err := store.Open(t.Context(), "file://"+t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	long := "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
	base := content{"a.txt": long, "b/c.txt": "c\n", "bin": "\x00one", "run.sh": "echo\n", "link": "->a.txt"}
	first, last := strings.Replace(long, "1\n", "one\n", 1), strings.Replace(long, "9\n", "nine\n", 1)
	for name, row := range map[string]struct {
		ours, theirs, want content
		conflicts          []string
	}{
		"other files": {
			base.with("b/c.txt", "d\n"),
			base.with("new", "n"),
			base.with("b/c.txt", "d\n", "new", "n"),
			nil,
		},
		"the same change": {
			base.with("bin", "\x00two"),
			base.with("bin", "\x00two"),
			base.with("bin", "\x00two"),
			nil,
		},
		"other lines": {
			base.with("a.txt", first),
			base.with("a.txt", last),
			base.with("a.txt", strings.Replace(first, "9\n", "nine\n", 1)),
			nil,
		},
		"the same line": {
			base.with("a.txt", first),
			base.with("a.txt", strings.Replace(long, "1\n", "I\n", 1)),
			nil,
			[]string{"a.txt"},
		},
		"delete and modify": {
			base.with("a.txt", ""),
			base.with("a.txt", last),
			nil,
			[]string{"a.txt"},
		},
		"modify and delete": {
			base.with("a.txt", last),
			base.with("a.txt", ""),
			nil,
			[]string{"a.txt"},
		},
		"delete both": {
			base.with("a.txt", ""),
			base.with("a.txt", ""),
			base.with("a.txt", ""),
			nil,
		},
		"rename and modify": {
			base.with("a.txt", "", "z.txt", long),
			base.with("a.txt", last),
			base.with("a.txt", "", "z.txt", last),
			nil,
		},
		"two renames": {
			base.with("a.txt", "", "y.txt", long),
			base.with("a.txt", "", "z.txt", long),
			nil,
			[]string{"a.txt", "y.txt", "z.txt"},
		},
		"add and add": {
			base.with("new", "mine\n"),
			base.with("new", "theirs\n"),
			nil,
			[]string{"new"},
		},
		"mode and content": {
			base.with("run.sh", "x:echo\n"),
			base.with("run.sh", "echo 2\n"),
			base.with("run.sh", "x:echo 2\n"),
			nil,
		},
		"binary": {
			base.with("bin", "\x00two"),
			base.with("bin", "\x00three"),
			nil,
			[]string{"bin"},
		},
		"two links": {
			base.with("link", "->b/c.txt"),
			base.with("link", "->bin"),
			nil,
			[]string{"link"},
		},
		"a file in a folder": {
			base.with("b/c.txt", "", "b", "file"),
			base.with("b/c.txt", "changed\n"),
			nil,
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			merged, conflicts, err := mergeTrees(t.Context(), s, putTree(t, s, base), putTree(t, s, row.ours),
				putTree(t, s, row.theirs))
			require.NoError(t, err)
			if row.want != nil {
				require.Empty(t, conflicts)
				require.Equal(t, putTree(t, s, row.want).Digest, merged.Digest)
				return
			}
			require.NotEmpty(t, conflicts)
			require.Empty(t, merged.Digest)
			if row.conflicts != nil {
				require.Equal(t, row.conflicts, conflicts)
			}
		})
	}
}
