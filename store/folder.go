package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/passbook-run/passbook/durable"
)

// folder is a store in a folder of this host, one file a blob or name. The
// names are those of gocloud's fileblob, which writes no fsync, so it is not
// used here.
type folder struct {
	root string
	disk durable.Disk
	made sync.Map // folders below root that this process knows to be on disk
	kept recent   // blobs that this process knows to be on disk
}

// recent remembers digests; of very many it forgets some.
type recent struct {
	mu  sync.Mutex
	all map[Digest]bool
}

const mostRecent = 4096

func (r *recent) has(d Digest) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[d]
}

func (r *recent) add(d Digest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil || len(r.all) >= mostRecent {
		r.all = map[Digest]bool{}
	}
	r.all[d] = true
}

func openFolder(u *url.URL, disk durable.Disk) (*folder, error) {
	if u.Host != "" || u.RawQuery != "" || !filepath.IsAbs(u.Path) {
		return nil, errors.New("a folder is given by an absolute path after file://, like file:///var/lib/passbook/store")
	}
	f := &folder{root: filepath.Clean(u.Path), disk: disk}
	return f, f.disk.Mkdir(f.root, 0o700)
}

func (f *folder) close() error { return nil }

func (f *folder) where(name string) string { return filepath.Join(f.root, filepath.FromSlash(name)) }

// place gives the path for a name, in a folder that is on disk.
func (f *folder) place(name string) (string, error) {
	path := f.where(name)
	dir := filepath.Dir(path)
	if _, known := f.made.Load(dir); known {
		return path, nil
	}
	if err := f.disk.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	f.made.Store(dir, true)
	return path, nil
}

// folderBatch is puts into one folder, whose names are synced at the end.
type folderBatch struct {
	*folder
	names   *durable.Names
	mu      sync.Mutex
	written []Digest
}

func (f *folder) begin() batch { return &folderBatch{folder: f, names: f.disk.Names()} }

// end makes the names durable; only then are the blobs known to be on disk.
func (f *folderBatch) end() error {
	if err := f.names.Sync(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range f.written {
		f.kept.add(d)
	}
	f.written = nil
	return nil
}

func (f *folderBatch) wrote(d Digest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.written = append(f.written, d)
}

func (f *folderBatch) put(ctx context.Context, d Digest, from Source) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	path, err := f.place(d.name())
	if err != nil {
		return err
	}
	if holds(path, d) {
		if err := freshen(path); err != nil {
			return err
		}
		if f.kept.has(d) {
			return nil
		}
		err := f.names.Settle(path)
		if err == nil {
			f.wrote(d)
		}
		return err
	}
	p, err := f.disk.Create(path, 0o600)
	if err != nil {
		return err
	}
	defer p.Discard()
	if err := copySource(p, from, d); err != nil {
		return err
	}
	if err := f.names.Commit(p); err != nil {
		return err
	}
	f.wrote(d)
	return nil
}

// fresh is for how long a blob need not be marked as written again.
const fresh = time.Hour

// freshen marks a blob as written now, so that it does not look as if nobody wanted it.
func freshen(path string) error {
	fi, err := os.Stat(path)
	if err != nil || time.Since(fi.ModTime()) < fresh {
		return err
	}
	now := time.Now()
	return os.Chtimes(path, now, now)
}

// holds says whether the file has the digest. A file that cannot be read, or is
// damaged, is written again.
func holds(path string, d Digest) bool {
	found, _, err := DigestFrom(func() (io.ReadCloser, error) { return os.Open(path) })
	return err == nil && found == d
}

func (f *folder) create(ctx context.Context, name string, data []byte) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	path := f.where(name)
	won, err := f.disk.CreateNew(durable.File{Path: path, Data: data, Perm: 0o600, DirPerm: f.permOf(filepath.Dir(path))})
	if err == nil {
		f.made.Store(filepath.Dir(path), true)
	}
	return won, err
}

func (f *folder) replace(ctx context.Context, name string, data []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	path := f.where(name)
	return f.disk.WriteAll([]durable.File{{Path: path, Data: data, Perm: 0o600, DirPerm: f.permOf(filepath.Dir(path))}})
}

// permOf is that of a folder which may have to be made; 0: it is on disk already.
func (f *folder) permOf(dir string) fs.FileMode {
	if _, known := f.made.Load(dir); known {
		return 0
	}
	return 0o700
}

func (f *folder) open(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	file, err := os.Open(f.where(name))
	if isMissing(err) {
		return nil, ErrMissing
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() {
		return file, nil
	}
	closed := file.Close()
	if err == nil && closed == nil && info.IsDir() {
		return nil, ErrMissing // the beginning of other names
	}
	return nil, errors.Join(err, closed, fmt.Errorf("%s is not a regular file", file.Name()))
}

func (f *folder) reach(context.Context) error {
	_, err := os.ReadDir(f.root)
	return err
}

func (f *folder) has(ctx context.Context, name string) (bool, error) {
	r, err := f.open(ctx, name)
	if errors.Is(err, ErrMissing) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, r.Close()
}

func (f *folder) list(ctx context.Context, prefix string) ([]string, error) {
	var names []string
	start := f.where(prefix[:strings.LastIndexByte(prefix, '/')+1])
	err := filepath.WalkDir(start, func(path string, e fs.DirEntry, err error) error {
		switch {
		case isMissing(err):
			return nil
		case err != nil:
			return err
		case e.IsDir() && path == f.where(blobs):
			return fs.SkipDir
		case e.IsDir():
			return ctx.Err()
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, f.root+string(filepath.Separator)))
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

func (f *folder) walk(ctx context.Context, visit func(name string, size int64, written time.Time) error) error {
	return filepath.WalkDir(f.root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case isMissing(err):
			return nil
		case err != nil:
			return err
		case e.IsDir():
			return ctx.Err()
		case !e.Type().IsRegular() || durable.IsTemp(e.Name()):
			return nil
		}
		fi, err := e.Info()
		if isMissing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return visit(filepath.ToSlash(strings.TrimPrefix(path, f.root+string(filepath.Separator))), fi.Size(), fi.ModTime())
	})
}

func (f *folder) remove(ctx context.Context, name string, written time.Time) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	fi, err := os.Lstat(f.where(name))
	if isMissing(err) || err == nil && !fi.ModTime().Equal(written) {
		return false, nil
	}
	if err == nil {
		err = f.disk.Remove(f.where(name))
	}
	return err == nil, err
}

func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
