package git

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const trailer = "Passbook-Run: r"

// recorded is a source with a recorded commit, whose changed files are in the checkout, and uncommitted work of the user.
func recorded(t *testing.T) (r *Repo, dir, id string) {
	t.Helper()
	ctx := t.Context()
	r, dir = initial(t, files{"a": "1\n", "gone": "1\n", "mine": "m\n", "staged": "s\n"})
	start := head(t, dir)
	id = must(r.Record(ctx, Commit{"passbook/r", start, start, "work", "", []File{file("a", "2\n"), {Path: "gone"},
		file("new/n", "2\n")}}))(t)
	write(t, dir, files{"mine": "changed\n", "staged": "changed\n", "untracked": "u\n"})
	run(t, dir, "add", "staged")
	require.NoError(t, r.PutFiles(ctx, []Put{put("a", "1\n", "2\n"), put("gone", "1\n", ""), put("new/n", "", "2\n")}))
	return r, dir, id
}

var deliveredPaths = []string{"a", "gone", "new/n"}

func TestCommitPaths(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r, dir, id := recorded(t)
	require.Empty(t, must(r.CommitWith(ctx, trailer))(t))
	made := must(r.CommitPaths(ctx, id, "Fix it", trailer, deliveredPaths))(t)
	require.Equal(t, made, run(t, dir, "rev-parse", "main"))
	require.Equal(t, "Fix it\n\n"+trailer, run(t, dir, "log", "-1", "--format=%B"))
	require.Equal(t, "M a D gone A new/n", words(run(t, dir, "diff", "--name-status", "HEAD^", "HEAD")))
	require.Equal(t, "M mine M staged ?? untracked", status(t, dir))
	require.Equal(t, made, must(r.CommitPaths(ctx, id, "Fix it", trailer, deliveredPaths))(t), "a repetition")
	require.Equal(t, made, must(r.CommitWith(ctx, trailer))(t))
	require.Empty(t, must(r.CommitPaths(ctx, id, "Nothing", "Passbook-Run: other", deliveredPaths))(t))
}

func TestInterruptedCommitPaths(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for k := range 2 {
		r, dir, id := recorded(t)
		r.step = stopAt(k)
		_, err := r.CommitPaths(ctx, id, "Fix it", trailer, deliveredPaths)
		require.ErrorIs(t, err, errKilled)
		r.step = nil
		made := must(r.CommitPaths(ctx, id, "Fix it", trailer, deliveredPaths))(t)
		require.Equal(t, made, head(t, dir))
		require.Equal(t, "M mine M staged ?? untracked", status(t, dir))
	}
}

func TestCommitPathsRefuses(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		do      func(t *testing.T, dir string)
		message string
	}{
		{"detached", func(t *testing.T, dir string) { run(t, dir, "checkout", "-q", "--detach") }, "detached HEAD"},
		{"a merge", func(t *testing.T, dir string) { write(t, dir, files{".git/MERGE_HEAD": "x"}) }, "a merge is in progress"},
		{"staged otherwise", func(t *testing.T, dir string) {
			write(t, dir, files{"a": "mine\n"})
			run(t, dir, "add", "a")
			write(t, dir, files{"a": "2\n"})
		}, `has staged changes in files to deliver: commit or unstage them and retry: ["a"]`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r, dir, id := recorded(t)
			row.do(t, dir)
			before, index := head(t, dir), run(t, dir, "ls-files", "--stage")
			_, err := r.CommitPaths(t.Context(), id, "Fix it", trailer, deliveredPaths)
			require.ErrorContains(t, err, row.message)
			require.Equal(t, before, head(t, dir))
			require.Equal(t, index, run(t, dir, "ls-files", "--stage"))
		})
	}
}
