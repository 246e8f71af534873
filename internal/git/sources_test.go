package git

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRecordIn records, compares and delivers in all kinds of repositories.
func TestRecordIn(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		make func(t *testing.T, dir string) (source string)
		open func(t *testing.T, dir string) *Repo
		bare bool
	}{
		{"a checkout", func(_ *testing.T, dir string) string { return dir }, opened, false},
		{"a linked worktree with its own configuration", func(t *testing.T, dir string) string {
			other := filepath.Join(folder(t), "linked")
			run(t, dir, "worktree", "add", "-q", "-b", "mine", other)
			run(t, dir, "config", "extensions.worktreeConfig", "true")
			run(t, other, "config", "--worktree", "core.bare", "false")
			return other
		}, opened, false},
		{"a sparse checkout", func(t *testing.T, dir string) string {
			run(t, dir, "sparse-checkout", "set", "--cone", "--sparse-index", "sub")
			return dir
		}, opened, false},
		{"a submodule", func(t *testing.T, dir string) string {
			_, super := initial(t, nil)
			run(t, super, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", dir, "lib")
			return filepath.Join(super, "lib")
		}, opened, false},
		{"a bare repository", func(t *testing.T, dir string) string {
			other := filepath.Join(folder(t), "bare.git")
			run(t, dir, "clone", "-q", "--bare", dir, other)
			return other
		}, func(t *testing.T, dir string) *Repo { return must(OpenRefs(t.Context(), dir))(t) }, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			_, first := initial(t, files{attributesFile: "*.crlf eol=crlf\n", "sub/a.crlf": "a\n", "big/b": "b\n"})
			dir := row.make(t, first)
			r := row.open(t, dir)
			start := head(t, dir)
			judged := []File{file("sub/a.crlf", "2\r\n"), file("sub/new", "n\n")}
			id := must(r.Record(ctx, Commit{"passbook/r", start, start, "work", "", judged}))(t)
			require.Equal(t, "2", run(t, dir, "show", id+":sub/a.crlf"))
			require.Empty(t, must(r.Differences(ctx, id, start, judged))(t))
			require.NoError(t, r.CreateBranch(ctx, "delivered", id))
			if row.bare {
				return
			}
			erase(t, dir, "sub/a.crlf") // it was not checked out
			run(t, dir, "checkout", "-q", "-f")
			made := must(r.Apply(ctx, Delivered{Base: start, Commit: id, Paths: []string{"sub/a.crlf", "sub/new"},
				Message: "Deliver", Trailer: trailer}))(t)
			require.Equal(t, made, head(t, dir))
			require.Empty(t, status(t, dir))
		})
	}
}

func opened(t *testing.T, dir string) *Repo {
	t.Helper()
	return must(Open(t.Context(), dir))(t)
}
