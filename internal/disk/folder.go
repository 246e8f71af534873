package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Folder is a folder that another user may have written, such as a received run directory. It is opened again for each
// access.
//
// A name never leads out of the folder, whatever links it contains. Opening a file never blocks, and only regular files
// of this process's user are opened. A folder of another user is opened only with Trust. The folder's own path is not
// protected: that was named by the user of this process. Names use slashes.
type Folder struct {
	Root  string
	Trust bool // open also what belongs to other users

	host bool // in place of a folder: names are paths of this host
}

const (
	// MaxFile is the size in bytes up to which a file is opened for reading.
	MaxFile = 1 << 30
	// MaxWhole is the size up to which [Folder.ReadFile] reads a file.
	MaxWhole = 256 << 20
	// MaxDepth is the number of folders below each other that [Folder.Walk] enters.
	MaxDepth = 256
)

// OwnerError refuses what belongs to another user.
type OwnerError struct {
	Path  string
	Root  string // the folder
	Owner string
}

func (e *OwnerError) Error() string {
	what := "open run directory " + e.Root
	if e.Path != e.Root {
		what = "open " + e.Path
	}
	return fmt.Sprintf("%s: it belongs to user %s; run the command as %s, or read it with --trust if you trust %s. "+
		"No option lets a command write there", what, e.Owner, e.Owner, e.Owner)
}

// Unwrap makes the error one of permission.
func (e *OwnerError) Unwrap() error { return fs.ErrPermission }

// OtherOwner returns the name of the user that a file belongs to; empty if it is this process's user, or unknown.
func OtherOwner(path string) string {
	fi, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return otherOwner(fi)
}

func otherOwner(fi fs.FileInfo) string {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) == os.Geteuid() {
		return ""
	}
	name := strconv.Itoa(int(st.Uid))
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	return name
}

// files are the calls of an [os.Root] that a host has too.
type files interface {
	OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error)
	Mkdir(name string, perm fs.FileMode) error
	Rename(from, to string) error
	Link(from, to string) error
	Symlink(target, name string) error
	Remove(name string) error
	Stat(name string) (fs.FileInfo, error)
	Lstat(name string) (fs.FileInfo, error)
	FS() fs.FS
}

// host is the whole file system of this host, with paths for names.
type host struct{}

func (host) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, perm)
}
func (host) Mkdir(name string, perm fs.FileMode) error { return os.Mkdir(name, perm) }
func (host) Rename(from, to string) error              { return os.Rename(from, to) }
func (host) Link(from, to string) error                { return os.Link(from, to) }
func (host) Symlink(target, name string) error         { return os.Symlink(target, name) }
func (host) Remove(name string) error                  { return os.Remove(name) }
func (host) Stat(name string) (fs.FileInfo, error)     { return os.Stat(name) }
func (host) Lstat(name string) (fs.FileInfo, error)    { return os.Lstat(name) }
func (host) FS() fs.FS                                 { return os.DirFS("/") }

// do calls do with the opened folder. Its names do not lead out of it.
func (f Folder) do(do func(files) error) error {
	_, err := in(f, func(in files) (struct{}, error) { return struct{}{}, do(in) })
	return err
}

func in[T any](f Folder, do func(files) (T, error)) (v T, err error) {
	if f.host {
		return do(host{})
	}
	fi, err := os.Stat(f.Root) // before it is opened: opening a FIFO blocks
	if err == nil && !fi.IsDir() {
		err = &fs.PathError{Op: "open", Path: f.Root, Err: syscall.ENOTDIR}
	}
	if err == nil {
		err = f.accept(fi, f.Root)
	}
	if err != nil {
		return v, err
	}
	root, err := os.OpenRoot(f.Root)
	if err != nil {
		return v, err
	}
	v, err = do(root)
	if cerr := root.Close(); err == nil {
		err = cerr
	}
	return v, f.named(err)
}

// accept refuses what belongs to another user.
func (f Folder) accept(fi fs.FileInfo, path string) error {
	if f.Trust || f.host {
		return nil
	}
	if name := otherOwner(fi); name != "" {
		return &OwnerError{Path: path, Root: f.Root, Owner: name}
	}
	return nil
}

