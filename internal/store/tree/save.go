package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/passbook-run/passbook/internal/store"
)

// Saved is a stored tree.
type Saved struct {
	Digest  store.Digest
	Tree    Tree
	Skipped []Skipped // by path
	Cache   *Cache    // for the next save of this folder
}

// Skipped is something that was left out. The content of an excluded folder is not listed.
type Skipped struct {
	Path   string
	Folder bool
	Reason Reason
}

const (
	tries   = 3 // to read a file that changes meanwhile
	readers = 8 // concurrent readers
)

// Save stores the tree at dir. On return everything is durable. Files unchanged since the cache are not read, and
// blobs in it are not put; prev may be nil.
//
// A file that changes while it is read is read up to three times; then it is an error ([store.ErrChanged]). Files
// that vanish meanwhile are omitted. More than the limits of the rules is a [LimitError]. A symlink that points out of
// the tree is an [OutsideError] unless the rules allow it. A problem of the folder itself is a [FolderError].
func Save(ctx context.Context, s *store.Store, dir string, rules Rules, prev *Cache) (Saved, error) {
	saved, err := save(ctx, s, dir, rules, prev)
	if err != nil {
		return Saved{}, fmt.Errorf("save the tree at %s: %w", dir, err)
	}
	return saved, nil
}

func save(ctx context.Context, s *store.Store, dir string, rules Rules, prev *Cache) (Saved, error) {
	sieve, err := rules.compile()
	if err != nil {
		return Saved{}, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Saved{}, err
	}
	defer func() { _ = root.Close() }()
	sv := &saver{
		store: s, root: root, sieve: sieve, prev: prev.of(s), blobs: s.Batch(), look: time.Now(),
		meter: meter{limits: rules.Limits},
	}
	if err := sv.scan(ctx, "."); err != nil {
		return Saved{}, ofFolder(err)
	}
	if sv.meter.exceeded() {
		return Saved{}, ofFolder(sv.meter.err(false))
	}
	if err := sv.take(ctx); err != nil {
		return Saved{}, err
	}
	return sv.finish(ctx)
}

// saver is one save in progress.
type saver struct {
	store   *store.Store
	root    *os.Root
	sieve   sieve
	prev    *Cache
	blobs   *store.Batch
	look    time.Time // before any file was read
	meter   meter
	found   []found
	skipped []Skipped
}

// found is an entry with its file's state. A file that vanished loses its path.
type found struct {
	Entry
	stamp stamp
}

// scan lists a folder recursively.
func (sv *saver) scan(ctx context.Context, dir string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	inside, err := sv.list(dir)
	if errors.Is(err, fs.ErrNotExist) && dir != "." {
		return nil
	}
	if err != nil {
		return err
	}
	of := sv.sieve.spellings(dir, inside)
	for _, info := range inside {
		if err := sv.find(ctx, join(dir, info.Name()), info, of); err != nil {
			return err
		}
	}
	return nil
}

// find records what is at a path.
func (sv *saver) find(ctx context.Context, path string, info fs.FileInfo, of spellings) error {
	reason, err := sv.sieve.out(sv.root, path, info, of)
	if reason != "" || err != nil {
		sv.skipped = append(sv.skipped, Skipped{Path: path, Folder: info.IsDir(), Reason: reason})
		return err
	}
	sv.meter.add(path, info)
	f := found{Entry: Entry{Path: path, Perm: info.Mode().Perm()}, stamp: stampOf(info)}
	switch {
	case info.IsDir():
		f.Mode = ModeFolder
		sv.found = append(sv.found, f)
		return sv.scan(ctx, path)
	case info.Mode()&fs.ModeSymlink != 0:
		return sv.link(f)
	default:
		sv.found = append(sv.found, f)
		return nil
	}
}

func (sv *saver) link(f found) error {
	target, err := sv.root.Readlink(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = checkLink(f.Path, target)
	}
	f.Mode, f.Perm, f.Link = ModeSymlink, 0, target
	sv.found = append(sv.found, f)
	return err
}

// take computes every file's digest, and puts blobs that the store may lack.
func (sv *saver) take(ctx context.Context) error {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(readers)
	for i := range sv.found {
		f := &sv.found[i]
		if f.Mode != "" {
			continue
		}
		if d, ok := sv.prev.unchanged(f.Path, f.stamp); ok {
			f.describe(f.stamp, d, f.Perm)
			continue
		}
		all.Go(func() error { return sv.read(ctx, f) })
	}
	return all.Wait()
}

func (f *found) describe(s stamp, d store.Digest, perm fs.FileMode) {
	f.Mode, f.Perm, f.Size, f.Digest, f.stamp = fileMode(perm), perm, s.size, d, s
}

