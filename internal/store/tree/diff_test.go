package tree_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
)

func TestDiff(t *testing.T) {
	text := func(path, content string) tree.Entry {
		return tree.Entry{
			Path: path, Mode: tree.ModeFile, Perm: 0o644, Size: int64(len(content)),
			Digest: store.DigestOf([]byte(content)),
		}
	}
	dir := func(path string) tree.Entry { return tree.Entry{Path: path, Mode: tree.ModeFolder, Perm: 0o755} }
	link := func(path, target string) tree.Entry {
		return tree.Entry{Path: path, Mode: tree.ModeSymlink, Link: target}
	}
	exec := text("a", "1")
	exec.Mode, exec.Perm = tree.ModeExecutable, 0o755
	none := tree.Entry{}
	rows := []struct {
		name     string
		from, to []tree.Entry
		want     []tree.Change
	}{
		{"nothing", []tree.Entry{text("a", "1")}, []tree.Entry{text("a", "1")}, nil},
		{"added and removed", []tree.Entry{text("b", "1")}, []tree.Entry{text("a", "2")},
			[]tree.Change{{tree.Added, "a", "", none, text("a", "2")}, {tree.Removed, "b", "", text("b", "1"), none}}},
		{
			"changed", []tree.Entry{text("a", "1")}, []tree.Entry{text("a", "2")},
			[]tree.Change{{tree.Changed, "a", "", text("a", "1"), text("a", "2")}},
		},
		{
			"mode", []tree.Entry{text("a", "1")}, []tree.Entry{exec},
			[]tree.Change{{tree.Moded, "a", "", text("a", "1"), exec}},
		},
		{
			"another target", []tree.Entry{link("a", "x")}, []tree.Entry{link("a", "y")},
			[]tree.Change{{tree.Changed, "a", "", link("a", "x"), link("a", "y")}},
		},
		{
			"another kind", []tree.Entry{dir("a")}, []tree.Entry{link("a", "x")},
			[]tree.Change{{tree.Changed, "a", "", dir("a"), link("a", "x")}},
		},
		{
			"renamed", []tree.Entry{text("b", "1")}, []tree.Entry{text("a", "1")},
			[]tree.Change{{tree.Renamed, "a", "b", text("b", "1"), text("a", "1")}},
		},
		{"renamed and copied", []tree.Entry{text("b", "1")}, []tree.Entry{text("a", "1"), text("c", "1")},
			[]tree.Change{
				{tree.Renamed, "a", "b", text("b", "1"), text("a", "1")}, {tree.Added, "c", "", none, text("c", "1")},
			}},
		{
			"copied", []tree.Entry{text("b", "1")}, []tree.Entry{text("a", "1"), text("b", "1")},
			[]tree.Change{{tree.Added, "a", "", none, text("a", "1")}},
		},
		{"over another file", []tree.Entry{text("a", "1"), text("b", "2")}, []tree.Entry{text("b", "1")},
			[]tree.Change{
				{tree.Removed, "a", "", text("a", "1"), none}, {tree.Changed, "b", "", text("b", "2"), text("b", "1")},
			}},
		{"empty files", []tree.Entry{text("b", "")}, []tree.Entry{text("a", "")},
			[]tree.Change{{tree.Added, "a", "", none, text("a", "")}, {tree.Removed, "b", "", text("b", ""), none}}},
		{"a folder", nil, []tree.Entry{dir("a")}, []tree.Change{{tree.Added, "a", "", none, dir("a")}}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, tree.Diff(tree.Tree{Entries: row.from}, tree.Tree{Entries: row.to}))
		})
	}
}
