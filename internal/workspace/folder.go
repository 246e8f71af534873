package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/run"
)

// Folders are the folders of this host in which the calls of runs work. They lie below the state directory, outside of
// every source: below one, programs would find the user's modules, and the user's programs those of the run.
type Folders struct {
	root string

	mu     sync.Mutex
	caches map[string]*tree.Cache // by folder
	newest []loaded
}

// loaded is a stored tree in memory.
type loaded struct {
	store, digest string
	tree          tree.Tree
}

// load reads a tree from the store, or from memory. It keeps the newest few: reading one of many files takes longer than
// comparing it with a folder.
func (f *Folders) load(ctx context.Context, s *store.Store, digest string) (tree.Tree, error) {
	const most = 4
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.newest {
		if l.digest == digest && l.store == s.URL() {
			return l.tree, nil
		}
	}
	t, err := tree.Load(ctx, s, store.Digest(digest))
	if err == nil {
		f.newest = append(f.newest[max(0, len(f.newest)-most+1):], loaded{s.URL(), digest, t})
	}
	return t, err
}

// In returns the folders below a state directory.
func In(state string) *Folders {
	return &Folders{root: filepath.Join(state, "workspaces"), caches: map[string]*tree.Cache{}}
}

// Path returns the folder of a run that works on a source. Lanes and members of a group have one for each slot.
func (f *Folders) Path(source, runID, slot string) string {
	name := runID[:min(8, len(runID))]
	if slot != "" {
		name += "-" + slot
	}
	return filepath.Join(f.root, filepath.Base(source), name)
}

// Of returns all folders of a run: its own first, then those of lanes and members.
func (f *Folders) Of(runID string) ([]string, error) {
	own := runID[:min(8, len(runID))]
	sources, err := readDir(f.root)
	var all []string
	for _, source := range sources {
		found, rerr := readDir(filepath.Join(f.root, source.Name()))
		err = errors.Join(err, rerr)
		for _, e := range found {
			name, record := strings.CutSuffix(e.Name(), ".json")
			if record && (name == own || strings.HasPrefix(name, own+"-")) {
				all = append(all, filepath.Join(f.root, source.Name(), name))
			}
		}
	}
	slices.SortStableFunc(all, func(a, b string) int { return len(filepath.Base(a)) - len(filepath.Base(b)) })
	return all, err
}

// readDir lists a folder, which may be missing.
func readDir(dir string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	return entries, err
}

// Remove removes all folders of a run, whatever is in them.
func (f *Folders) Remove(ctx context.Context, runID string) error {
	all, err := f.Of(runID)
	if err != nil {
		return err
	}
	for _, dir := range all {
		w, err := f.Lock(ctx, dir)
		if err != nil {
			return err
		}
		if err := w.Remove(); err != nil {
			return err
		}
	}
	return nil
}

// Source returns the repository of a run, as recorded when it began; empty: none.
func (f *Folders) Source(ctx context.Context, runID string) (source string, err error) {
	all, err := f.Of(runID)
	if err != nil || len(all) == 0 {
		return "", err
	}
	w, err := f.Lock(ctx, all[0])
	if err != nil {
		return "", err
	}
	return w.was.Source, w.Unlock()
}

// Folder is one of the folders. One process at a time has it locked; a call works in it without the lock.
type Folder struct {
	Dir string
	of  *Folders
	was record

	lock *disk.Lock
}

// record is what is known of a folder. It lies beside the folder, where no agent writes.
type record struct {
	Version int      `json:"version"`
	Source  string   `json:"source,omitempty"`  // repository with the branch of the run
	Setup   string   `json:"setup,omitempty"`   // digest of what it was set up with; empty: it was not
	Partial bool     `json:"partial,omitempty"` // it is being set up
	Trees   []string `json:"trees,omitempty"`   // what Passbook left there; several: a restore was interrupted
	Holder  *Holder  `json:"holder,omitempty"`
}

// Holder is a call that works in a folder.
type Holder struct {
	Call       string           `json:"call"`
	Dir        string           `json:"dir"` // of its delivery
	Supervisor process.Identity `json:"supervisor"`
	Keeps      bool             `json:"keeps,omitempty"` // its changes are its result
}

// recordVersion is the version of the format of a record.
const recordVersion = 1

