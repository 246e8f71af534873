package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// UnsafeError refuses something that must not be opened in a folder that another user wrote.
type UnsafeError struct {
	Path, Why string
}

func (e *UnsafeError) Error() string {
	return fmt.Sprintf("open %s: %s; remove it, or name another directory", e.Path, e.Why)
}

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

// regular returns an error for what is not a regular file.
func (f Folder) regular(fi fs.FileInfo, name string) error {
	kind := ""
	switch t := fi.Mode().Type(); {
	case t == 0:
		return nil
	case t == fs.ModeDir:
		return &fs.PathError{Op: "open", Path: f.Path(name), Err: syscall.EISDIR}
	case t&fs.ModeNamedPipe != 0:
		kind = "a FIFO"
	case t&fs.ModeSocket != 0:
		kind = "a socket"
	case t&fs.ModeDevice != 0:
		kind = "a device"
	default:
		kind = "a special file"
	}
	return &UnsafeError{Path: f.Path(name), Why: "it is " + kind + ", not a regular file"}
}

func owned(fi fs.FileInfo, path, root string) error {
	if name := otherOwner(fi); name != "" {
		return &OwnerError{Path: path, Root: root, Owner: name}
	}
	return nil
}

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

// named completes the path in an error of the folder, and explains a name that leads out of it.
func (f Folder) named(err error) error {
	var p *fs.PathError
	if !errors.As(err, &p) || filepath.IsAbs(p.Path) || p.Path == f.Root {
		return err
	}
	if p.Err.Error() == escapes {
		return &UnsafeError{Path: f.Path(p.Path), Why: "it leads out of " + f.Root}
	}
	op := p.Op
	if len(op) > 2 && op[len(op)-2:] == "at" { // openat, statat
		op = op[:len(op)-2]
	}
	return &fs.PathError{Op: op, Path: f.Path(p.Path), Err: p.Err}
}

// escapes is the text of the error of os.Root, which has no exported value.
const escapes = "path escapes from parent"
