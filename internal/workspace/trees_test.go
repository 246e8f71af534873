package workspace

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/run"
)

// content describes a tree: path to content, "x:" before the content of an executable, "->" before a symlink's target.
// In an edit of a tree, an empty content removes the path.
type content map[string]string

func (f content) edited(edit content) content {
	out := maps.Clone(f)
	for path, text := range edit {
		if out[path] = text; text == "" {
			delete(out, path)
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
	long := "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
	base := content{"a.txt": long, "b/c.txt": "c\n", "bin": "\x00one", "run.sh": "echo\n", "link": "->a.txt"}
	first, last := strings.Replace(long, "1\n", "one\n", 1), strings.Replace(long, "9\n", "nine\n", 1)
	both := strings.Replace(first, "9\n", "nine\n", 1)
	for name, row := range map[string]struct {
		ours, theirs, want content // edits of base; no want: a conflict
		conflicts          []string
	}{
		"other files":       {content{"b/c.txt": "d\n"}, content{"new": "n"}, content{"b/c.txt": "d\n", "new": "n"}, nil},
		"the same change":   {content{"bin": "\x00two"}, content{"bin": "\x00two"}, content{"bin": "\x00two"}, nil},
		"other lines":       {content{"a.txt": first}, content{"a.txt": last}, content{"a.txt": both}, nil},
		"the same line":     {content{"a.txt": first}, content{"a.txt": "I\n" + long[2:]}, nil, []string{"a.txt"}},
		"delete and modify": {content{"a.txt": ""}, content{"a.txt": last}, nil, []string{"a.txt"}},
		"modify and delete": {content{"a.txt": last}, content{"a.txt": ""}, nil, []string{"a.txt"}},
		"delete both":       {content{"a.txt": ""}, content{"a.txt": ""}, content{"a.txt": ""}, nil},
		"rename and modify": {content{"a.txt": "", "z.txt": long}, content{"a.txt": last},
			content{"a.txt": "", "z.txt": last}, nil},
		"two renames": {content{"a.txt": "", "y.txt": long}, content{"a.txt": "", "z.txt": long}, nil,
			[]string{"a.txt", "y.txt", "z.txt"}},
		"add and add": {content{"new": "mine\n"}, content{"new": "theirs\n"}, nil, []string{"new"}},
		"mode and content": {content{"run.sh": "x:echo\n"}, content{"run.sh": "echo 2\n"},
			content{"run.sh": "x:echo 2\n"}, nil},
		"binary":    {content{"bin": "\x00two"}, content{"bin": "\x00three"}, nil, []string{"bin"}},
		"two links": {content{"link": "->b/c.txt"}, content{"link": "->bin"}, nil, []string{"link"}},
		"a file in a folder": {content{"b/c.txt": "", "b": "file"}, content{"b/c.txt": "changed\n"}, nil,
			[]string{"b/c.txt"}},
	} {
		t.Run(name, func(t *testing.T) {
			merged, conflicts, err := Merge(t.Context(), s, putTree(t, s, base), putTree(t, s, base.edited(row.ours)),
				putTree(t, s, base.edited(row.theirs)))
			require.NoError(t, err)
			if row.want == nil {
				require.Subset(t, conflicts, row.conflicts)
				require.NotEmpty(t, conflicts)
				require.Empty(t, merged.Digest)
				return
			}
			require.Empty(t, conflicts)
			require.Equal(t, putTree(t, s, base.edited(row.want)).Digest, merged.Digest)
		})
	}
}
