package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// put is a change of one file of a checkout. A side without a mode has no file.
type put struct {
	path          string
	before, after File
}

// ConflictError means that files of a checkout are in neither of the expected states.
type ConflictError struct{ Paths []string } // sorted

func (e *ConflictError) Error() string {
	return "the files were changed since the run started: " + firstPaths(e.Paths)
}

// change is a put that is not done.
type change struct {
	put
	found fs.FileInfo // nil: there is none
}

// putFiles changes files of the checkout. Index and commits are unchanged. Each file must be as before the change, or
// as after it; otherwise the error is a [*ConflictError] with all other paths. Behind a symbolic link there is no
// file. A path in git's own folder or outside of the checkout, and names that differ only in case, are a
// [*RefusedError]. After both errors nothing has changed, unless the user changes a file during the call. A dry run
// only returns these errors.
//
// Each file is replaced as a whole. On return the files are on disk. After a crash or another error some are changed,
// and the same call changes the others.
func (r *Repo) putFiles(ctx context.Context, puts []put, dry bool) error {
	root, err := os.OpenRoot(r.root)
	if err != nil {
		return err
	}
	defer root.Close()
	todo, err := pending(root, puts)
	if err != nil || dry {
		return err
	}
	folders := map[string]bool{}
	for _, removal := range []bool{true, false} { // a file may be where a folder was, and the other way round
		for _, c := range todo {
			if removal != (c.after.Mode == "") {
				continue
			}
			if err := errors.Join(ctx.Err(), r.before(c.path)); err != nil {
				return err
			}
			if err := c.do(root); err != nil {
				return fmt.Errorf("file %q: %w", c.path, err)
			}
			folders[path.Dir(c.path)] = true
		}
	}
	return syncFolders(root, folders)
}

// before is where tests stop a delivery.
func (r *Repo) before(step string) error {
	if r.step == nil {
		return nil
	}
	return r.step(step)
}

// pending returns the changes that are not done, or why none can be.
func pending(root *os.Root, puts []put) ([]change, error) {
	if err := checkNames(puts); err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, p := range puts {
		known[p.path] = true
	}
	var todo []change
	var conflicts []string
	for _, p := range puts {
		info, state, err := p.state(root, known)
		switch {
		case err != nil:
			return nil, fmt.Errorf("file %q: %w", p.path, err)
		case state == different:
			conflicts = append(conflicts, p.path)
		case state == asBefore:
			todo = append(todo, change{p, info})
		}
	}
	return todo, conflicting(conflicts)
}

// checkNames refuses names that cannot be written safely.
func checkNames(puts []put) error {
	spelled := map[string]string{}
	for _, p := range puts {
		parts := strings.Split(p.path, "/")
		if !filepath.IsLocal(p.path) || path.Clean(p.path) != p.path ||
			slices.ContainsFunc(parts, func(n string) bool { return strings.EqualFold(n, ".git") }) {
			return &RefusedError{Paths: []string{p.path}, Message: "not the path of a file in a checkout"}
		}
		if p.after.Mode == "" {
			continue
		}
		for i := range parts {
			name := strings.Join(parts[:i+1], "/")
			folded := strings.ToLower(strings.ToUpper(name))
			if other := spelled[folded]; other != "" && other != name {
				return &RefusedError{Paths: []string{other, name}, Message: "names that differ only in case"}
			}
			spelled[folded] = name
		}
	}
	return nil
}

type state int

const (
	asAfter state = iota
	asBefore
	different
)

