package git

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSubmodules checks out the recorded commits, whatever is checked out in the source, and runs no hooks.
func TestSubmodules(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, inner := initial(t, files{"i": "i\n"})
	_, lib := initial(t, files{"l": "1\n", ".gitignore": "*.o\n"})
	add := func(dir, of, name string) {
		run(t, dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", of, name)
		run(t, dir, "commit", "-q", "-m", name)
	}
	add(lib, inner, "in/ner")
	r, dir := initial(t, files{"a": "a\n"})
	add(dir, lib, "lib")
	run(t, dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", "--recursive")
	source := filepath.Join(dir, "lib")
	write(t, source, files{"l": "2\n"})
	run(t, source, "commit", "-q", "-am", "not recorded")
	write(t, source, files{"l": "3\n"})
	write(t, dir, files{".git/modules/lib/hooks/post-checkout": "#!/bin/sh\ntouch " + filepath.Join(dir, "ran") + "\n"})
	require.NoError(t, os.Chmod(filepath.Join(dir, ".git/modules/lib/hooks/post-checkout"), 0o755))

	start := head(t, dir)
	to := filepath.Join(folder(t), "w")
	require.NoError(t, r.CheckOut(ctx, start, to))
	subs := must(r.Submodules(ctx, start))(t)
	var tracked []string
	for _, s := range subs {
		require.False(t, s.Missing())
		require.NoError(t, s.CheckOut(ctx, to))
		tracked = append(tracked, must(s.Tracked(ctx))(t)...)
	}
	require.Equal(t, []string{"lib/.gitignore", "lib/.gitmodules", "lib/in/ner", "lib/l", "lib/in/ner/i"}, tracked)
	got := read(t, to)
	delete(got, ".gitmodules")
	delete(got, "lib/.gitmodules")
	require.Equal(t, files{"a": "a\n", "lib/l": "1\n", "lib/.gitignore": "*.o\n", "lib/in/ner/i": "i\n"}, got)
	require.NoDirExists(t, filepath.Join(to, "lib/.git"))
	require.NoFileExists(t, filepath.Join(dir, "ran"))

	id := must(r.Record(ctx, Commit{"passbook/r", start, start, "work", "", []File{file("a", "2\n")}}))(t)
	require.Equal(t, subs[0].Commit, run(t, dir, "rev-parse", id+":lib"))
}

func TestMissingSubmodules(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, dir string){
		"not initialised":        func(t *testing.T, dir string) { run(t, dir, "submodule", "deinit", "-q", "-f", "lib") },
		"without its repository": func(t *testing.T, dir string) { erase(t, dir, ".git/modules") },
		"an empty repository": func(t *testing.T, dir string) {
			erase(t, dir, "lib")
			run(t, dir, "init", "-q", "lib")
		},
		"a folder of the repository itself": func(t *testing.T, dir string) {
			run(t, dir, "update-index", "--cacheinfo", "160000,"+head(t, dir)+",lib")
			run(t, dir, "commit", "-q", "-m", "moved")
			erase(t, dir, "lib")
			write(t, dir, files{"lib/.git/x": ""})
		},
		"a link to another repository": func(t *testing.T, dir string) {
			erase(t, dir, "lib")
			_, other := initial(t, nil)
			require.NoError(t, os.Symlink(other, filepath.Join(dir, "lib")))
		},
		"without the recorded commit": func(t *testing.T, dir string) {
			run(t, dir, "update-index", "--cacheinfo", "160000,"+head(t, dir)+",lib")
			run(t, dir, "commit", "-q", "-m", "moved")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, dir := initial(t, files{"a": "a\n"})
			submodule(t, dir)
			require.False(t, must(r.Submodules(t.Context(), "HEAD"))(t)[0].Missing())
			change(t, dir)
			subs := must(r.Submodules(t.Context(), "HEAD"))(t)
			require.Len(t, subs, 1)
			require.Equal(t, "lib", subs[0].Path)
			require.True(t, subs[0].Missing())
		})
	}
}
