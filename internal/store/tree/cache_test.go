package tree

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/store"
)

// openHooked is a store that calls the hook before each step, one at a time.
func openHooked(t *testing.T, hook func(disk.Step)) *store.Store {
	t.Helper()
	var one sync.Mutex
	s, err := store.OpenOn(t.Context(), disk.Disk{Hook: func(st disk.Step) error {
		one.Lock()
		defer one.Unlock()
		if hook != nil {
			hook(st)
		}
		return nil
	}}, "file://"+t.TempDir())
	require.NoError(t, err)
	return s
}

// must returns the value of a call that may not fail: must(f())(t).
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T { t.Helper(); require.NoError(t, err); return v }
}

func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

// TestOnlyWhatChangedIsReadAgain uses a cache with a wrong digest, which is used while the file is as the cache records:
// so a read is visible.
func TestOnlyWhatChangedIsReadAgain(t *testing.T) {
	const lie = store.Digest("1111111111111111111111111111111111111111111111111111111111111111")
	rows := []struct {
		name   string
		change func(t *testing.T, path string)
		want   store.Digest
	}{
		{"nothing", func(*testing.T, string) {}, lie},
		{"another size", func(t *testing.T, path string) { write(t, path, "longer") },
			store.DigestOf([]byte("longer"))},
		{"the same size and mtime", func(t *testing.T, path string) {
			info := must(os.Stat(path))(t)
			write(t, path, "edited")
			require.NoError(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
		}, store.DigestOf([]byte("edited"))},
		{
			"only the permissions", func(t *testing.T, path string) { require.NoError(t, os.Chmod(path, 0o600)) },
			store.DigestOf([]byte("before")),
		},
		{"another file in its place", func(t *testing.T, path string) {
			write(t, path+".new", "after!")
			require.NoError(t, os.Rename(path+".new", path))
		}, store.DigestOf([]byte("after!"))},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			s, dir := openHooked(t, nil), t.TempDir()
			path := filepath.Join(dir, "f")
			write(t, path, "before")
			info := must(os.Lstat(path))(t)
			cache := newCache(s)
			cache.remember("f", stampOf(info), lie, info.ModTime().Add(time.Hour))
			// the clock's next tick
			require.Eventually(t, func() bool { return clockOf(t).After(info.ModTime()) }, time.Minute,
				time.Millisecond)
			row.change(t, path)
			saved := must(Save(t.Context(), s, dir, Rules{}, cache))(t)
			require.Equal(t, row.want, saved.Tree.Entries[0].Digest)
		})
	}
}

// clockOf is the time of the file system.
func clockOf(t *testing.T) time.Time {
	t.Helper()
	probe := filepath.Join(t.TempDir(), "probe")
	write(t, probe, "")
	info := must(os.Stat(probe))(t)
	return info.ModTime()
}

func TestEveryPartOfAStampCounts(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s := stamp{inode: 1, size: 2, mtime: now, ctime: now}
	require.True(t, s.equal(stamp{inode: 1, size: 2, mtime: now.Local(), ctime: now}))
	for name, o := range map[string]stamp{
		"inode": {inode: 9, size: 2, mtime: now, ctime: now}, "size": {inode: 1, size: 9, mtime: now, ctime: now},
		"mtime": {inode: 1, size: 2, mtime: now.Add(1), ctime: now}, "ctime": {
			inode: 1, size: 2, mtime: now, ctime: now.Add(1),
		},
	} {
		require.False(t, s.equal(o), name)
	}
}

func TestRecentTimestampIsNotTrusted(t *testing.T) {
	look := time.Date(2026, 11, 21, 12, 0, 0, 500e6, time.UTC)
	rows := []struct {
		name string
		ago  time.Duration
		want bool
	}{
		{"now", 0, false},
		{"in the last tick", 10 * time.Millisecond, false},
		{"long ago", 200 * time.Millisecond, true},
		{"in the future", -time.Hour, false},
		{"a second ago, on a clock of whole seconds", 1500 * time.Millisecond, false},
		{"long ago, on a clock of whole seconds", 3500 * time.Millisecond, true},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, stamp{ctime: look.Add(-row.ago)}.settled(look))
		})
	}
}

func TestStoredContentIsNotWrittenAgain(t *testing.T) {
	var writes, syncs int
	s := openHooked(t, func(st disk.Step) {
		switch st.Op {
		case disk.OpWrite:
			writes++
		case disk.OpSync:
			syncs++
		}
	})
	dir := t.TempDir()
	write(t, dir+"/a", "a")
	write(t, dir+"/b", "b")
	first := must(Save(t.Context(), s, dir, Rules{}, nil))(t)
	require.Equal(t, 3, writes, "two files and a manifest")
	rows := []struct {
		name  string
		cache func(dir string) *Cache
	}{
		{"the cache of a save", func(string) *Cache { return first.Cache }},
		{"the cache of a checkout", func(dir string) *Cache {
			c := must(Checkout(t.Context(), s, first.Digest, dir, Rules{}))(t)
			return c
		}},
		{"a tree that is known", func(string) *Cache { return newCache(s).with(first.Tree) }},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir+"/a", "a")
			write(t, dir+"/b", "b")
			cache := row.cache(dir)
			writes, syncs = 0, 0
			again := must(Save(t.Context(), s, dir, Rules{}, cache))(t)
			require.Equal(t, first.Digest, again.Digest)
			require.Zero(t, writes+syncs)
			write(t, dir+"/b", "B"+row.name)
			must(Save(t.Context(), s, dir, Rules{}, again.Cache))(t)
			require.Equal(t, 2, writes, "one file and the manifest")
		})
	}
	other := openHooked(t, nil)
	moved := must(Save(t.Context(), other, dir, Rules{}, first.Cache))(t)
	_, err := Checkout(t.Context(), other, moved.Digest, t.TempDir(), Rules{})
	require.NoError(t, err, "a cache of another store was believed")
}