// state compares the checkout with the change. known are all paths of the delivery.
func (p put) state(root *os.Root, known map[string]bool) (fs.FileInfo, state, error) {
	for dir := path.Dir(p.path); dir != "."; dir = path.Dir(dir) {
		switch info, err := root.Lstat(dir); {
		case isAbsent(err):
		case err != nil:
			return nil, different, err
		case info.IsDir():
		case known[dir]:
			return nil, absentState(p), nil // the change of dir compares what is there
		case p.after.Mode == "":
			return nil, asAfter, nil
		default:
			return nil, different, nil
		}
	}
	info, err := root.Lstat(p.path)
	switch {
	case isAbsent(err):
		return nil, absentState(p), nil
	case err != nil:
		return nil, different, err
	case info.IsDir():
		gone, err := allKnown(root, p.path, known)
		if err != nil || !gone {
			return nil, different, err
		}
		return nil, absentState(p), nil
	}
	if is, err := p.after.is(root, info); err != nil || is {
		return info, asAfter, err
	}
	if is, err := p.before.is(root, info); err != nil || is {
		return info, asBefore, err
	}
	return info, different, nil
}

// absentState is the state of a path without a file.
func absentState(p put) state {
	switch {
	case p.after.Mode == "":
		return asAfter
	case p.before.Mode == "":
		return asBefore
	}
	return different
}

// isAbsent reports whether there is no file, also because a part of the path is a file.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// allKnown reports whether the delivery changes all files of a folder. There it can only remove them.
func allKnown(root *os.Root, folder string, known map[string]bool) (bool, error) {
	all := true
	err := fs.WalkDir(root.FS(), folder, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !known[name] {
			all = false
			return fs.SkipAll
		}
		return err
	})
	return all, err
}

// is reports whether a file of the checkout is this one.
func (f File) is(root *os.Root, info fs.FileInfo) (bool, error) {
	mode := ModeFile
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		mode = ModeSymlink
	case !info.Mode().IsRegular():
		return false, nil
	case info.Mode()&0o100 != 0:
		mode = ModeExecutable
	}
	if mode != f.Mode {
		return false, nil
	}
	return equalContent(f.Content, func() (io.ReadCloser, error) {
		if mode != ModeSymlink {
			return root.Open(f.Path)
		}
		target, err := root.Readlink(f.Path)
		return io.NopCloser(strings.NewReader(target)), err
	})
}

// do makes one change, unless the file has changed since it was compared.
func (c change) do(root *os.Root) error {
	now, err := root.Lstat(c.path)
	switch {
	case isAbsent(err), err == nil && now.IsDir():
		now = nil
	case err != nil:
		return err
	}
	if (now == nil) != (c.found == nil) || now != nil && !(os.SameFile(now, c.found) &&
		now.ModTime().Equal(c.found.ModTime()) && now.Size() == c.found.Size()) {
		return &ConflictError{[]string{c.path}}
	}
	if c.after.Mode == "" {
		return removeWithFolders(root, c.path)
	}
	if err := root.MkdirAll(path.Dir(c.path), 0o777); err != nil {
		return err
	}
	return c.after.replace(root)
}

// removeWithFolders removes a file, and the folders above that are empty then.
func removeWithFolders(root *os.Root, name string) error {
	if err := root.Remove(name); err != nil {
		return err
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if err := root.Remove(dir); err != nil {
			return nil //nolint:nilerr // it is not empty
		}
	}
	return nil
}

// replace writes the file under another name and renames it.
func (f File) replace(root *os.Root) error {
	temp := path.Join(path.Dir(f.Path), ".passbook-put-"+path.Base(f.Path))
	if len(path.Base(temp)) > 255 {
		temp = path.Join(path.Dir(f.Path), ".passbook-put")
	}
	if err := root.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) { // an interrupted call left it
		return err
	}
	err := f.write(root, temp)
	if err == nil && f.Mode != ModeSymlink {
		err = syncName(root, temp)
	}
	if err == nil {
		err = root.Rename(temp, f.Path)
	}
	if err != nil {
		if left := root.Remove(temp); !errors.Is(left, fs.ErrNotExist) {
			err = errors.Join(err, left)
		}
	}
	return err
}

// syncFolders makes the names in folders durable. A folder that was removed is synced through one above it.
func syncFolders(root *os.Root, folders map[string]bool) error {
	for name := range folders {
		err := syncName(root, name)
		for ; isAbsent(err) && name != "."; err = syncName(root, name) {
			name = path.Dir(name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func syncName(root *os.Root, name string) error {
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