// read reads one file, again if it changes meanwhile.
func (sv *saver) read(ctx context.Context, f *found) error {
	var err error
	for range tries {
		err = sv.readOnce(ctx, f)
		again := errors.Is(err, store.ErrChanged) || errors.Is(err, fs.ErrNotExist)
		if again && sv.gone(f.Path) {
			f.Path = ""
			return nil
		}
		if !again {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	return nil
}

// gone reports whether a file vanished, as opposed to a part of the store.
func (sv *saver) gone(path string) bool {
	_, err := sv.root.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func (sv *saver) readOnce(ctx context.Context, f *found) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	before, err := sv.root.Lstat(f.Path)
	if err != nil {
		return ofFolder(err)
	}
	from := func() (io.ReadCloser, error) { return openFile(sv.root, f.Path, before) }
	d, size, err := store.DigestFrom(from)
	if err != nil {
		return ofFolder(err)
	}
	if !sv.prev.blobs[d] {
		if err := sv.blobs.PutFrom(ctx, d, from); err != nil {
			return err
		}
	}
	after, err := sv.root.Lstat(f.Path)
	if err != nil {
		return ofFolder(err)
	}
	if !stampOf(before).equal(stampOf(after)) || before.Mode() != after.Mode() || size != after.Size() {
		return ofFolder(store.ErrChanged)
	}
	f.describe(stampOf(after), d, after.Mode().Perm())
	return nil
}

// finish puts the nodes and returns the cache for the next save.
func (sv *saver) finish(ctx context.Context) (Saved, error) {
	cache := newCache(sv.store)
	t := Tree{Entries: make([]Entry, 0, len(sv.found))}
	for _, f := range sv.found {
		if f.Path == "" {
			continue
		}
		t.Entries = append(t.Entries, f.Entry)
		if f.IsFile() {
			cache.remember(f.Path, f.stamp, f.Digest, sv.look)
			cache.blobs[f.Digest] = true
		}
	}
	t = treeOf(t.Entries)
	slices.SortFunc(sv.skipped, func(a, b Skipped) int { return strings.Compare(a.Path, b.Path) })
	if err := t.check(); err != nil {
		return Saved{}, ofFolder(err)
	}
	d, nodes := t.nodes()
	if err := sv.put(ctx, nodes); err != nil {
		return Saved{}, err
	}
	for node := range nodes {
		cache.blobs[node] = true
	}
	return Saved{Digest: d, Tree: t, Skipped: sv.skipped, Cache: cache}, sv.blobs.End()
}

// Put stores the nodes of a tree without its files' contents, so that it can be loaded. On return they are
// durable.
func Put(ctx context.Context, s *store.Store, t Tree) error {
	sv := &saver{store: s, prev: newCache(s), blobs: s.Batch()}
	_, nodes := t.nodes()
	err := sv.put(ctx, nodes)
	if err = errors.Join(err, sv.blobs.End()); err != nil {
		return fmt.Errorf("store tree %s: %w", t.Digest(), err)
	}
	return nil
}

// put puts the nodes that the store may lack.
func (sv *saver) put(ctx context.Context, nodes map[store.Digest][]byte) error {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(readers)
	for d, data := range nodes {
		if sv.prev.blobs[d] {
			continue
		}
		all.Go(func() error {
			return sv.blobs.PutFrom(ctx, d, func() (io.ReadCloser, error) {
				return io.NopCloser(bytes.NewReader(data)),
					nil
			})
		})
	}
	return all.Wait()
}

// readDir returns the content of a folder below root by name, but no more than most entries of it; 0: all. Symlinks are
// not followed.
func readDir(root *os.Root, dir string, most int) ([]fs.FileInfo, error) {
	f, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	inside, err := f.Readdir(most)
	if errors.Is(err, io.EOF) { // an empty folder
		err = nil
	}
	slices.SortFunc(inside, func(a, b fs.FileInfo) int { return strings.Compare(a.Name(), b.Name()) })
	return inside, errors.Join(err, f.Close())
}

// openFile opens a file seen below root. If it was replaced, such as by a symlink or a pipe, the error is
// [store.ErrChanged].
func openFile(root *os.Root, path string, seen fs.FileInfo) (*os.File, error) {
	f, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // does not block on a pipe
	if err != nil {
		return nil, err
	}
	if now, err := f.Stat(); err != nil || !os.SameFile(seen, now) || !now.Mode().IsRegular() {
		return nil, errors.Join(err, f.Close(), store.ErrChanged)
	}
	return f, nil
}

// join returns a path below a folder of the tree.
func join(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}
