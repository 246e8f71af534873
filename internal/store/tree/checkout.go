package tree

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/passbook-run/passbook/internal/store"
)

// Checkout makes the folder at dir contain exactly the tree: it creates, replaces and deletes. What the rules
// exclude, and .git, is left alone. A missing folder is created; no other process may write to it meanwhile.
//
// A file appears only after its content is verified; a damaged or missing blob is an error with file and blob.
// After an error the folder contains part of the tree, and the same call completes it. Files are not synced: a
// checkout can be repeated.
//
// The cache is for the next save or checkout of this folder.
func Checkout(ctx context.Context, s *store.Store, d store.Digest, dir string, rules Rules) (*Cache, error) {
	t, err := Load(ctx, s, d)
	if err != nil {
		return nil, fmt.Errorf("lay down tree %s at %s: %w", d, dir, err)
	}
	return CheckoutOver(ctx, s, t, dir, rules, Over{})
}

// Over is what is known of a folder before a checkout.
type Over struct {
	Cache *Cache // of its last save or checkout; nil: every file is read
	Ours  []Tree // what the program has left there; if any, repositories in its folders are removed: they may run programs
	// Keep copies a file or link with content that is in none of Ours, before it is replaced or removed,
	// one after another; nil: nothing is kept
	Keep func(path string) error
}

// CheckoutOver is [Checkout] for a folder of which something is known: it reads and writes only what differs.
func CheckoutOver(ctx context.Context, s *store.Store, t Tree, dir string, rules Rules, over Over) (*Cache, error) {
	cache, err := checkout(ctx, s, t, dir, rules, over)
	if err != nil {
		return nil, fmt.Errorf("lay down tree %s at %s: %w", t.Digest(), dir, err)
	}
	return cache, nil
}

func checkout(ctx context.Context, s *store.Store, t Tree, dir string, rules Rules, over Over) (*Cache, error) {
	rules.track(append([]Tree{t}, over.Ours...))
	sieve, err := rules.compile()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	l := &layer{
		store: s, root: root, sieve: sieve, tree: t, want: t.find(), over: over, prev: over.Cache.of(s), look: time.Now(),
		ours: finds(over.Ours), seen: map[string]fs.FileInfo{}, keeping: make(chan struct{}, 1),
	}
	if err := l.lay(ctx); err != nil {
		return nil, err
	}
	return l.cache()
}

// tempPrefix is the prefix of incomplete files. An interrupted checkout leaves them behind.
const tempPrefix = ".passbook-"

// layer is one checkout in progress.
type layer struct {
	store   *store.Store
	root    *os.Root
	sieve   sieve
	tree    Tree
	want    map[string]Entry
	over    Over
	ours    []map[string]Entry
	prev    *Cache
	look    time.Time              // before any file was read
	seen    map[string]fs.FileInfo // what is in the place of an entry, of its type
	keeping chan struct{}          // one file is kept at a time
	wrote   sync.Map               // paths of entries that were written
}

