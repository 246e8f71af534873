package git

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// workspace is the folder of a run at the start commit of a source.
func workspace(t *testing.T, fs files) (m *Mirror, dir, start string) {
	t.Helper()
	r, source := initial(t, fs)
	m = must(OpenMirror(t.Context(), folder(t), r))(t)
	start = must(m.Fetch(t.Context(), head(t, source)))(t)
	dir = folder(t)
	write(t, dir, fs)
	return m, dir, start
}

// everything returns all names below a folder with their contents.
func everything(t *testing.T, dir string) files {
	t.Helper()
	found := files{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		found[strings.TrimPrefix(path, dir+"/")] = string(raw)
		return err
	}))
	return found
}

func TestRemakeNew(t *testing.T) {
	t.Parallel()
	m, dir, start := workspace(t, files{"a.txt": "a\n", "sub/b.txt": "b\n"})
	before := read(t, dir)
	require.NoError(t, m.Remake(t.Context(), dir, Head{start, "passbook/fix-it", "secret\n"}))
	require.Equal(t, before, read(t, dir))
	write(t, dir, files{"secret": "s", "new": "n"})
	require.Equal(t, "?? new", status(t, dir))
	require.Equal(t, "passbook/fix-it", run(t, dir, "branch", "--show-current"))
	require.Equal(t, start, head(t, dir))
	run(t, dir, "fsck", "--full")
	require.NotEqual(t, start, commit(t, dir, files{"a.txt": "mine\n"}))

	require.NoError(t, m.Remake(t.Context(), dir, Head{Commit: start}))
	require.Empty(t, run(t, dir, "for-each-ref"))
	require.Empty(t, run(t, dir, "branch", "--show-current"))
	require.Equal(t, "M a.txt ?? new ?? secret", status(t, dir))
}

func TestRemakeRefuses(t *testing.T) {
	t.Parallel()
	m, dir, start := workspace(t, nil)
	for _, row := range []struct {
		head    Head
		message string
	}{
		{Head{Commit: "main"}, "not the complete id"},
		{Head{Commit: strings.Repeat("1", 40)}, "fetch it first"},
		{Head{Commit: start, Branch: "../../config"}, "not the name of a branch"},
		{Head{Commit: start, Branch: "a\nb"}, "not the name of a branch"},
	} {
		require.ErrorContains(t, m.Remake(t.Context(), dir, row.head), row.message)
	}
	require.NoDirExists(t, filepath.Join(dir, ".git"))
}