// BusyError means that another call works in a folder.
type BusyError struct {
	Dir    string
	Holder Holder
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("the workspace %s is used by call %s (process %d): wait until it ends, or stop it", e.Dir,
		e.Holder.Call, e.Holder.Supervisor.PID)
}

// Lock locks a folder, which need not exist yet.
func (f *Folders) Lock(ctx context.Context, dir string) (*Folder, error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, fmt.Errorf("lock the workspace %s: %w", dir, err)
	}
	lock, err := (disk.Disk{}).WaitLock(ctx, dir+".lock", disk.Self("passbook", time.Now()))
	if err != nil {
		return nil, fmt.Errorf("lock the workspace %s: %w", dir, err)
	}
	w := &Folder{Dir: dir, of: f, lock: lock}
	if err := w.read(); err != nil {
		return nil, errors.Join(fmt.Errorf("read the record of the workspace %s: %w", dir, err), lock.Unlock())
	}
	return w, nil
}

// Unlock lets others use the folder.
func (w *Folder) Unlock() error { return w.lock.Unlock() }

// read reads the record. A damaged one is as good as none: the folder is made again.
func (w *Folder) read() error {
	raw, err := os.ReadFile(w.Dir + ".json")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if json.Unmarshal(raw, &w.was) != nil || w.was.Version != recordVersion {
		w.was = record{}
	}
	return nil
}

func (w *Folder) write() error {
	w.was.Version = recordVersion
	raw, err := json.Marshal(w.was)
	if err != nil {
		return err
	}
	return disk.Disk{}.WriteFile(w.Dir+".json", append(raw, '\n'), 0o600)
}

// New reports whether the folder is to be made: it does not exist, or was never set up completely.
func (w *Folder) New() bool {
	return !w.There() || w.was.Partial || len(w.was.Trees) == 0
}

// There reports whether the folder exists. A link in its place is none.
func (w *Folder) There() bool {
	info, err := os.Lstat(w.Dir)
	return err == nil && info.IsDir()
}

// real refuses a link that has replaced the folder: nothing may be written where it leads.
func (w *Folder) real() error {
	if info, err := os.Lstat(w.Dir); err == nil && !info.IsDir() {
		return fmt.Errorf("the workspace %s is %s: remove it", w.Dir, disk.Kind(info.Mode()))
	}
	return nil
}

// Describe records the repository of the run, before anything else of it is made.
func (w *Folder) Describe(source string) error {
	w.was.Source = source
	return w.write()
}

// Changed returns the files that Passbook has not left in the folder. It writes nothing.
func (w *Folder) Changed(ctx context.Context, s *store.Store, rules tree.Rules) ([]string, error) {
	if !w.There() {
		return nil, nil
	}
	known, err := w.known(ctx, s)
	if err != nil {
		return nil, err
	}
	return tree.Foreign(ctx, w.Dir, rules, known)
}

// SetUp reports whether the folder was set up with something.
func (w *Folder) SetUp(with string) bool { return w.was.Setup == with }

// BeginSetup records that the folder is being set up. If that is interrupted, the folder is made again.
func (w *Folder) BeginSetup() error {
	w.was.Partial = true
	return w.write()
}

// EndSetup records with what the folder was set up.
func (w *Folder) EndSetup(with string) error {
	w.was.Partial, w.was.Setup = false, with
	return w.write()
}

// Hold records that a call works in the folder from now on. doubtful: the one before was killed or lost, so that
// ignored files may be half written. A call that still runs is a [BusyError].
func (w *Folder) Hold(by Holder) (doubtful bool, err error) {
	before := w.was.Holder
	if before != nil && before.Supervisor != by.Supervisor && before.Supervisor.Alive() {
		return false, &BusyError{Dir: w.Dir, Holder: *before}
	}
	w.was.Holder = &by
	return before != nil, w.write()
}

// Holder returns the call that works in the folder, or was the last one there; nil: it was released.
func (w *Folder) Holder() *Holder { return w.was.Holder }

// HeldBy reports whether a call works in the folder, or was the last one.
func (w *Folder) HeldBy(call string) bool { return w.was.Holder != nil && w.was.Holder.Call == call }

// Release records that the call in the folder has ended, and all it did is known.
func (w *Folder) Release() error {
	if w.was.Holder == nil {
		return nil
	}
	w.was.Holder = nil
	return w.write()
}

// Lost reports whether the call in the folder does not run, and was not released.
func (w *Folder) Lost() bool { return w.was.Holder != nil && !w.was.Holder.Supervisor.Alive() }

