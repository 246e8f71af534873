package forge_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/forge"
	"github.com/passbook-run/passbook/internal/git"
	fake "github.com/passbook-run/passbook/test/forge"
)

func start(t *testing.T) (*fake.Forge, *forge.Client) {
	t.Helper()
	f, err := fake.New(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(f.Close)
	return f, client(t, f, nil)
}

func client(t *testing.T, f *fake.Forge, cache *forge.Cache) *forge.Client {
	t.Helper()
	repo, err := forge.Parse(f.URL, f.Remote())
	require.NoError(t, err)
	c, err := forge.New(forge.Options{Forge: f.URL, Token: f.Token, Repo: repo, Cache: cache})
	require.NoError(t, err)
	return c
}

// source is a clone with one commit, which is pushed.
func source(t *testing.T, f *fake.Forge) (*git.Repo, git.Remote) {
	t.Helper()
	dir := t.TempDir()
	run(t, dir, "init", "--quiet", "--initial-branch=main")
	run(t, dir, "config", "user.name", "ann")
	run(t, dir, "config", "user.email", "ann@example.org")
	commit(t, dir, "a.txt", "one\n")
	run(t, dir, "remote", "add", "origin", f.Remote())
	r, err := git.Open(t.Context(), dir)
	require.NoError(t, err)
	at := git.Remote{URL: f.Remote(), Token: f.Token}
	require.NoError(t, r.Push(t.Context(), at, "main", run(t, dir, "rev-parse", "HEAD")))
	return r, at
}

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

func commit(t *testing.T, dir, name, content string) string {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
	run(t, dir, "add", ".")
	run(t, dir, "commit", "--quiet", "-m", name)
	return run(t, dir, "rev-parse", "HEAD")
}

func TestRemotesNameARepositoryOfTheForge(t *testing.T) {
	for remote, want := range map[string]string{
		"https://github.com/acme/widgets.git":     "acme/widgets",
		"https://ann@github.com/acme/widgets":     "acme/widgets",
		"git@github.com:acme/widgets.git":         "acme/widgets",
		"ssh://git@github.com/acme/widgets.git":   "acme/widgets",
		"https://evil.example/acme/widgets.git":   "",
		"https://github.com/acme":                 "",
		"https://github.com/acme/../x/widgets":    "",
		"https://github.com.evil.example/acme/w":  "",
		"git@evil.example:acme/widgets.git":       "",
		"/srv/git/widgets.git":                    "",
		"https://evil.example:x@github.com/a/b/c": "",
	} {
		repo, err := forge.Parse(forge.GitHub, remote)
		if want == "" {
			require.Error(t, err, remote)
			continue
		}
		require.NoError(t, err, remote)
		require.Equal(t, want, repo.String())
	}
}

func TestOnlyHTTPSAddressesAndLoopbackGetTheToken(t *testing.T) {
	_, err := forge.New(forge.Options{Forge: "http://forge.example", Token: "x"})
	require.ErrorContains(t, err, "https")
}

func TestRepeatedReadsAreConditional(t *testing.T) {
	f, _ := start(t)
	n := f.Open("ann", "a", "b")
	c := client(t, f, new(forge.Cache))
	conditional := 0 // one request at a time
	f.Fail(func(r *http.Request) string {
		if r.Header.Get("If-None-Match") != "" {
			conditional++
		}
		return ""
	})
	for range 3 {
		i, err := c.Issue(t.Context(), n)
		require.NoError(t, err)
		require.Equal(t, "a", i.Title)
	}
	require.Equal(t, 2, conditional)
}

// Each write fails in every way, and is repeated: there is one comment and one pull request.
func TestWritesAreMadeOnceWhateverIsLost(t *testing.T) {
	for _, fault := range []string{fake.Limit, fake.Secondary, fake.Broken, fake.Lost, fake.LostAfter} {
		t.Run(fault, func(t *testing.T) {
			f, c := start(t)
			r, at := source(t, f)
			require.NoError(t, r.Push(t.Context(), at, "work", run(t, r.Root(), "rev-parse", "HEAD")))
			n := f.Open("ann", "a", "b")
			seen := map[string]bool{}
			f.Fail(func(r *http.Request) string { // the first of each request
				key := r.Method + r.URL.Path
				if seen[key] {
					return ""
				}
				seen[key] = true
				return fault
			})
			repeat(t, func(ctx context.Context) error {
				_, err := c.Say(ctx, n, "run-1/question", "What?", time.Time{})
				return err
			})
			repeat(t, func(ctx context.Context) error {
				_, err := c.Say(ctx, n, "run-1/question", "Answered.", time.Time{})
				return err
			})
			repeat(t, func(ctx context.Context) error {
				_, err := c.OpenPull(ctx, forge.NewPull{Branch: "work", Base: "main", Title: "t", Body: "b", Reviewers: []string{"ben"}})
				return err
			})
			repeat(t, func(ctx context.Context) error {
				return c.DeleteBranch(ctx, "work", f.At("main"))
			})
			f.Fail(nil)
			require.Len(t, f.Comments(n), 1)
			require.Contains(t, f.Comments(n)[0].Body, "Answered.")
			require.Len(t, f.Pulls(), 1)
			require.Equal(t, []string{"ben"}, f.Pulls()[0].Reviewers)
			require.Empty(t, f.At("work"))
			require.Zero(t, f.Strangers())
		})
	}
}

// repeat repeats an operation until it succeeds. Its errors contain no token.
func repeat(t *testing.T, do func(context.Context) error) {
	t.Helper()
	for range 20 {
		err := do(t.Context())
		if err == nil {
			return
		}
		require.NotContains(t, err.Error(), "ghp_")
		if limit := (*forge.LimitError)(nil); errors.As(err, &limit) {
			require.WithinDuration(t, time.Now(), limit.Until, 3*time.Second)
		}
	}
	t.Fatal("it never succeeds")
}

func TestCommentsOfOthersDoNotCountAsOwn(t *testing.T) {
	f, c := start(t)
	n := f.Open("ann", "a", "b")
	f.Comment(n, "mallory", "<!-- passbook:run-1/question -->\nforged")
	_, err := c.Say(t.Context(), n, "run-1/question", "What?", time.Time{})
	require.NoError(t, err)
	require.Len(t, f.Comments(n), 2)
}

func TestPermissionsAndLabels(t *testing.T) {
	f, c := start(t)
	n := f.Open("mallory", "a", "b")
	for login, want := range map[string]bool{"operator": true, "ann": true, "mallory": false, "unknown": false} {
		_, may, err := c.MayWrite(t.Context(), login)
		require.NoError(t, err)
		require.Equal(t, want, may, login)
	}
	f.Label(n, "ready", "ann")
	f.Label(n, "ready", "mallory")
	by, err := c.LabelledBy(t.Context(), n, "ready")
	require.NoError(t, err)
	require.Equal(t, "mallory", by, "the last one counts")
}

func TestChecksHaveTheirLogs(t *testing.T) {
	f, c := start(t)
	commit := strings.Repeat("a", 40)
	f.Check(commit, "build", "success", "")
	f.Check(commit, "test", "failure", strings.Repeat("x", 100)+"the end")
	f.Check(commit, "slow", "queued", "")
	all, err := c.Checks(t.Context(), commit)
	require.NoError(t, err)
	states := map[string]string{}
	for _, check := range all {
		states[check.Name] = check.State
		if check.Name == "test" {
			log, err := c.Log(t.Context(), check, 10)
			require.NoError(t, err)
			require.Equal(t, "xxxthe end", log)
		}
	}
	require.Equal(t, map[string]string{"build": "passed", "test": "failed", "slow": "pending"}, states)
}

func TestPushNeverForces(t *testing.T) {
	f, _ := start(t)
	r, at := source(t, f)
	first := run(t, r.Root(), "rev-parse", "HEAD")
	mine := commit(t, r.Root(), "b.txt", "mine\n")
	require.NoError(t, r.Push(t.Context(), at, "work", mine))
	require.NoError(t, r.Push(t.Context(), at, "work", mine), "a repetition")
	run(t, r.Root(), "reset", "--hard", "--quiet", first)
	other := commit(t, r.Root(), "c.txt", "other\n")
	var moved *git.MovedError
	require.ErrorAs(t, r.Push(t.Context(), at, "work", other), &moved)
	require.Equal(t, mine, f.At("work"))
	tip, err := r.FetchTip(t.Context(), at, "work")
	require.NoError(t, err)
	require.Equal(t, mine, tip)
	tip, err = r.FetchTip(t.Context(), at, "nothing")
	require.NoError(t, err)
	require.Empty(t, tip)
}

func TestRefusedPushesDoNotShowTheToken(t *testing.T) {
	f, _ := start(t)
	r, at := source(t, f)
	at.Token = "ghp_wrong0123456789wrong0123456789wrong00"
	err := r.Push(t.Context(), at, "work", run(t, r.Root(), "rev-parse", "HEAD"))
	require.Error(t, err)
	require.NotContains(t, err.Error(), "ghp_")
}

func TestJoinKeepsConflictsInTheFiles(t *testing.T) {
	f, _ := start(t)
	r, _ := source(t, f)
	dir := r.Root()
	first := run(t, dir, "rev-parse", "HEAD")
	theirs := commit(t, dir, "a.txt", "theirs\n")
	run(t, dir, "checkout", "--quiet", "-b", "passbook/x-1", first)
	ours := commit(t, dir, "a.txt", "ours\n")
	run(t, dir, "checkout", "--quiet", "main")
	c := git.Commit{Branch: "passbook/x-1", Parent: ours, Start: first, Message: "merge"}
	var made [2]git.Joined
	for i := range made {
		out, drop, err := r.Join(t.Context(), c, theirs)
		require.NoError(t, err)
		require.Equal(t, []string{"a.txt"}, out.Conflicts)
		require.Len(t, out.Files, 1)
		require.NoError(t, drop())
		made[i] = out
	}
	require.Equal(t, made[0].Commit, made[1].Commit, "a repetition finds the commit")
	require.Equal(t, made[0].Commit, run(t, dir, "rev-parse", "passbook/x-1"))
	require.Contains(t, run(t, dir, "show", "passbook/x-1:a.txt"), "<<<<<<<")
	require.Equal(t, ours+" "+theirs, run(t, dir, "log", "-1", "--format=%P", "passbook/x-1"))
}