// attacks are what an agent can do to .git. evil sets commands that leave a mark.
var attacks = []struct {
	name string
	do   func(t *testing.T, dir string, evil func(dir string))
}{
	{"nothing", func(*testing.T, string, func(string)) {}},
	{"configuration and hooks", func(t *testing.T, dir string, evil func(string)) { evil(dir) }},
	{"a .git file", func(t *testing.T, dir string, evil func(string)) {
		other := filepath.Join(folder(t), "other")
		require.NoError(t, os.Rename(filepath.Join(dir, ".git"), other))
		write(t, dir, files{".git": "gitdir: " + other + "\n"})
		evil(dir)
	}},
	{"a .git link", func(t *testing.T, dir string, evil func(string)) {
		evil(dir)
		other := filepath.Join(folder(t), "other")
		require.NoError(t, os.Rename(filepath.Join(dir, ".git"), other))
		require.NoError(t, os.Symlink(other, filepath.Join(dir, ".git")))
	}},
	{"commondir", func(t *testing.T, dir string, evil func(string)) {
		_, other := initial(t, nil)
		evil(other)
		write(t, dir, files{".git/commondir": filepath.Join(other, ".git") + "\n"})
	}},
	{"an include", func(t *testing.T, dir string, evil func(string)) {
		_, other := initial(t, nil)
		evil(other)
		write(t, dir, files{".git/config": "[include]\n\tpath = " + other + "/.git/config\n"})
	}},
	{"a pipe as configuration", func(t *testing.T, dir string, _ func(string)) {
		erase(t, dir, ".git/config")
		require.NoError(t, syscall.Mkfifo(filepath.Join(dir, ".git/config"), 0o600))
	}},
	{"pipes and links among the objects", func(t *testing.T, dir string, _ func(string)) {
		_, other := initial(t, nil)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, ".git/objects/ab"), 0o700))
		pipe := strings.Repeat("a", 38)
		require.NoError(t, syscall.Mkfifo(filepath.Join(dir, ".git/objects/ab", pipe), 0o600))
		require.NoError(t, syscall.Mkfifo(filepath.Join(dir, ".git/objects/pack/pack-"+pipe+"aa.idx"), 0o600))
		require.NoError(t, os.Symlink(filepath.Join(other, ".git/objects"), filepath.Join(dir, ".git/objects/cd")))
	}},
	{"alternates to elsewhere", func(t *testing.T, dir string, _ func(string)) {
		_, other := initial(t, nil)
		write(t, dir, files{".git/objects/info/alternates": filepath.Join(other, ".git/objects") + "\n",
			".git/objects/info/commit-graph": "x"})
	}},
	{"objects as a link", func(t *testing.T, dir string, _ func(string)) {
		_, other := initial(t, nil)
		erase(t, dir, ".git/objects")
		require.NoError(t, os.Symlink(filepath.Join(other, ".git/objects"), filepath.Join(dir, ".git/objects")))
	}},
	{"refs, worktrees and modules", func(t *testing.T, dir string, evil func(string)) {
		run(t, dir, "branch", "other")
		run(t, dir, "pack-refs", "--all")
		run(t, dir, "worktree", "add", "-q", filepath.Join(folder(t), "linked"))
		run(t, dir, "config", "extensions.worktreeConfig", "true")
		write(t, dir, files{".git/config.worktree": "[core]\n\tfsmonitor = false\n", ".git/modules/x/config": "x",
			".git/info/attributes": "* filter=evil\n", ".git/info/grafts": "x", ".git/logs/HEAD": "x"})
		evil(dir)
	}},
	{"an index that hides changes", func(t *testing.T, dir string, _ func(string)) {
		run(t, dir, "update-index", "--assume-unchanged", "a.txt")
		run(t, dir, "update-index", "--split-index")
		write(t, dir, files{".git/index.lock": ""})
	}},
	{"a forged object", func(t *testing.T, dir string, _ func(string)) {
		tree := run(t, dir, "rev-parse", "HEAD^{tree}")
		empty := run(t, dir, "hash-object", "-w", "-t", "tree", "--stdin")
		at := filepath.Join(dir, ".git/objects")
		require.NoError(t, os.MkdirAll(filepath.Join(at, tree[:2]), 0o700))
		require.NoError(t, os.Rename(filepath.Join(at, empty[:2], empty[2:]), filepath.Join(at, tree[:2], tree[2:])))
	}},
	{"no permissions", func(t *testing.T, dir string, _ func(string)) {
		write(t, dir, files{".git/hooks/deep/x": "x"})
		for _, name := range []string{"hooks/deep", "hooks", "objects/pack", "objects", "."} {
			require.NoError(t, os.Chmod(filepath.Join(dir, ".git", name), 0))
		}
	}},
}

func TestRemakeRemovesWhatAnAgentWrote(t *testing.T) {
	t.Parallel()
	for _, row := range attacks {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			m, dir, start := workspace(t, files{"a.txt": "a\n", ".gitattributes": "* filter=evil\n"})
			h := Head{start, "passbook/r", "x\n"}
			require.NoError(t, m.Remake(t.Context(), dir, h))
			wants := everything(t, filepath.Join(dir, ".git"))
			own := run(t, dir, "hash-object", "-w", "a.txt")
			mark := filepath.Join(folder(t), "none")
			row.do(t, dir, func(dir string) { mark = plantedIn(t, dir) })
			_ = os.Remove(mark)
			require.NoError(t, m.Remake(t.Context(), dir, h))
			require.NoFileExists(t, mark)
			found := everything(t, filepath.Join(dir, ".git"))
			for name := range found {
				if strings.HasPrefix(name, "objects/") && wants[name] == "" {
					delete(found, name)
				}
			}
			require.Equal(t, wants, found)
			write(t, dir, files{"a.txt": "changed\n"})
			if row.name != "a forged object" {
				require.Equal(t, "M a.txt", status(t, dir))
				run(t, dir, "commit", "-q", "-am", "by the operator")
			}
			require.NoFileExists(t, mark)
			if row.name == "nothing" {
				require.Equal(t, "a", run(t, dir, "cat-file", "blob", own))
			}
		})
	}
}

