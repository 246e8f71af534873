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
// The cache is for the next save of this folder.
func Checkout(ctx context.Context, s *store.Store, d store.Digest, dir string, rules Rules) (*Cache, error) {
	return CheckoutOver(ctx, s, d, dir, rules, nil)
}

// CheckoutOver is [Checkout] with a callback before a file is removed: spare may move it away, and reports whether
// it did.
func CheckoutOver(ctx context.Context, s *store.Store, d store.Digest, dir string, rules Rules,
	spare func(path string) (moved bool, err error)) (*Cache, error) {
	cache, err := checkout(ctx, s, d, dir, rules, spare)
	if err != nil {
		return nil, fmt.Errorf("lay down tree %s at %s: %w", d, dir, err)
	}
	return cache, nil
}

func checkout(ctx context.Context, s *store.Store, d store.Digest, dir string, rules Rules,
	spare func(string) (bool, error)) (*Cache, error) {
	sieve, err := rules.compile()
	if err != nil {
		return nil, err
	}
	t, err := Load(ctx, s, d)
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
	l := &layer{store: s, root: root, sieve: sieve, tree: t, want: t.find(), spare: spare}
	if err := l.lay(ctx); err != nil {
		return nil, err
	}
	return l.cache()
}

// tempPrefix is the prefix of incomplete files. An interrupted checkout leaves them behind.
const tempPrefix = ".passbook-"

// layer is one checkout in progress.
type layer struct {
	store *store.Store
	root  *os.Root
	sieve sieve
	tree  Tree
	want  map[string]Entry
	spare func(path string) (moved bool, err error) // nil: nothing is spared
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
	inside, err := readDir(l.root, dir)
	if err != nil {
		return false, err
	}
	for _, info := range inside {
		stays, err := l.clearOne(ctx, join(dir, info.Name()), info)
		if err != nil {
			return false, err
		}
		left = left || stays
	}
	return left, nil
}

func (l *layer) clearOne(ctx context.Context, path string, info fs.FileInfo) (stays bool, err error) {
	e, wanted := l.want[path]
	if !wanted {
		if reason, err := l.sieve.out(l.root, path, info); reason != "" || err != nil {
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
		return true, nil
	case stays && wanted:
		return false, fmt.Errorf(
			"%s: a %s of the tree belongs there, but there is a folder with ignored files in it: move them away", path,
			e.Mode,
		)
	case stays:
		return true, nil
	}
	if l.spare != nil && !info.IsDir() && !strings.HasPrefix(info.Name(), tempPrefix) {
		if moved, err := l.spare(path); moved || err != nil {
			return false, err
		}
	}
	return false, l.root.Remove(path)
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
	target, err := l.root.Readlink(e.Path)
	if err == nil && target == e.Link {
		return nil
	}
	if err == nil {
		err = l.root.Remove(e.Path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return l.root.Symlink(e.Link, e.Path)
}

func (l *layer) file(ctx context.Context, e Entry) error {
	info, same, err := l.holds(e)
	if err != nil {
		return err
	}
	if !same {
		return l.write(ctx, e)
	}
	if info.Mode().Perm() == e.Perm {
		return nil
	}
	return l.root.Chmod(e.Path, e.Perm)
}

// holds reports whether the file exists with the entry's content.
func (l *layer) holds(e Entry) (info fs.FileInfo, same bool, err error) {
	info, err = l.root.Lstat(e.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil || info.Size() != e.Size {
		return info, false, err
	}
	d, _, err := store.DigestFrom(func() (io.ReadCloser, error) { return openFile(l.root, e.Path, info) })
	return info, err == nil && d == e.Digest, nil // an unreadable file is replaced
}

// write writes the content to a temporary file first. Its name is short, since the file's name may have the
// maximum length.
func (l *layer) write(ctx context.Context, e Entry) error {
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

// cache returns the cache for the next save.
func (l *layer) cache() (*Cache, error) {
	c := Known(l.store, l.tree)
	for _, e := range l.tree.Entries {
		if !e.IsFile() {
			continue
		}
		look := time.Now()
		info, err := l.root.Lstat(e.Path)
		if err != nil {
			return nil, err
		}
		c.remember(e.Path, stampOf(info), e.Digest, look)
	}
	return c, nil
}