func TestFileChangesDuringRead(t *testing.T) {
	rows := []struct {
		name    string
		changes int
		before  disk.Op // when it changes: before it is copied, or after
		want    error
	}{
		{"in place, after", 1, disk.OpSync, nil},
		{"twice, before", 2, disk.OpCreate, nil},
		{"on and on, before", 100, disk.OpCreate, store.ErrChanged},
		{"twice, after", 2, disk.OpRename, nil},
		{"on and on, after", 100, disk.OpRename, store.ErrChanged},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			dir, changed := t.TempDir(), 0
			path := filepath.Join(dir, "log")
			s := openHooked(t, func(st disk.Step) {
				if st.Op != row.before || changed == row.changes {
					return
				}
				changed++
				info := must(os.Stat(path))(t)
				if st.Op == disk.OpSync {
					write(t, path, "LOG")
				} else {
					write(t, path, strings.Repeat("log..", 30)[:info.Size()+1])
				}
				// a clock that ticks at once
				require.NoError(t, os.Chtimes(path, time.Time{}, info.ModTime().Add(time.Hour)))
			})
			write(t, path, "log")
			saved, err := Save(t.Context(), s, dir, Rules{}, nil)
			require.ErrorIs(t, err, row.want)
			if row.want != nil {
				require.ErrorContains(t, err, ": log: ")
				return
			}
			want := "log.."[:3+row.changes]
			if row.before == disk.OpSync {
				want = "LOG"
			}
			got := must(s.Get(t.Context(), saved.Tree.Entries[0].Digest))(t)
			require.Equal(t, want, string(got))
			require.Equal(t, int64(len(want)), saved.Tree.Entries[0].Size)
		})
	}
}

// TestFilesRemovedDuringScan: a file that vanished is not in the tree; a store that vanished is an error.
func TestFilesRemovedDuringScan(t *testing.T) {
	for _, row := range []struct {
		name string
		gone func(dir, blob string) string
		want error
	}{
		{"the file", func(dir, _ string) string { return filepath.Join(dir, "a") }, nil},
		{"a folder of the store", func(_, blob string) string { return filepath.Dir(blob) }, os.ErrNotExist},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			content := []byte("soon gone")
			s := openHooked(t, func(st disk.Step) {
				if st.Op == disk.OpCreate && strings.HasPrefix(filepath.Base(st.Path),
					string(store.DigestOf(content))[2:]) {
					require.NoError(t, os.RemoveAll(row.gone(dir, st.Path)))
				}
			})
			write(t, dir+"/a", string(content))
			write(t, dir+"/b", "stays")
			saved, err := Save(t.Context(), s, dir, Rules{}, nil)
			require.ErrorIs(t, err, row.want)
			if row.want == nil {
				require.Len(t, saved.Tree.Entries, 1)
				require.Equal(t, "b", saved.Tree.Entries[0].Path)
			}
		})
	}
}

// TestCheckoutReadsOnlyWhatChanged uses a cache that takes other content for that of the tree: it stays where the file
// is as the cache records.
func TestCheckoutReadsOnlyWhatChanged(t *testing.T) {
	s, from, dir := must(store.Open(t.Context(), "file://"+t.TempDir()))(t), t.TempDir(), t.TempDir()
	for _, name := range []string{"a", "b"} {
		write(t, filepath.Join(from, name), "text")
		write(t, filepath.Join(dir, name), "else")
	}
	saved := must(Save(t.Context(), s, from, Rules{}, nil))(t)
	cache := newCache(s).with(saved.Tree)
	for _, name := range []string{"a", "b"} {
		cache.files[name] = known{stampOf(must(os.Lstat(filepath.Join(dir, name)))(t)), saved.Tree.Entries[0].Digest}
	}
	require.NoError(t, os.Chtimes(filepath.Join(dir, "b"), time.Now(), time.Now().Add(time.Second)))
	must(CheckoutOver(t.Context(), s, saved.Tree, dir, Rules{}, Over{Cache: cache}))(t)
	require.Equal(t, "else", string(must(os.ReadFile(filepath.Join(dir, "a")))(t)), "it is not read")
	require.Equal(t, "text", string(must(os.ReadFile(filepath.Join(dir, "b")))(t)))
}
