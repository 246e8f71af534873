package workspace_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/run"
)

// place is the folder of a run, with two trees to restore.
type place struct {
	t           *testing.T
	s           *store.Store
	folders     *workspace.Folders
	dir         string
	first, next run.Blob
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, s: open(t), folders: workspace.In(filepath.Join(t.TempDir(), "state [1]"))}
	p.dir = p.folders.Path("/home/me/repo", "01234567-89ab", "")
	p.first = p.stored(map[string]string{"a": "a", "b": "b", ".gitignore": "*.o\n"})
	p.next = p.stored(map[string]string{"a": "A", "c": "c", ".gitignore": "*.o\n"})
	return p
}

func (p *place) stored(files map[string]string) run.Blob {
	p.t.Helper()
	from := p.t.TempDir()
	write(p.t, from, files)
	saved, err := tree.Save(p.t.Context(), p.s, from, tree.Rules{}, nil)
	require.NoError(p.t, err)
	return workspace.Blob(saved)
}

// lock locks the folder for the test, or until unlocked.
func (p *place) lock() *workspace.Folder {
	p.t.Helper()
	w, err := p.folders.Lock(p.t.Context(), p.dir)
	require.NoError(p.t, err)
	return w
}

// restart is another process that uses the folders.
func (p *place) restart() {
	p.folders = workspace.In(filepath.Dir(filepath.Dir(filepath.Dir(p.dir))))
}

func (p *place) rules() tree.Rules {
	return tree.Rules{Git: &tree.Ignores{Files: map[string]string{".": "*.o\n"}}}
}

// restore restores a tree, and returns what was kept.
func (p *place) restore(w *workspace.Folder, b run.Blob) (kept []string) {
	p.t.Helper()
	require.NoError(p.t, w.Restore(p.t.Context(), p.s, b, p.rules(), func(path string) error {
		kept = append(kept, path)
		return nil
	}))
	slices.Sort(kept)
	return kept
}

func (p *place) files() map[string]string {
	p.t.Helper()
	all := map[string]string{}
	require.NoError(p.t, filepath.WalkDir(p.dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		all[path[len(p.dir)+1:]] = string(raw)
		return err
	}))
	return all
}

// within are the rules of a workspace.
func (p *place) within(of run.Workspace) tree.Rules {
	p.t.Helper()
	rules, err := workspace.In("").WithGit(p.t.Context(), p.s, p.rules(), of)
	require.NoError(p.t, err)
	return rules
}

func TestFolderOfARun(t *testing.T) {
	p := newPlace(t)
	w := p.lock()
	require.True(t, w.New())
	require.NoError(t, w.Describe("/home/me/repo"))
	require.True(t, w.New(), "only described")
	require.Empty(t, p.restore(w, p.first))
	require.False(t, w.New())
	write(t, p.dir, map[string]string{"x.o": "o"})
	require.Empty(t, p.restore(w, p.next))
	require.Equal(t, map[string]string{"a": "A", "c": "c", ".gitignore": "*.o\n", "x.o": "o"}, p.files(), "ignored files stay")
	require.NoError(t, w.Unlock())

	p.restart()
	w = p.lock()
	require.False(t, w.New())
	write(t, p.dir, map[string]string{"a": "mine", "new": "mine", "y.o": "o"})
	changed, err := w.Changed(t.Context(), p.s, p.rules())
	require.NoError(t, err)
	require.Equal(t, []string{"a", "new"}, changed)
	require.Equal(t, []string{"a", "new"}, p.restore(w, p.next))
	require.Equal(t, "A", p.files()["a"])
	require.NotContains(t, p.files(), "new")
	require.NoError(t, w.Discard())
	require.NoDirExists(t, p.dir)
	require.True(t, w.New())
	require.NoError(t, w.Unlock())
	source, err := p.folders.Source(t.Context(), "01234567-89ab")
	require.NoError(t, err)
	require.Equal(t, "/home/me/repo", source)
}

// TestFoldersOfARun are its own and those of its slots, and not those of other runs.
func TestFoldersOfARun(t *testing.T) {
	p := newPlace(t)
	none, err := p.folders.Of("01234567-89ab")
	require.NoError(t, err)
	require.Empty(t, none)
	var own []string
	for _, of := range []struct{ source, runID, slot string }{{"/repo", "01234567-89ab", ""}, {"/repo", "01234567-89ab", "lane-1"},
		{"/other", "01234567-89ab", "b"}, {"/repo", "01234568-89ab", ""}, {"/repo", "0123456", ""}} {
		p.dir = p.folders.Path(of.source, of.runID, of.slot)
		w := p.lock()
		p.restore(w, p.first)
		require.NoError(t, w.Unlock())
		if of.runID == "01234567-89ab" {
			own = append(own, p.dir)
		}
	}
	all, err := p.folders.Of("01234567-89ab")
	require.NoError(t, err)
	require.Equal(t, own[0], all[0], "its own is the first")
	require.ElementsMatch(t, own, all)
	require.NoError(t, p.folders.Remove(t.Context(), "01234567-89ab"))
	for _, dir := range own {
		require.NoFileExists(t, dir+".json")
		require.NoFileExists(t, dir+".lock")
		require.NoDirExists(t, dir)
	}
	require.NoDirExists(t, filepath.Dir(own[2]), "the last of its source")
	require.DirExists(t, p.dir)
	require.NoError(t, p.folders.Remove(t.Context(), "01234567-89ab"))
}

