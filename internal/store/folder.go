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

	"github.com/passbook-run/passbook/internal/disk"
)

// folder is a store in a folder of this host with one file per blob or name.
type folder struct {
	root       string
	disk       disk.Disk
	knownBlobs digestSet // blobs that are known to be on disk
}

// digestSet is a bounded set of digests.
type digestSet struct {
	mu  sync.Mutex
	all map[Digest]bool
}

const maxDigests = 4096

func (r *digestSet) has(d Digest) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[d]
}

func (r *digestSet) add(d Digest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil || len(r.all) >= maxDigests {
		r.all = map[Digest]bool{}
	}
	r.all[d] = true
}

func openFolder(u *url.URL, on disk.Disk) (*folder, error) {
	if u.Host != "" || u.RawQuery != "" || !filepath.IsAbs(u.Path) {
		return nil, errors.New("want an absolute path after file://, such as file:///var/lib/passbook/store")
	}
	f := &folder{root: filepath.Clean(u.Path), disk: on}
	return f, f.disk.Mkdir(f.root, dirPerm)
}

const dirPerm fs.FileMode = 0o700 // of all folders

func (f *folder) where(name string) string { return filepath.Join(f.root, filepath.FromSlash(name)) }

// folderBatch is a batch whose names are synced at the end.
type folderBatch struct {
	*folder
	names   *disk.Names
	mu      sync.Mutex
	written []Digest
}

func (f *folder) begin() batch { return &folderBatch{folder: f, names: f.disk.Names()} }

// end makes the names durable; only then the blobs are known to be on disk.
func (f *folderBatch) end() error {
	if err := f.names.Sync(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range f.written {
		f.knownBlobs.add(d)
	}
	f.written = nil
	return nil
}

func (f *folderBatch) markWritten(d Digest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.written = append(f.written, d)
}

func (f *folderBatch) put(ctx context.Context, d Digest, from Source) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	path := f.where(d.name())
	there := hasDigest(path, d)
	if there {
		if err := touch(path); err != nil || f.knownBlobs.has(d) {
			return err
		}
	}
	if err := f.names.Mkdir(filepath.Dir(path), dirPerm); err != nil {
		return err
	}
	if there {
		err := f.names.Settle(path)
		if err == nil {
			f.markWritten(d)
		}
		return err
	}
	err := f.names.WriteAll([]disk.File{{Path: path, Perm: 0o600,
		Fill: func(w io.Writer) error { return copySource(w, from, d) }}})
	if err != nil {
		return err
	}
	f.markWritten(d)
	return nil
}

// touchInterval is the time during which a blob is not touched again.
const touchInterval = time.Hour

// touch updates a blob's modification time, so that garbage collection keeps it.
func touch(path string) error {
	fi, err := os.Stat(path)
	if err != nil || time.Since(fi.ModTime()) < touchInterval {
		return err
	}
	now := time.Now()
	return os.Chtimes(path, now, now)
}

// hasDigest reports whether the file has the digest. An unreadable or damaged file is rewritten.
func hasDigest(path string, d Digest) bool {
	found, _, err := DigestFrom(func() (io.ReadCloser, error) { return os.Open(path) })
	return err == nil && found == d
}

func (f *folder) create(ctx context.Context, name string, data []byte) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if err := f.disk.Mkdir(filepath.Dir(f.where(name)), dirPerm); err != nil {
		return false, err
	}
	return f.disk.CreateExclusive(f.where(name), data, 0o600)
}

func (f *folder) replace(ctx context.Context, name string, data []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return f.disk.WriteAll([]disk.File{{Path: f.where(name), Data: data, Perm: 0o600, DirPerm: dirPerm}})
}

func (f *folder) open(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := f.beforeRead(f.where(name)); err != nil {
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
		return nil, ErrMissing // a prefix of other names
	}
	return nil, errors.Join(err, closed, fmt.Errorf("%s is not a regular file", file.Name()))
}

func (f *folder) beforeRead(path string) error {
	if f.disk.Reads == nil {
		return nil
	}
	if err := f.disk.Reads(path); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
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

func (f *folder) walk(ctx context.Context, prefix string, visit visitor) error {
	start := f.where(prefix[:strings.LastIndexByte(prefix, '/')+1])
	if err := f.beforeRead(start); err != nil {
		return err
	}
	return filepath.WalkDir(start, func(path string, e fs.DirEntry, err error) error {
		switch {
		case isMissing(err):
			return nil
		case err != nil:
			return err
		case e.IsDir():
			return ctx.Err()
		case !e.Type().IsRegular() || disk.IsTemp(e.Name()):
			return nil
		}
		fi, err := e.Info()
		if isMissing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, f.root+string(filepath.Separator)))
		if !strings.HasPrefix(name, prefix) {
			return nil
		}
		return visit(name, fi.Size(), fi.ModTime())
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
