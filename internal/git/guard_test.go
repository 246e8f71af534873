package git

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// planted sets every setting that runs a command that leaves a mark, and returns the path of the mark.
func planted(t *testing.T, dir string) (mark string) {
	t.Helper()
	mark = filepath.Join(folder(t), "ran")
	script := filepath.Join(filepath.Dir(mark), "command")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho \"$0 $*\" >>"+mark+"\ncat\n"), 0o755))
	for _, key := range []string{"filter.evil.clean", "filter.evil.smudge", "core.fsmonitor", "diff.external",
		"diff.evil.textconv", "diff.evil.command", "merge.evil.driver", "core.sshCommand", "core.pager",
		"core.alternateRefsCommand", "gpg.program", "core.editor", "uploadpack.packObjectsHook"} {
		run(t, dir, "config", key, script)
	}
	hooks := filepath.Join(filepath.Dir(mark), "hooks")
	require.NoError(t, os.MkdirAll(hooks, 0o755))
	for _, hook := range []string{"post-checkout", "pre-commit", "post-index-change", "reference-transaction"} {
		for _, in := range []string{hooks, filepath.Join(dir, ".git", "hooks")} {
			require.NoError(t, os.WriteFile(filepath.Join(in, hook), []byte("#!/bin/sh\necho "+hook+" >>"+mark+"\n"), 0o755))
		}
	}
	run(t, dir, "config", "core.hooksPath", hooks)
	_ = os.Remove(mark)
	return mark
}

// TestReceivedConfigurationRunsNothing uses the repository that a received directory names.
func TestReceivedConfigurationRunsNothing(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, dir := initial(t, files{"a.txt": "a\n", ".gitattributes": "* filter=evil diff=evil merge=evil\n"})
	mark := planted(t, dir)
	r := must(OpenReceived(ctx, dir))(t)
	start := head(t, dir)
	m := must(OpenMirror(ctx, folder(t), r))(t)
	must(m.Fetch(ctx, start))(t)
	judged := []File{file("a.txt", "changed\n")}
	id := must(r.Record(ctx, Commit{"passbook/r", start, start, "work", "", judged}))(t)
	require.Empty(t, must(r.Differences(ctx, id, start, judged))(t))
	must(must(r.Between(ctx, start, id))(t).Patch(ctx))(t)
	must(r.Apply(ctx, Delivered{Base: start, Commit: id, Paths: []string{"a.txt"}, Message: "delivered"}))(t)
	must(r.Dirt(ctx))(t)
	require.NoFileExists(t, mark)

	_, err := OpenReceived(ctx, ".")
	require.ErrorContains(t, err, "the path is not absolute")
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