// TestFoldersAreLocked: one process uses a folder at a time, and a wait ends with its context.
func TestFoldersAreLocked(t *testing.T) {
	p := newPlace(t)
	w := p.lock()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := p.folders.Lock(ctx, p.dir)
	var held *disk.ErrHeld
	require.ErrorAs(t, err, &held)
	require.NoError(t, w.Unlock())
	require.NoError(t, p.lock().Unlock())
}

// TestFoldersAreHeldByOneCall: a call in a folder excludes others while its supervisor lives, and leaves doubt if that
// has died.
func TestFoldersAreHeldByOneCall(t *testing.T) {
	p := newPlace(t)
	self, err := process.Self()
	require.NoError(t, err)
	sleep := exec.Command("sleep", "600")
	require.NoError(t, sleep.Start())
	other, err := process.Of(sleep.Process.Pid)
	require.NoError(t, err)
	w := p.lock()
	hold := func(call string, by process.Identity) (bool, error) {
		return w.Hold(workspace.Holder{Call: call, Supervisor: by})
	}
	doubtful, err := hold("r/1", other)
	require.NoError(t, err)
	require.False(t, doubtful)
	require.True(t, w.HeldBy("r/1"))
	require.False(t, w.HeldBy("r/2"))
	require.False(t, w.Lost())
	require.NoError(t, w.Unlock())

	p.restart()
	w = p.lock()
	_, err = hold("r/2", self)
	var busy *workspace.BusyError
	require.ErrorAs(t, err, &busy)
	require.Equal(t, "r/1", busy.Holder.Call)
	require.ErrorContains(t, err, p.dir+" is used by call r/1")
	require.True(t, w.HeldBy("r/1"), "nothing changed")

	require.NoError(t, sleep.Process.Kill())
	require.Error(t, sleep.Wait())
	require.True(t, w.Lost())
	doubtful, err = hold("r/2", self)
	require.NoError(t, err)
	require.True(t, doubtful)
	require.NoError(t, w.Release())
	require.NoError(t, w.Release(), "again")
	doubtful, err = hold("r/3", self)
	require.NoError(t, err)
	require.False(t, doubtful, "the call before was released")
	require.NoError(t, w.Discard())
	require.True(t, w.HeldBy("r/3"), "a new folder is for the same call")
}

// TestSetupIsWhole: a folder whose setup was interrupted is new, and one that was set up with something else is not.
func TestSetupIsWhole(t *testing.T) {
	p := newPlace(t)
	w := p.lock()
	p.restore(w, p.first)
	require.False(t, w.SetUp("with"))
	require.NoError(t, w.BeginSetup())
	require.NoError(t, w.Unlock())
	w = p.lock()
	require.True(t, w.New())
	require.NoError(t, w.Discard())
	p.restore(w, p.first)
	require.NoError(t, w.BeginSetup())
	require.NoError(t, w.EndSetup("with"))
	require.NoError(t, w.Unlock())
	w = p.lock()
	require.False(t, w.New())
	require.True(t, w.SetUp("with"))
	require.False(t, w.SetUp("another lock file"))
	require.NoError(t, w.Discard())
	require.False(t, w.SetUp("with"))
}

// TestInterruptedRestore: what both trees have is Passbook's, until one of them is restored again.
func TestInterruptedRestore(t *testing.T) {
	p := newPlace(t)
	w := p.lock()
	p.restore(w, p.first)
	over := context.Canceled
	write(t, p.dir, map[string]string{"a": "mine"})
	require.ErrorIs(t, w.Restore(t.Context(), p.s, p.next, p.rules(), func(string) error { return over }), over)
	require.NoError(t, w.Unlock())
	write(t, p.dir, map[string]string{"a": "A", "c": "c", "d": "mine"}) // that far, and one of an operator
	p.restart()
	w = p.lock()
	require.False(t, w.New())
	changed, err := w.Changed(t.Context(), p.s, p.rules())
	require.NoError(t, err)
	require.Equal(t, []string{"d"}, changed)
	of := run.Workspace{Tree: p.first}
	saved, err := w.Edits(t.Context(), p.s, of.Tree, p.within(of))
	require.NoError(t, err)
	require.Equal(t, []string{".gitignore", "a", "b", "d"}, paths(saved), "the tree of before with the edit")
	for _, e := range saved.Tree.Entries {
		if e.Path == "a" {
			require.Equal(t, store.DigestOf([]byte("a")), e.Digest)
		}
	}
	require.Equal(t, []string{"d"}, p.restore(w, p.first))
	require.Equal(t, map[string]string{"a": "a", "b": "b", ".gitignore": "*.o\n"}, p.files())
}

