package repo

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// cutOff is a repository, its files before and after a patch, and the backup that an Apply of it has made.
func cutOff(t *testing.T) (r *Repo, dir string, patch []byte, before, after files) {
	t.Helper()
	r, dir = initial(t, files{
		"a.txt": tenLines, "gone/deep.txt": "g\n", "old \xff.txt": "old\n" + tenLines, "tool": "#!\n",
	})
	w, base := worktree(t, r)
	write(t, w.Root(), files{"a.txt": tenLines + "11\n", "new/b.txt": "b\n", "tool": "#!2\n"})
	erase(t, w.Root(), "gone")
	require.NoError(t, os.Rename(filepath.Join(w.Root(), "old \xff.txt"), filepath.Join(w.Root(), "renamed.txt")))
	patch = patchSince(t, w, base)
	write(t, dir, files{"a.txt": "mine\n" + tenLines})
	before, after = read(t, dir), read(t, w.Root())
	after["a.txt"] = "mine\n" + tenLines + "11\n"
	paths := must(r.touched(t.Context(), patch))(t)
	must(save(r.root, r.backupOf(patch), paths, must(r.contents(t.Context(), paths, patch))(t)))(t)
	return r, dir, patch, before, after
}

func TestInterruptedApplyIsRepeated(t *testing.T) {
	t.Parallel()
	removed := func(t *testing.T, dir string) {
		for _, p := range []string{"a.txt", "gone", "old \xff.txt", "tool"} {
			erase(t, dir, p)
		}
	}
	for _, row := range []struct {
		name string
		did  func(t *testing.T, dir string)
		done bool
	}{
		{"before its first step", func(*testing.T, string) {}, false},
		{"when the old files were gone", removed, false},
		{"in the middle of the new ones", func(t *testing.T, dir string) {
			removed(t, dir)
			write(t, dir, files{"a.txt": "mine\n" + tenLines + "11\n", "new/b.txt": ""})
		}, false},
		{"before its last one", func(t *testing.T, dir string) {
			removed(t, dir)
			write(t, dir, files{"a.txt": "mine\n" + tenLines + "11\n", "new/b.txt": "b\n",
				"renamed.txt": "old\n" + tenLines})
		}, false},
		{"behind its last one", func(t *testing.T, dir string) {
			removed(t, dir)
			write(t, dir, files{
				"a.txt": "mine\n" + tenLines + "11\n", "new/b.txt": "b\n", "renamed.txt": "old\n" + tenLines,
				"tool": "#!2\n",
			})
		}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r, dir, patch, before, after := cutOff(t)
			row.did(t, dir)
			require.Equal(t, row.done, must(r.Applied(t.Context(), patch))(t))
			require.NoDirExists(t, r.backupOf(patch))
			if !row.done {
				require.Equal(t, before, read(t, dir), "put back")
				require.NoDirExists(t, filepath.Join(dir, "new"))
			}
			require.NoError(t, r.Apply(t.Context(), patch))
			require.Equal(t, after, read(t, dir))

			r, dir, patch, _, after = cutOff(t)
			row.did(t, dir)
			require.NoError(t, r.Apply(t.Context(), patch), "without a check first")
			require.Equal(t, after, read(t, dir))
		})
	}
}

func TestFileChangedAfterInterruptionIsKept(t *testing.T) {
	t.Parallel()
	r, dir, patch, before, _ := cutOff(t)
	erase(t, dir, "gone")
	write(t, dir, files{"tool": "#!edited\n"})
	damage := read(t, dir)
	var conflict *ConflictError
	require.ErrorAs(t, r.Apply(t.Context(), patch), &conflict)
	require.Equal(t, []string{"tool"}, conflict.Paths)
	require.ErrorContains(t, conflict, r.backupOf(patch))
	require.Equal(t, damage, read(t, dir))

	write(t, dir, files{"tool": before["tool"]})
	require.NoError(t, r.Apply(t.Context(), patch), "repaired by hand")
	require.NoFileExists(t, filepath.Join(dir, "gone", "deep.txt"))
}

func TestBackupWithoutListIsIgnored(t *testing.T) {
	t.Parallel()
	r, dir, patch, _, after := cutOff(t)
	erase(t, r.backupOf(patch), listFile)
	require.False(t, must(r.Applied(t.Context(), patch))(t))
	require.NoDirExists(t, r.backupOf(patch))
	require.NoError(t, r.Apply(t.Context(), patch))
	require.Equal(t, after, read(t, dir))
}

// applyAndDie is the process that [TestKilledApply] kills.
func applyAndDie(dir string) {
	patch, err := os.ReadFile(filepath.Join(dir, ".git", "patch"))
	if err == nil {
		err = os.Setenv("PASSBOOK_TEST_PID", strconv.Itoa(os.Getpid()))
	}
	if err == nil {
		var r *Repo
		if r, err = Open(context.Background(), dir); err == nil {
			err = r.Apply(context.Background(), patch)
		}
	}
	panic(err) // a filter kills us first
}

func TestKilledApply(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{
		".gitattributes": "*.bad filter=bad\n", "a.txt": "a\n", "old.txt": tenLines, "z.bad": "z\n",
	})
	w, base := worktree(t, r)
	write(t, w.Root(), files{"a.txt": "a2\n", "z.bad": "z2\n"})
	require.NoError(t, os.Rename(filepath.Join(w.Root(), "old.txt"), filepath.Join(w.Root(), "renamed.txt")))
	patch := patchSince(t, w, base)
	before := read(t, dir)
	write(t, dir, files{".git/patch": string(patch)})
	run(t, dir, "config", "filter.bad.clean", "cat")
	run(t, dir, "config", "filter.bad.smudge", "kill -9 $PASSBOOK_TEST_PID $PPID")
	cmd := exec.CommandContext(t.Context(), must(os.Executable())(t))
	cmd.Env = append(os.Environ(), "PASSBOOK_TEST_APPLY="+dir)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, string(out))
	require.Equal(t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal(), string(out))
	require.NotEqual(t, before, read(t, dir), "it was half done")

	run(t, dir, "config", "filter.bad.smudge", "cat")
	require.False(t, must(r.Applied(t.Context(), patch))(t))
	require.Equal(t, before, read(t, dir))
	require.NoError(t, r.Apply(t.Context(), patch))
	require.Equal(t, read(t, w.Root()), read(t, dir))
}