// Restore makes the folder hold a tree and what git ignores. Files of which Passbook knows nothing are given to keep
// before they are replaced.
func (w *Folder) Restore(ctx context.Context, s *store.Store, t run.Blob, rules tree.Rules,
	keep func(path string) error) error {
	if err := w.real(); err != nil {
		return err
	}
	ours, err := w.known(ctx, s)
	if err != nil {
		return err
	}
	w.was.Trees = append(w.was.Trees, t.Digest)
	if err := w.write(); err != nil {
		return err
	}
	over := tree.Over{Cache: w.cache(), Ours: ours, Keep: keep}
	want, err := w.of.load(ctx, s, t.Digest)
	if err != nil {
		return err
	}
	cache, err := tree.CheckoutOver(ctx, s, want, w.Dir, rules, over)
	if err != nil {
		return err
	}
	return w.holds(t.Digest, cache)
}

// Remake makes the folder anew: ignored files in it may be half written. Files of which Passbook knows nothing are given
// to keep before.
func (w *Folder) Remake(ctx context.Context, s *store.Store, t run.Blob, rules tree.Rules,
	keep func(path string) error) error {
	if w.There() {
		if err := w.Restore(ctx, s, t, rules, keep); err != nil {
			return err
		}
	}
	if err := w.Discard(); err != nil {
		return err
	}
	return w.Restore(ctx, s, t, rules, keep)
}

// known returns the trees that Passbook left in the folder. One that the store no longer has is passed over.
func (w *Folder) known(ctx context.Context, s *store.Store) (all []tree.Tree, err error) {
	for _, d := range w.was.Trees {
		t, err := w.of.load(ctx, s, d)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// Save stores the folder as it is now. All of it counts as left by Passbook.
func (w *Folder) Save(ctx context.Context, s *store.Store, rules tree.Rules) (tree.Saved, error) {
	if err := w.real(); err != nil {
		return tree.Saved{}, err
	}
	saved, err := tree.Save(ctx, s, w.Dir, rules, w.cache())
	if err != nil {
		return saved, err
	}
	return saved, w.holds(string(saved.Digest), saved.Cache)
}

// Edits returns the tree t with what others than Passbook changed in the folder, and stores it.
func (w *Folder) Edits(ctx context.Context, s *store.Store, of run.Blob, rules tree.Rules) (tree.Saved, error) {
	if err := w.real(); err != nil {
		return tree.Saved{}, err
	}
	found, err := tree.Save(ctx, s, w.Dir, rules, w.cache())
	if err != nil || string(found.Digest) == of.Digest {
		return found, err
	}
	was, err := w.of.load(ctx, s, of.Digest)
	if err != nil {
		return found, err
	}
	ours, err := w.known(ctx, s)
	if err != nil {
		return found, err
	}
	found.Tree = tree.WithEdits(was, found.Tree, ours)
	found.Digest = found.Tree.Digest()
	return found, tree.Put(ctx, s, found.Tree)
}

func (w *Folder) holds(digest string, cache *tree.Cache) error {
	w.of.mu.Lock()
	w.of.caches[w.Dir] = cache
	w.of.mu.Unlock()
	if len(w.was.Trees) == 1 && w.was.Trees[0] == digest {
		return nil
	}
	w.was.Trees = []string{digest}
	return w.write()
}

func (w *Folder) cache() *tree.Cache {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	return w.of.caches[w.Dir]
}

// Discard removes the folder. Its record stays locked.
func (w *Folder) Discard() error {
	w.was = record{Holder: w.was.Holder, Source: w.was.Source}
	if err := w.write(); err != nil {
		return err
	}
	w.of.mu.Lock()
	delete(w.of.caches, w.Dir)
	w.of.mu.Unlock()
	return disk.RemoveAll(w.Dir)
}

// Remove removes the folder, then its record, by which it is found, and the folder of the source with the last one.
func (w *Folder) Remove() error {
	err := w.Discard()
	if err == nil {
		err = os.Remove(w.Dir + ".json")
	}
	if err != nil {
		return fmt.Errorf("remove the workspace %s: %w", w.Dir, errors.Join(err, w.Unlock()))
	}
	if err := w.lock.Remove(); err != nil {
		return err
	}
	err = os.Remove(filepath.Dir(w.Dir))
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return nil // another run has a folder there
	}
	return err
}