// TestEditsOfOperators are what Passbook has not left there; what a call left is none.
func TestEditsOfOperators(t *testing.T) {
	p := newPlace(t)
	w := p.lock()
	p.restore(w, p.first)
	of := run.Workspace{Tree: p.first}
	saved, err := w.Edits(t.Context(), p.s, of.Tree, p.within(of))
	require.NoError(t, err)
	require.Equal(t, p.first.Digest, string(saved.Digest))

	write(t, p.dir, map[string]string{"a": "of a call"})
	_, err = w.Save(t.Context(), p.s, p.within(of))
	require.NoError(t, err)
	write(t, p.dir, map[string]string{"b": "mine", "new": "mine", "x.o": "o"})
	saved, err = w.Edits(t.Context(), p.s, of.Tree, p.within(of))
	require.NoError(t, err)
	require.Equal(t, p.stored(map[string]string{"a": "a", "b": "mine", "new": "mine", ".gitignore": "*.o\n"}).Digest,
		string(saved.Digest))
	loaded, err := tree.Load(t.Context(), p.s, saved.Digest)
	require.NoError(t, err, "it is stored")
	require.Equal(t, saved.Tree, loaded)
}

// TestDamagedRecord: the folder is made anew, and no file in it is lost.
func TestDamagedRecord(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "torn": `{"version":1,"tre`, "another version": `{"version":2}`} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			w := p.lock()
			p.restore(w, p.first)
			require.NoError(t, w.Unlock())
			require.NoError(t, os.WriteFile(p.dir+".json", []byte(text), 0o600))
			write(t, p.dir, map[string]string{"a": "mine", "x.o": "o"})
			w = p.lock()
			require.True(t, w.New())
			var kept []string
			require.NoError(t, w.Remake(t.Context(), p.s, p.next, p.rules(), func(path string) error {
				kept = append(kept, path)
				return nil
			}))
			require.ElementsMatch(t, []string{"a", "b"}, kept)
			require.Equal(t, map[string]string{"a": "A", "c": "c", ".gitignore": "*.o\n"}, p.files())
			require.False(t, w.New())
		})
	}
}

// TestLinkInThePlaceOfAFolder: nothing is read or written where it leads.
func TestLinkInThePlaceOfAFolder(t *testing.T) {
	p, precious := newPlace(t), t.TempDir()
	w := p.lock()
	p.restore(w, p.first)
	write(t, precious, map[string]string{"mine": "mine"})
	require.NoError(t, os.RemoveAll(p.dir))
	require.NoError(t, os.Symlink(precious, p.dir))
	require.True(t, w.New())
	require.ErrorContains(t, w.Restore(t.Context(), p.s, p.next, p.rules(), nil), "is a symlink: remove it")
	_, err := w.Save(t.Context(), p.s, p.rules())
	require.ErrorContains(t, err, "is a symlink")
	_, err = w.Edits(t.Context(), p.s, p.first, p.rules())
	require.ErrorContains(t, err, "is a symlink")
	require.NoError(t, w.Remake(t.Context(), p.s, p.next, p.rules(), nil))
	require.Equal(t, "A", p.files()["a"])
	left, err := os.ReadDir(precious)
	require.NoError(t, err)
	require.Len(t, left, 1)
}

// TestRemovesFoldersWithoutPermissions that an agent removed, and follows no link in them.
func TestRemovesFoldersWithoutPermissions(t *testing.T) {
	p, precious := newPlace(t), t.TempDir()
	write(t, precious, map[string]string{"mine": "mine"})
	w := p.lock()
	p.restore(w, p.first)
	write(t, p.dir, map[string]string{"d/e/f": "x"})
	require.NoError(t, os.Symlink(precious, filepath.Join(p.dir, "d/link")))
	require.NoError(t, os.Chmod(filepath.Join(p.dir, "d/e"), 0))
	require.NoError(t, os.Chmod(filepath.Join(p.dir, "d"), 0o500))
	require.NoError(t, w.Remove())
	require.NoDirExists(t, p.dir)
	require.FileExists(t, filepath.Join(precious, "mine"))
}
