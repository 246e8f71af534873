package repo

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// planted sets every setting that runs a command that leaves a mark, and returns the path of the mark.
func planted(t *testing.T, dir string, flags ...string) (mark string) {
	t.Helper()
	mark = filepath.Join(folder(t), "ran")
	script := filepath.Join(filepath.Dir(mark), "command")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho \"$0 $*\" >>"+mark+"\ncat\n"), 0o755))
	for _, key := range []string{"filter.evil.clean", "filter.evil.smudge", "core.fsmonitor", "diff.external",
		"diff.evil.textconv", "diff.evil.command", "merge.evil.driver", "core.sshCommand", "core.pager",
		"core.alternateRefsCommand", "gpg.program", "core.editor"} {
		run(t, dir, append(append([]string{"config"}, flags...), key, script)...)
	}
	hooks := filepath.Join(filepath.Dir(mark), "hooks")
	require.NoError(t, os.MkdirAll(hooks, 0o755))
	for _, hook := range []string{"post-checkout", "pre-commit", "post-index-change", "reference-transaction"} {
		require.NoError(t, os.WriteFile(filepath.Join(hooks, hook), []byte("#!/bin/sh\necho "+hook+" >>"+mark+"\n"), 0o755))
	}
	run(t, dir, append(append([]string{"config"}, flags...), "core.hooksPath", hooks)...)
	_ = os.Remove(mark)
	return mark
}

// attacked is a repository whose files name every setting that runs a command, and a checkout of it.
func attacked(t *testing.T) (r *Repo, dir, base string, w *Worktree) {
	t.Helper()
	r, dir = initial(t, files{"a.txt": "a\n", ".gitattributes": "* filter=evil diff=evil merge=evil\n"})
	w, base = worktree(t, r)
	return r, dir, base, w
}

// uses does with a checkout what commands and the worker do.
func uses(t *testing.T, w *Worktree, base string) {
	t.Helper()
	write(t, w.root, files{"a.txt": "changed\n", "new.txt": "new\n"})
	must(must(w.Since(t.Context(), base))(t).Patch(t.Context()))(t)
	must(w.Dirt(t.Context()))(t)
	must(WorktreeDirt(t.Context(), w.root))(t)
	must(w.Commit(t.Context(), "A pass", "a.txt", "new.txt"))(t)
}

// TestReceivedConfigurationRunsNothing opens the repository that a received directory names, and its checkout.
func TestReceivedConfigurationRunsNothing(t *testing.T) {
	t.Parallel()
	_, dir, base, w := attacked(t)
	mark := planted(t, dir)
	w = must(must(OpenReceived(t.Context(), dir))(t).Worktree(t.Context(), w.root))(t)
	uses(t, w, base)
	require.NoFileExists(t, mark)

	_, err := OpenReceived(t.Context(), ".")
	require.ErrorContains(t, err, "the path is not absolute")
}

// TestWorktreeConfigurationRunsNothing plants a configuration where an agent can write one: in the checkout.
func TestWorktreeConfigurationRunsNothing(t *testing.T) {
	t.Parallel()
	r, _, base, w := attacked(t)
	run(t, w.root, "config", "extensions.worktreeConfig", "true")
	mark := planted(t, w.root, "--worktree")
	w = must(r.Worktree(t.Context(), w.root))(t)
	uses(t, w, base)
	require.NoFileExists(t, mark)
}

// TestReplacedCheckoutIsRefused replaces the .git of a checkout by one that leads to another repository.
func TestReplacedCheckoutIsRefused(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a.txt": "a\n"})
	base := head(t, dir)
	path := filepath.Join(folder(t), "workspace")
	must(r.AddWorktree(t.Context(), path, "passbook/r1", base))(t)
	_, evil := initial(t, files{"a.txt": "a\n"})
	other := filepath.Join(folder(t), "other")
	run(t, evil, "worktree", "add", "-q", "-b", "passbook/r1", other)
	mark := planted(t, evil)
	raw := must(os.ReadFile(filepath.Join(other, ".git")))(t)
	require.NoError(t, os.RemoveAll(other))
	require.NoError(t, os.WriteFile(filepath.Join(path, ".git"), raw, 0o600))
	record := strings.TrimSpace(strings.TrimPrefix(string(raw), "gitdir: "))
	require.NoError(t, os.WriteFile(filepath.Join(record, "gitdir"), []byte(filepath.Join(path, ".git")+"\n"), 0o600))
	_, err := r.Worktree(t.Context(), path)
	require.ErrorIs(t, err, ErrNotOwned)
	require.ErrorContains(t, err, "its .git leads to the repository "+filepath.Join(evil, ".git"))
	require.NoFileExists(t, mark)
}

// TestFiltersOfTheUserRun keeps the filters of the user's own repository and configuration, which its files need.
func TestFiltersOfTheUserRun(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a.txt": "a\n", ".gitattributes": "*.txt filter=upper\n"})
	run(t, dir, "config", "filter.upper.clean", "tr a-z A-Z")
	path := filepath.Join(folder(t), "workspace")
	r = must(Open(t.Context(), r.Root()))(t)
	w := must(r.AddWorktree(t.Context(), path, "passbook/r1", "HEAD"))(t)
	write(t, path, files{"a.txt": "changed\n"})
	commit := must(w.Commit(t.Context(), "A pass", "a.txt"))(t)
	require.Equal(t, "CHANGED", strings.TrimSpace(run(t, dir, "show", commit+":a.txt")))
}

// TestSettingsThatCannotBeOverriddenAreRefused: git would read another name before the equals sign.
func TestSettingsThatCannotBeOverriddenAreRefused(t *testing.T) {
	t.Parallel()
	_, dir := initial(t, files{"a.txt": "a\n"})
	run(t, dir, "config", "filter.a=b.clean", "cat")
	_, err := OpenReceived(t.Context(), dir)
	require.ErrorContains(t, err, `"filter.a=b.clean", which cannot be overridden`)
}

// TestConfigurationThatBlocksIsRefused includes a FIFO, for which git waits.
func TestConfigurationThatBlocksIsRefused(t *testing.T) {
	t.Parallel()
	_, dir := initial(t, files{"a.txt": "a\n"})
	fifo := filepath.Join(folder(t), "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	run(t, dir, "config", "alias.x", "y")
	config := filepath.Join(dir, ".git", "config")
	text := must(os.ReadFile(config))(t)
	require.NoError(t, os.WriteFile(config, append(text, "[include]\npath = "+fifo+"\n"...), 0o600))
	late, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := git{dir: dir, timeout: 50 * time.Millisecond}.open(late, received)
	require.ErrorIs(t, err, errSlowConfig)
	require.NoError(t, late.Err())
}

// TestWorktreeOfUnknownRepositoryRunsNothing opens a checkout by its .git alone, which may have been replaced.
func TestWorktreeOfUnknownRepositoryRunsNothing(t *testing.T) {
	t.Parallel()
	_, dir, base, w := attacked(t)
	require.Empty(t, w.Suppressed())
	mark := planted(t, dir)
	w = must(OpenWorktree(t.Context(), w.root))(t)
	require.ElementsMatch(t, []string{"evil.clean", "evil.smudge"}, w.Suppressed())
	uses(t, w, base)
	require.NoFileExists(t, mark)
}
