package git

import (
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func failing() (io.ReadCloser, error) { return nil, errors.New("no content") }

func TestBranches(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, row := range []struct {
		name    string
		do      func(t *testing.T, r *Repo, dir, first, work string) error
		at      string // of branch mine: first, work or ""
		message string
	}{
		{"created", func(t *testing.T, r *Repo, _, _, work string) error { return r.CreateBranch(ctx, "mine", work) }, "work", ""},
		{"created again", func(t *testing.T, r *Repo, dir, _, work string) error {
			run(t, dir, "branch", "mine", work)
			return r.CreateBranch(ctx, "mine", work)
		}, "work", ""},
		{"there", func(t *testing.T, r *Repo, dir, first, work string) error {
			run(t, dir, "branch", "mine", first)
			return r.CreateBranch(ctx, "mine", work)
		}, "first", "branch mine is already at commit "},
		{"no name", func(t *testing.T, r *Repo, _, _, work string) error { return r.CreateBranch(ctx, "a..b", work) }, "",
			"not a valid branch name"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r, dir := initial(t, files{"a": "a\n"})
			first, work := head(t, dir), branch(t, dir, "work", files{"a": "2\n"})
			err := row.do(t, r, dir, first, work)
			if row.message == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, row.message)
			}
			at := must(r.branchAt(ctx, "mine"))(t)
			require.Equal(t, map[string]string{"first": first, "work": work, "": ""}[row.at], at)
		})
	}
}

func TestBranchesThatAreCheckedOut(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a": "a\n"})
	at, elsewhere, gone := head(t, dir), filepath.Join(folder(t), "w"), filepath.Join(folder(t), "w")
	run(t, dir, "worktree", "add", "-q", "-b", "elsewhere", elsewhere)
	run(t, dir, "worktree", "add", "-q", "-b", "gone", gone)
	erase(t, gone, "")
	require.Equal(t, &BranchError{"main", at, dir}, r.checkNotOut(t.Context(), "main", at))
	require.Equal(t, &BranchError{"elsewhere", at, elsewhere}, r.checkNotOut(t.Context(), "elsewhere", at))
	require.NoError(t, r.checkNotOut(t.Context(), "gone", at))
}

func TestRemoveBranch(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r, dir := initial(t, files{"a": "a\n"})
	work := branch(t, dir, "passbook/r", files{"a": "2\n"})
	own := must(r.OwnWork(ctx, "passbook/r"))(t)
	require.Equal(t, work, own.At)
	require.Len(t, own.Only, 1)
	require.False(t, r.Contains(ctx, work, "passbook/r"))
	require.ErrorContains(t, r.RemoveBranch(ctx, "main", work), "must begin with passbook/")
	require.NotNil(t, asBranch(r.RemoveBranch(ctx, "passbook/r", head(t, dir))))
	run(t, dir, "checkout", "-q", "passbook/r")
	require.ErrorContains(t, r.RemoveBranch(ctx, "passbook/r", work), "is checked out")
	run(t, dir, "checkout", "-q", "main")
	require.NoError(t, r.CreateBranch(ctx, "mine", work))
	require.True(t, r.Contains(ctx, work, "passbook/r"))
	require.Empty(t, must(r.OwnWork(ctx, "passbook/r"))(t).Only)
	for range 2 {
		require.NoError(t, r.RemoveBranch(ctx, "passbook/r", work))
	}
	require.Empty(t, must(r.OwnWork(ctx, "passbook/r"))(t))
}