// escapes is the text of the error of os.Root, which has no exported value.
const escapes = "path escapes from parent"

// named completes the path in an error of the folder, and explains a name that leads out of it.
func (f Folder) named(err error) error {
	if k := (*KindError)(nil); errors.As(err, &k) && !filepath.IsAbs(k.Name) {
		return &KindError{f.Path(k.Name), k.Kind + "; remove it, or name another directory"}
	}
	var p *fs.PathError
	if !errors.As(err, &p) || filepath.IsAbs(p.Path) || p.Path == f.Root {
		return err
	}
	if p.Err.Error() == escapes {
		return f.named(&KindError{p.Path, "a name that leads out of " + f.Root})
	}
	return &fs.PathError{Op: strings.TrimSuffix(p.Op, "at"), Path: f.Path(p.Path), Err: p.Err} // openat, statat
}

// open opens a regular file to change it. One that has another name too is refused: a change would reach a file
// elsewhere.
func (f Folder) open(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return in(f, func(in files) (*os.File, error) {
		return openRegular(in, name, flag, perm, func(fi fs.FileInfo) error {
			if s, ok := fi.Sys().(*syscall.Stat_t); ok && s.Nlink > 1 {
				return &KindError{name, "a hard link: its file has another name too"}
			}
			return f.accept(fi, f.Path(name))
		})
	})
}

// OpenFile opens a regular file of up to [MaxFile] bytes for reading.
func (f Folder) OpenFile(name string) (*os.File, error) {
	return in(f, func(in files) (*os.File, error) {
		return openRegular(in, name, os.O_RDONLY, 0, func(fi fs.FileInfo) error {
			if fi.Size() > MaxFile { // it can be a sparse file of any size
				return tooLarge(name, MaxFile)
			}
			return f.accept(fi, f.Path(name))
		})
	})
}

// ReadFile reads a regular file of up to [MaxWhole] bytes.
func (f Folder) ReadFile(name string) ([]byte, error) {
	file, err := f.OpenFile(name)
	if err != nil {
		return nil, err
	}
	return readAll(file, MaxWhole)
}

// Stat describes a file, or the target of a link within the folder.
func (f Folder) Stat(name string) (fs.FileInfo, error) {
	return in(f, func(in files) (fs.FileInfo, error) { return in.Stat(name) })
}

// Lstat describes a file or a link.
func (f Folder) Lstat(name string) (fs.FileInfo, error) {
	return in(f, func(in files) (fs.FileInfo, error) { return in.Lstat(name) })
}

// Has reports whether a name leads to something within the folder.
func (f Folder) Has(name string) bool {
	_, err := f.Stat(name)
	return err == nil
}

// ReadDir lists a folder in the order of its names.
func (f Folder) ReadDir(name string) (all []fs.DirEntry, err error) {
	err = f.do(func(in files) error {
		return look(in, name, func(file *os.File) error {
			all, err = file.ReadDir(-1)
			return err
		})
	})
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return all, err
}

// look calls do with what has a name, open for reading without blocking.
func look(in files, name string, do func(*os.File) error) error {
	f, err := in.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	return errors.Join(do(f), f.Close())
}

// Walk visits what is below a folder, as fs.WalkDir does, with names relative to f. Links are visited and not followed.
func (f Folder) Walk(name string, visit fs.WalkDirFunc) error {
	return f.do(func(in files) error {
		return fs.WalkDir(in.FS(), name, func(at string, e fs.DirEntry, err error) error {
			if strings.Count(at, "/") > MaxDepth {
				return &KindError{at[:min(len(at), 100)] + "…", fmt.Sprintf("more than %d folders deep", MaxDepth)}
			}
			return visit(at, e, err)
		})
	})
}

// Path returns the path of a name, for messages and for other programs. It is not a permission to open it.
func (f Folder) Path(name string) string { return filepath.Join(f.Root, filepath.FromSlash(name)) }

// Rel returns the name of a path below the folder; false if it is not below it.
func (f Folder) Rel(path string) (string, bool) {
	name, err := filepath.Rel(f.Root, path)
	return name, err == nil && name != "." && filepath.IsLocal(name)
}
