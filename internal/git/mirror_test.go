package git

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// withSecrets adds what a mirror must not have: a branch, a tag, a reset commit and a stash.
func withSecrets(t *testing.T, dir string) (secrets []string) {
	t.Helper()
	secrets = append(secrets, branch(t, dir, "other", files{"other.txt": "o\n"}))
	run(t, dir, "tag", "v1", "other")
	write(t, dir, files{"reset.txt": "r\n"})
	run(t, dir, "add", "-A")
	run(t, dir, "commit", "-q", "-m", "reset")
	secrets = append(secrets, head(t, dir))
	run(t, dir, "reset", "-q", "--hard", "HEAD^")
	write(t, dir, files{"a.txt": "stashed\n"})
	run(t, dir, "stash")
	return append(secrets, run(t, dir, "rev-parse", "stash"))
}

// commit commits all files of a folder.
func commit(t *testing.T, dir string, fs files) string {
	t.Helper()
	write(t, dir, fs)
	run(t, dir, "add", "-A")
	run(t, dir, "commit", "-q", "--allow-empty", "-m", "more")
	return head(t, dir)
}

func TestMirrorHasStartCommitsOnly(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r, dir := initial(t, files{"a.txt": "a\n", "sub/b.txt": "b\n"})
	first := head(t, dir)
	start := commit(t, dir, files{"a.txt": "2\n"})
	secrets := withSecrets(t, dir)
	state := folder(t)
	m := must(OpenMirror(ctx, state, r))(t)
	require.Regexp(t, "^"+state+"/repositories/"+filepath.Base(dir)+"-[0-9a-f]{8}.git$", m.path)
	require.Equal(t, start, must(m.Fetch(ctx, "HEAD"))(t))
	require.Equal(t, start, must(m.Fetch(ctx, start))(t))
	require.Equal(t, start+" commit\trefs/starts/"+start, run(t, m.path, "for-each-ref"))
	require.Equal(t, start+"\n"+first, run(t, m.path, "rev-list", start))
	run(t, m.path, "fsck", "--full", "--strict")
	for _, id := range secrets {
		require.Contains(t, run(t, dir, "cat-file", "-t", id), "commit")
		require.False(t, m.has(id))
		_, err := m.git.output(ctx, "cat-file", "-e", id)
		require.Error(t, err)
	}
	next := commit(t, dir, files{"a.txt": "3\n"})
	must(m.Fetch(ctx, next))(t)
	require.Len(t, must(filepath.Glob(m.Objects()+"/pack/*.pack"))(t), 2)
	must(m.Fetch(ctx, first))(t) // nothing new
	run(t, m.path, "fsck", "--full", "--strict")

	require.NoError(t, os.RemoveAll(dir))
	require.Equal(t, "3", run(t, m.path, "show", next+":a.txt"))
	_, err := m.Fetch(ctx, strings.Repeat("1", 40))
	require.Error(t, err)
}

// TestMirrorOf fetches from all kinds of sources.
func TestMirrorOf(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		source  func(t *testing.T, dir string) string // of a repository with two commits
		wants   int                                   // commits
		message string
	}{
		{"a linked worktree", func(t *testing.T, dir string) string {
			other := filepath.Join(folder(t), "linked")
			run(t, dir, "worktree", "add", "-q", "--detach", other)
			return other
		}, 2, ""},
		{"a shallow clone", func(t *testing.T, dir string) string {
			other := filepath.Join(folder(t), "shallow")
			run(t, dir, "clone", "-q", "--depth=1", "file://"+dir, other)
			return other
		}, 1, ""},
		{"a clone with alternates", func(t *testing.T, dir string) string {
			other := filepath.Join(folder(t), "shared")
			run(t, dir, "clone", "-q", "--shared", dir, other)
			return other
		}, 2, ""},
		{"a partial clone", func(t *testing.T, dir string) string {
			run(t, dir, "config", "uploadpack.allowFilter", "true")
			other := filepath.Join(folder(t), "partial")
			run(t, dir, "clone", "-q", "--filter=blob:none", "file://"+dir, other)
			return other
		}, 2, ""},
		{"a partial clone without its remote", func(t *testing.T, dir string) string {
			run(t, dir, "config", "uploadpack.allowFilter", "true")
			other := filepath.Join(folder(t), "partial")
			run(t, dir, "clone", "-q", "--filter=blob:none", "file://"+dir, other)
			run(t, other, "remote", "set-url", "origin", "file:///nowhere")
			return other
		}, 0, "promisor remote"},
		{"one with a damaged object", func(t *testing.T, dir string) string {
			id := run(t, dir, "rev-parse", "HEAD:a.txt")
			require.NoError(t, os.Remove(filepath.Join(dir, ".git/objects", id[:2], id[2:])))
			return dir
		}, 0, "unable to read"},
		{"a bare one", func(t *testing.T, dir string) string {
			other := filepath.Join(folder(t), "bare.git")
			run(t, dir, "clone", "-q", "--bare", dir, other)
			return other
		}, 2, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			_, dir := initial(t, files{"a.txt": "a\n"})
			commit(t, dir, files{"a.txt": "2\n"})
			r, err := Open(ctx, row.source(t, dir))
			if row.name == "a bare one" {
				r, err = OpenRefs(ctx, row.source(t, dir))
			}
			require.NoError(t, err)
			m := must(OpenMirror(ctx, folder(t), r))(t)
			id, err := m.Fetch(ctx, "HEAD")
			if row.message != "" {
				require.ErrorContains(t, err, row.message)
				require.Empty(t, run(t, m.path, "for-each-ref"))
				return
			}
			require.NoError(t, err)
			require.Len(t, strings.Fields(run(t, m.path, "rev-list", id)), row.wants)
			run(t, m.path, "fsck", "--full")
			require.Equal(t, "2", run(t, m.path, "show", id+":a.txt"))

			work := folder(t)
			write(t, work, files{"a.txt": "2\n"})
			require.NoError(t, m.Remake(ctx, work, Head{Commit: id, Branch: "passbook/r"}))
			require.Empty(t, status(t, work))
			require.Len(t, strings.Fields(run(t, work, "log", "--format=%H")), row.wants)
		})
	}
}

