package git

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const trailer = "Passbook-Run: r"

// recorded is a source with a recorded commit, whose changed files are in the checkout, and uncommitted work of the user.
func recorded(t *testing.T) (r *Repo, dir string, d Delivered) {
	t.Helper()
	ctx := t.Context()
	r, dir = initial(t, files{"a": "1\n", "gone": "1\n", "mine": "m\n", "staged": "s\n"})
	d = Delivered{Base: head(t, dir), Paths: []string{"a", "gone", "new/n"}, Trailer: trailer}
	d.Commit = must(r.Record(ctx, Commit{"passbook/r", d.Base, d.Base, "work", "", []File{file("a", "2\n"), {Path: "gone"},
		file("new/n", "2\n")}}))(t)
	write(t, dir, files{"mine": "changed\n", "staged": "changed\n", "untracked": "u\n"})
	run(t, dir, "add", "staged")
	require.Empty(t, must(r.Apply(ctx, d))(t), "without a message")
	d.Message = "Fix it\n\n" + trailer + "\n"
	return r, dir, d
}

func TestApplyCommitsPaths(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r, dir, d := recorded(t)
	d.DryRun = true
	require.Empty(t, must(r.Apply(ctx, d))(t))
	require.Equal(t, d.Base, head(t, dir))
	d.DryRun = false
	made := must(r.Apply(ctx, d))(t)
	require.Equal(t, made, run(t, dir, "rev-parse", "main"))
	require.Equal(t, "Fix it\n\n"+trailer, run(t, dir, "log", "-1", "--format=%B"))
	require.Equal(t, "M a D gone A new/n", words(run(t, dir, "diff", "--name-status", "HEAD^", "HEAD")))
	require.Equal(t, "M mine M staged ?? untracked", status(t, dir))
	require.Equal(t, made, must(r.Apply(ctx, d))(t), "a repetition")
	d.DryRun = true
	require.Equal(t, made, must(r.Apply(ctx, d))(t), "a check of what is done")
	d.Trailer, d.DryRun = "Passbook-Run: other", false
	require.Empty(t, must(r.Apply(ctx, d))(t), "nothing to commit")
}

func TestInterruptedCommitOfPaths(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for k := range 2 {
		r, dir, d := recorded(t)
		r.step = stopAt(k)
		_, err := r.Apply(ctx, d)
		require.ErrorIs(t, err, errKilled)
		r.step = nil
		made := must(r.Apply(ctx, d))(t)
		require.Equal(t, made, head(t, dir))
		require.Equal(t, "M mine M staged ?? untracked", status(t, dir))
	}
}

func TestApplyRefuses(t *testing.T) {
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
			r, dir, d := recorded(t)
			row.do(t, dir)
			before, index := head(t, dir), run(t, dir, "ls-files", "--stage")
			for _, d.DryRun = range []bool{true, false} {
				_, err := r.Apply(t.Context(), d)
				require.ErrorContains(t, err, row.message)
			}
			require.Equal(t, before, head(t, dir))
			require.Equal(t, index, run(t, dir, "ls-files", "--stage"))
		})
	}
}