// plantedIn is planted for any kind of .git.
func plantedIn(t *testing.T, dir string) string {
	t.Helper()
	mark := filepath.Join(folder(t), "ran")
	script := filepath.Join(filepath.Dir(mark), "command")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho \"$0 $*\" >>"+mark+"\ncat\n"), 0o755))
	for _, key := range []string{"core.fsmonitor", "filter.evil.clean", "filter.evil.smudge", "core.editor"} {
		run(t, dir, "config", key, script)
	}
	hooks := filepath.Join(run(t, dir, "rev-parse", "--absolute-git-dir"), "hooks")
	require.NoError(t, os.MkdirAll(hooks, 0o755))
	for _, hook := range []string{"pre-commit", "post-index-change", "reference-transaction", "post-commit"} {
		require.NoError(t, os.WriteFile(filepath.Join(hooks, hook), []byte("#!/bin/sh\necho "+hook+" >>"+mark+"\n"), 0o755))
	}
	return mark
}

func TestRemakeLeavesNestedRepositories(t *testing.T) {
	t.Parallel()
	m, dir, start := workspace(t, files{"a.txt": "a\n"})
	run(t, dir, "init", "-q", "sub")
	before := everything(t, filepath.Join(dir, "sub"))
	require.NoError(t, m.Remake(t.Context(), dir, Head{Commit: start}))
	require.Equal(t, before, everything(t, filepath.Join(dir, "sub")))
}

// TestInterruptedRemake stops before each step, and runs again.
func TestInterruptedRemake(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	m, dir, start := workspace(t, files{"a.txt": "a\n"})
	h := Head{start, "passbook/r", "x\n"}
	require.NoError(t, m.Remake(ctx, dir, h))
	wants := everything(t, filepath.Join(dir, ".git"))
	for k := 0; ; k++ {
		require.Less(t, k, 100)
		write(t, dir, files{".git/hooks/x": "x", ".git/config": "x", ".git/objects/x/y": "x", ".git/refs/tags/t": "x"})
		left := k
		err := m.remake(ctx, dir, h, func(string) error {
			if left--; left < 0 {
				return errKilled
			}
			return nil
		})
		if err == nil {
			require.Greater(t, k, 10)
			break
		}
		require.ErrorIs(t, err, errKilled)
		require.NoError(t, m.Remake(ctx, dir, h))
		require.Equal(t, wants, everything(t, filepath.Join(dir, ".git")))
	}
}

// TestCost prints the CPU time of Remake and Record for 10,000 files of which 20 changed.
func TestCost(t *testing.T) {
	if os.Getenv("PASSBOOK_TEST_COST") == "" {
		t.Skip("PASSBOOK_TEST_COST is not set")
	}
	fs := files{".gitattributes": "* text=auto\n"}
	for i := range 10_000 {
		fs[fmt.Sprintf("src/%02d/%d.txt", i%100, i)] = strings.Repeat(fmt.Sprintln(i), 200)
	}
	m, dir, start := workspace(t, fs)
	var changed []File
	for i := range 20 {
		changed = append(changed, file(fmt.Sprintf("src/%02d/%d.txt", i, i), "changed\n"))
	}
	const rounds = 10
	measure := func(name string, do func(i int)) {
		began, wall := cpu(t), time.Now()
		for i := range rounds {
			do(i)
		}
		t.Logf("%s: %v of CPU, %v", name, (cpu(t)-began)/rounds, time.Since(wall)/rounds)
	}
	measure("remake", func(int) { require.NoError(t, m.Remake(t.Context(), dir, Head{Commit: start, Branch: "x"})) })
	measure("index", func(int) { must(m.index(t.Context(), start))(t) })
	measure("record", func(i int) {
		must(m.source.Record(t.Context(), Commit{fmt.Sprint("passbook/", i), start, start, "work", "", changed}))(t)
	})
	measure("differences", func(i int) {
		require.Empty(t, must(m.source.Differences(t.Context(), fmt.Sprint("passbook/", i), start, changed))(t))
	})
	measure("fetch", func(int) { must(m.Fetch(t.Context(), start))(t) })
}

// cpu is the time that this process and its ended children used.
func cpu(t *testing.T) (total time.Duration) {
	t.Helper()
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		require.NoError(t, syscall.Getrusage(who, &u))
		total += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return total
}