// TestDeepenedSource merges, after a start, a branch that begins before the shallow history of that start.
func TestDeepenedSource(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, dir := initial(t, files{"old.txt": "old\n"})
	first := head(t, dir)
	erase(t, dir, "old.txt")
	commit(t, dir, files{"a.txt": "a\n"})
	clone := filepath.Join(folder(t), "clone")
	run(t, dir, "clone", "-q", "--depth=1", "file://"+dir, clone)
	m := must(OpenMirror(ctx, folder(t), must(Open(ctx, clone))(t)))(t)
	must(m.Fetch(ctx, "HEAD"))(t)
	run(t, clone, "fetch", "-q", "--unshallow")
	run(t, clone, "checkout", "-q", "-b", "side", first)
	commit(t, clone, files{"side.txt": "s\n"})
	run(t, clone, "checkout", "-q", "main")
	run(t, clone, "merge", "-q", "-m", "merge", "side")
	next := must(m.Fetch(ctx, "HEAD"))(t)
	require.Equal(t, "old", run(t, m.path, "show", next+"^2^:old.txt"))
	run(t, m.path, "fsck", "--full")
}

func TestMirrorOfCheckoutsIsShared(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, nil)
	run(t, dir, "worktree", "add", "-q", "--detach", filepath.Join(dir, "linked"))
	linked := must(Open(t.Context(), filepath.Join(dir, "linked")))(t)
	state := folder(t)
	require.Equal(t, must(OpenMirror(t.Context(), state, r))(t).path, must(OpenMirror(t.Context(), state, linked))(t).path)
}

// TestMirrorOfAlternateFormats copies a repository whose ids are SHA-256, and then one at the same path with SHA-1.
func TestMirrorOfAlternateFormats(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir, state := folder(t), folder(t)
	for _, format := range []string{"sha256", "sha1"} {
		require.NoError(t, os.RemoveAll(filepath.Join(dir, ".git")))
		run(t, dir, "init", "-q", "-b", "main", "--object-format="+format)
		start := commit(t, dir, files{"a.txt": "a\n", ".gitattributes": "*.txt text\n"})
		r := must(Open(ctx, dir))(t)
		m := must(OpenMirror(ctx, state, r))(t)
		must(m.Fetch(ctx, start))(t)
		work := folder(t)
		write(t, work, files{"a.txt": "b\n", ".gitattributes": "*.txt text\n"})
		require.NoError(t, m.Remake(ctx, work, Head{Commit: start}))
		require.Equal(t, "M a.txt", status(t, work))
		judged := []File{file("a.txt", "b\n")}
		id := must(r.Record(ctx, Commit{"passbook/r", start, start, "work", "", judged}))(t)
		require.Equal(t, "b", run(t, dir, "show", "passbook/r:a.txt"))
		require.Empty(t, must(r.Differences(ctx, id, start, judged))(t))
		require.NoError(t, r.CreateBranch(ctx, "mine", id))
	}
}

func TestConcurrentFetches(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a.txt": "a\n"})
	state := folder(t)
	var all sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		all.Go(func() {
			m, err := OpenMirror(t.Context(), state, r)
			if err == nil {
				_, err = m.Fetch(t.Context(), head(t, dir))
			}
			errs[i] = err
		})
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	m := must(OpenMirror(t.Context(), state, r))(t)
	require.Len(t, must(filepath.Glob(m.Objects()+"/pack/*.pack"))(t), 1)
}

// TestInterruptedFetch leaves what a crash leaves: a part of a pack, and a pack without a ref.
func TestInterruptedFetch(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r, dir := initial(t, files{"a.txt": "a\n"})
	m := must(OpenMirror(ctx, folder(t), r))(t)
	write(t, m.Objects(), files{"pack/tmp_pack_x": "part"})
	require.NoError(t, m.copyObjects(ctx, head(t, dir)))
	must(m.Fetch(ctx, "HEAD"))(t)
	require.Empty(t, must(filepath.Glob(m.Objects()+"/pack/tmp*"))(t))
	run(t, m.path, "fsck", "--full")
}

func TestManyPacksAreCombined(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r, dir := initial(t, nil)
	m := must(OpenMirror(ctx, folder(t), r))(t)
	for range 52 {
		must(m.Fetch(ctx, commit(t, dir, nil)))(t)
	}
	require.Less(t, len(must(filepath.Glob(m.Objects()+"/pack/*.pack"))(t)), 10)
	require.Len(t, strings.Split(run(t, m.path, "for-each-ref"), "\n"), 52)
}

func TestUnbornSource(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := folder(t)
	run(t, dir, "init", "-q")
	r := must(OpenRefs(ctx, dir))(t)
	m := must(OpenMirror(ctx, folder(t), r))(t)
	_, err := m.Fetch(ctx, "HEAD")
	require.ErrorContains(t, err, "find commit HEAD in "+dir)
}