// lay removes what is in the way, then creates folders, files, and last the folders' permissions, which may forbid
// writing.
func (l *layer) lay(ctx context.Context) error {
	if _, err := l.clear(ctx, "."); err != nil {
		return err
	}
	for _, e := range l.tree.Entries {
		if e.Mode != ModeFolder {
			continue
		}
		if err := l.root.Mkdir(e.Path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := l.files(ctx); err != nil {
		return err
	}
	for _, e := range slices.Backward(l.tree.Entries) {
		if e.Mode != ModeFolder {
			continue
		}
		if err := l.root.Chmod(e.Path, e.Perm); err != nil {
			return err
		}
	}
	return nil
}

// clear removes from a folder what is not in the tree or has another type, and reports whether anything is left.
func (l *layer) clear(ctx context.Context, dir string) (left bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	inside, err := readDir(l.root, dir, 0)
	if err != nil {
		return false, err
	}
	of := l.sieve.spellings(dir, inside)
	for _, info := range inside {
		stays, err := l.clearOne(ctx, join(dir, info.Name()), info, of)
		if err != nil {
			return false, err
		}
		left = left || stays
	}
	return left, nil
}

func (l *layer) clearOne(ctx context.Context, path string, info fs.FileInfo, of spellings) (stays bool, err error) {
	e, wanted := l.want[path]
	if !wanted {
		reason, err := l.sieve.out(l.root, path, info, of)
		if reason == ReasonGit && strings.Contains(path, "/") && len(l.over.Ours) > 0 {
			return false, l.root.RemoveAll(path)
		}
		if reason != "" || err != nil {
			return true, err
		}
	}
	if info.IsDir() {
		stays, err = l.clearFolder(ctx, path, info)
		if err != nil {
			return false, err
		}
	}
	switch {
	case wanted && e.kind() == info.Mode().Type():
		l.seen[path] = info
		return true, nil
	case stays && wanted && (l.over.Keep != nil || len(l.over.Ours) > 0): // what the program has left there can be made again
		return false, l.root.RemoveAll(path)
	case stays && wanted:
		return false, fmt.Errorf(
			"%s: a %s of the tree belongs there, but there is a folder with ignored files in it: move them away", path,
			e.Mode,
		)
	case stays:
		return true, nil
	}
	if !strings.HasPrefix(info.Name(), tempPrefix) {
		if err := l.keep(path, info); err != nil {
			return false, err
		}
	}
	return false, l.root.Remove(path)
}

// keep copies a file that the program has not left there. Pipes, sockets and devices have no content.
func (l *layer) keep(path string, info fs.FileInfo) error {
	if kind := info.Mode().Type(); l.over.Keep == nil || kind&^fs.ModeSymlink != 0 {
		return nil
	}
	if foreign, err := l.foreign(path, info); err != nil || !foreign {
		return err
	}
	l.keeping <- struct{}{}
	defer func() { <-l.keeping }()
	return l.over.Keep(path)
}

// foreign reports whether a file or link has content that is in none of our trees at that path.
func (l *layer) foreign(path string, info fs.FileInfo) (_ bool, err error) {
	now := Entry{Digest: l.digest(path, info)}
	if info.Mode()&fs.ModeSymlink != 0 {
		if now.Link, err = l.root.Readlink(path); err != nil {
			return false, err
		}
	}
	return !slices.ContainsFunc(l.ours, func(was map[string]Entry) bool {
		e, ok := was[path]
		return ok && e.kind() == info.Mode().Type() && e.Digest == now.Digest && e.Link == now.Link
	}), nil
}

// digest returns the digest of a file; empty: it cannot be read, or is no file.
func (l *layer) digest(path string, info fs.FileInfo) store.Digest {
	if !info.Mode().IsRegular() {
		return ""
	}
	if d, ok := l.prev.unchanged(path, stampOf(info)); ok {
		return d
	}
	d, _, err := store.DigestFrom(func() (io.ReadCloser, error) { return openFile(l.root, path, info) })
	if err != nil {
		return ""
	}
	return d
}

// clearFolder first makes a folder writable. The tree's permissions are set at the end.
func (l *layer) clearFolder(ctx context.Context, path string, info fs.FileInfo) (left bool, err error) {
	if perm := info.Mode().Perm(); perm&0o700 != 0o700 {
		if err := l.root.Chmod(path, perm|0o700); err != nil {
			return false, err
		}
	}
	return l.clear(ctx, path)
}

// kind returns the entry's type on disk.
func (e Entry) kind() fs.FileMode {
	switch e.Mode {
	case ModeFolder:
		return fs.ModeDir
	case ModeSymlink:
		return fs.ModeSymlink
	default:
		return 0
	}
}

// files creates everything in the folders.
func (l *layer) files(ctx context.Context) error {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(readers)
	for _, e := range l.tree.Entries {
		switch {
		case e.IsFile():
			all.Go(func() error { return named(e, l.file(ctx, e)) })
		case e.Mode == ModeSymlink:
			all.Go(func() error { return named(e, l.symlink(e)) })
		}
	}
	return all.Wait()
}

func named(e Entry, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", e.Path, err)
	}
	return nil
}

func (l *layer) symlink(e Entry) error {
	info := l.seen[e.Path]
	if info == nil {
		return l.root.Symlink(e.Link, e.Path)
	}
	target, err := l.root.Readlink(e.Path)
	if err != nil || target == e.Link {
		return err
	}
	if err := l.keep(e.Path, info); err != nil {
		return err
	}
	if err := l.root.Remove(e.Path); err != nil {
		return err
	}
	return l.root.Symlink(e.Link, e.Path)
}

func (l *layer) file(ctx context.Context, e Entry) error {
	info := l.seen[e.Path]
	if info == nil {
		return l.write(ctx, e)
	}
	if info.Size() != e.Size || l.digest(e.Path, info) != e.Digest {
		if err := l.keep(e.Path, info); err != nil {
			return err
		}
		return l.write(ctx, e)
	}
	if info.Mode().Perm() == e.Perm {
		return nil
	}
	l.wrote.Store(e.Path, true)
	return l.root.Chmod(e.Path, e.Perm)
}

// write writes the content to a temporary file first. Its name is short, since the file's name may have the
// maximum length.
func (l *layer) write(ctx context.Context, e Entry) error {
	l.wrote.Store(e.Path, true)
	temp := join(parent(e.Path), tempPrefix+strings.ToLower(rand.Text()[:10]))
	f, err := l.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = l.store.Copy(ctx, e.Digest, f)
	if err == nil {
		err = f.Chmod(e.Perm)
	}
	if err == nil {
		err = checkSize(f, e.Size)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = l.root.Rename(temp, e.Path)
	}
	if err != nil {
		return errors.Join(err, l.root.Remove(temp))
	}
	return nil
}

func checkSize(f *os.File, want int64) error {
	info, err := f.Stat()
	if err == nil && info.Size() != want {
		err = fmt.Errorf("want %d bytes, got %d", want, info.Size())
	}
	return err
}

// cache returns the cache for the next save or checkout.
func (l *layer) cache() (*Cache, error) {
	c := l.prev.with(l.tree)
	for _, e := range l.tree.Entries {
		if !e.IsFile() {
			continue
		}
		look, info := l.look, l.seen[e.Path]
		if _, wrote := l.wrote.Load(e.Path); wrote {
			var err error
			look = time.Now()
			if info, err = l.root.Lstat(e.Path); err != nil {
				return nil, err
			}
		}
		if k, ok := l.prev.files[e.Path]; ok && k.digest == e.Digest && k.stamp.equal(stampOf(info)) {
			c.files[e.Path] = k
			continue
		}
		c.remember(e.Path, stampOf(info), e.Digest, look)
	}
	return c, nil
}
