package git

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDirt(t *testing.T) {
	t.Parallel()
	const odd = "odd \"name\"\nwith a newline, \xff and 'ü'"
	for _, row := range []struct {
		name string
		do   func(t *testing.T, dir string)
		want Dirt
	}{
		{"clean", func(*testing.T, string) {}, Dirt{}},
		{"unstaged", writes(files{"a.txt": "x\n"}), Dirt{
			Paths: []string{"a.txt"},
		}},
		{"staged", func(t *testing.T, dir string) {
			write(t, dir, files{"a.txt": "x\n"})
			run(t, dir, "add", "a.txt")
		}, Dirt{Paths: []string{"a.txt"}}},
		{"staged and changed again", func(t *testing.T, dir string) {
			write(t, dir, files{"a.txt": "x\n"})
			run(t, dir, "add", "a.txt")
			write(t, dir, files{"a.txt": "y\n"})
		}, Dirt{Paths: []string{"a.txt"}}},
		{"deleted", erases("a.txt"), Dirt{Paths: []string{"a.txt"}}},
		{"renamed", func(t *testing.T, dir string) { run(t, dir, "mv", "a.txt", "z.txt") }, Dirt{
			Paths: []string{"a.txt", "z.txt"},
		}},
		{
			"executable", func(t *testing.T, dir string) {
				require.NoError(t,
					os.Chmod(filepath.Join(dir, "a.txt"), 0o755))
			},
			Dirt{Paths: []string{"a.txt"}},
		},
		{"untracked, not ignored, in a folder",
			writes(files{"new/one.txt": "1\n", "new/two.txt": "2\n", "ignored/x": "x\n"}),
			Dirt{Paths: []string{"new/one.txt", "new/two.txt"}}},
		{"odd names", writes(files{odd: "o\n", "1 M. x": "o\n"}), Dirt{
			Paths: []string{"1 M. x", odd},
		}},
		{"conflict", conflict, Dirt{Paths: []string{"a.txt"}, Unmerged: []string{"a.txt"}, Operation: "merge"}},
		{"a repository inside", func(t *testing.T, dir string) {
			write(t, dir, files{"inner/i.txt": "i\n"})
			run(t, filepath.Join(dir, "inner"), "init", "-q")
		}, Dirt{Paths: []string{"inner"}}},
		{"a submodule with changes", func(t *testing.T, dir string) {
			submodule(t, dir)
			write(t, dir, files{"lib/l.txt": "changed\n"})
		}, Dirt{Paths: []string{"lib"}}},
		{"a clean submodule", submodule, Dirt{}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, dir := initial(t, files{"a.txt": "a\n", ".gitignore": "ignored/\n"})
			row.do(t, dir)
			require.Equal(t, row.want, must(r.Dirt(t.Context()))(t))
		})
	}
}

// submodule adds one at lib, and commits.
func submodule(t *testing.T, dir string) {
	t.Helper()
	_, lib := initial(t, files{"l.txt": "l\n"})
	run(t, dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib, "lib")
	run(t, dir, "commit", "-q", "-m", "submodule")
}

func TestOperations(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ file, want string }{
		{"rebase-merge/head-name", "rebase"}, {"rebase-apply/patch", "rebase"}, {"MERGE_HEAD", "merge"},
		{"CHERRY_PICK_HEAD", "cherry-pick"}, {"REVERT_HEAD", "revert"}, {"BISECT_LOG", "bisect"}, {"ORIG_HEAD", ""},
	} {
		dir := folder(t)
		write(t, dir, files{row.file: ""})
		require.Equal(t, row.want, operation(dir), row.file)
	}
}

func TestDirtWritesNothing(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a.txt": "a\n"})
	index := filepath.Join(dir, ".git", "index")
	before := must(os.ReadFile(index))(t)
	later := filepath.Join(dir, "a.txt")
	write(t, dir, files{"a.txt": "a\n"})
	info := must(os.Stat(later))(t)
	require.NoError(t, os.Chtimes(later, info.ModTime().Add(5e9), info.ModTime().Add(5e9)))
	d := must(r.Dirt(t.Context()))(t)
	require.Empty(t, d.Paths)
	require.Empty(t, d.Operation)
	require.Equal(t, before, must(os.ReadFile(index))(t))
}

// conflict leaves a merge with a conflict.
func conflict(t *testing.T, dir string) {
	t.Helper()
	branch(t, dir, "side", files{"a.txt": "side\n"})
	write(t, dir, files{"a.txt": "main\n"})
	run(t, dir, "commit", "-q", "-am", "main")
	_, err := (git{dir: dir}).withEnv(defaultIdentity...).output(t.Context(), "merge", "side")
	require.Equal(t, 1, exitCode(err))
}
