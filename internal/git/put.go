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

// Version is the content of a path in a checkout. Without a mode there is no file.
type Version struct {
	Mode    string
	Content func() (io.ReadCloser, error)
}

// Put is a change of one file of a checkout.
type Put struct {
	Path          string
	Before, After Version
}

// ConflictError means that files of a checkout are in neither of the expected states.
type ConflictError struct{ Paths []string } // sorted

func (e *ConflictError) Error() string {
	return "the files were changed since the run started: " + firstPaths(e.Paths)
}

// PutFiles changes files of the checkout. Index and commits are unchanged. Each file must be as before the change, or
// as after it; otherwise the error is a [*ConflictError] with all other paths. Behind a symbolic link there is no
// file. A path in git's own folder or outside of the checkout, and names that differ only in case, are a
// [*RefusedError]. After both errors nothing has changed, unless the user changes a file during the call.
//
// Each file is replaced as a whole. On return the files are on disk. After a crash or another error some are changed,
// and the same call changes the others.
func (r *Repo) PutFiles(ctx context.Context, puts []Put) error {
	lock := filepath.Join(r.gitDir, "passbook-apply-lock")
	if err := withLock(ctx, lock, func() error { return r.putFiles(ctx, puts) }); err != nil {
		return fmt.Errorf("write files to %s: %w", r.root, err)
	}
	return nil
}

// CanPutFiles returns the error with which [Repo.PutFiles] would change nothing.
func (r *Repo) CanPutFiles(puts []Put) error {
	root, err := os.OpenRoot(r.root)
	if err != nil {
		return err
	}
	defer root.Close()
	_, err = pending(root, puts)
	return err
}

// change is a Put that is not done.
type change struct {
	Put
	found fs.FileInfo // nil: there is none
}

func (r *Repo) putFiles(ctx context.Context, puts []Put) error {
	root, err := os.OpenRoot(r.root)
	if err != nil {
		return err
	}
	defer root.Close()
	todo, err := pending(root, puts)
	if err != nil {
		return err
	}
	folders := map[string]bool{}
	for _, removal := range []bool{true, false} { // a file may be where a folder was, and the other way round
		for _, c := range todo {
			if removal != (c.After.Mode == "") {
				continue
			}
			if err := errors.Join(ctx.Err(), r.before(c.Path)); err != nil {
				return err
			}
			if err := c.do(root); err != nil {
				return fmt.Errorf("file %q: %w", c.Path, err)
			}
			folders[path.Dir(c.Path)] = true
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
func pending(root *os.Root, puts []Put) ([]change, error) {
	if err := checkNames(puts); err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, p := range puts {
		known[p.Path] = true
	}
	var todo []change
	var conflicts []string
	for _, p := range puts {
		info, state, err := p.state(root, known)
		switch {
		case err != nil:
			return nil, fmt.Errorf("file %q: %w", p.Path, err)
		case state == different:
			conflicts = append(conflicts, p.Path)
		case state == asBefore:
			todo = append(todo, change{p, info})
		}
	}
	if len(conflicts) > 0 {
		slices.Sort(conflicts)
		return nil, &ConflictError{conflicts}
	}
	return todo, nil
}

// checkNames refuses names that cannot be written safely.
func checkNames(puts []Put) error {
	spelled := map[string]string{}
	for _, p := range puts {
		parts := strings.Split(p.Path, "/")
		if !filepath.IsLocal(p.Path) || path.Clean(p.Path) != p.Path ||
			slices.ContainsFunc(parts, func(n string) bool { return strings.EqualFold(n, ".git") }) {
			return &RefusedError{Paths: []string{p.Path}, Message: "not the path of a file in a checkout"}
		}
		if p.After.Mode == "" {
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
func (p Put) state(root *os.Root, known map[string]bool) (fs.FileInfo, state, error) {
	for dir := path.Dir(p.Path); dir != "."; dir = path.Dir(dir) {
		switch info, err := root.Lstat(dir); {
		case isAbsent(err):
		case err != nil:
			return nil, different, err
		case info.IsDir():
		case known[dir]:
			return nil, absentState(p), nil // the change of dir compares what is there
		case p.After.Mode == "":
			return nil, asAfter, nil
		default:
			return nil, different, nil
		}
	}
	info, err := root.Lstat(p.Path)
	switch {
	case isAbsent(err):
		return nil, absentState(p), nil
	case err != nil:
		return nil, different, err
	case info.IsDir():
		gone, err := allKnown(root, p.Path, known)
		if err != nil || !gone {
			return nil, different, err
		}
		return nil, absentState(p), nil
	}
	for _, s := range []struct {
		Version
		state
	}{{p.After, asAfter}, {p.Before, asBefore}} {
		if is, err := s.is(root, p.Path, info); err != nil || is {
			return info, s.state, err
		}
	}
	return info, different, nil
}

// absentState is the state of a path without a file.
func absentState(p Put) state {
	switch {
	case p.After.Mode == "":
		return asAfter
	case p.Before.Mode == "":
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

// is reports whether a file of the checkout is this version.
func (v Version) is(root *os.Root, name string, info fs.FileInfo) (bool, error) {
	mode := ModeFile
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		mode = ModeSymlink
	case !info.Mode().IsRegular():
		return false, nil
	case info.Mode()&0o100 != 0:
		mode = ModeExecutable
	}
	if mode != v.Mode {
		return false, nil
	}
	return equalContent(v.Content, func() (io.ReadCloser, error) {
		if mode != ModeSymlink {
			return root.Open(name)
		}
		target, err := root.Readlink(name)
		return io.NopCloser(strings.NewReader(target)), err
	})
}

// do makes one change, unless the file has changed since it was compared.
func (c change) do(root *os.Root) error {
	now, err := root.Lstat(c.Path)
	switch {
	case isAbsent(err), err == nil && now.IsDir():
		now = nil
	case err != nil:
		return err
	}
	if (now == nil) != (c.found == nil) || now != nil && !(os.SameFile(now, c.found) &&
		now.ModTime().Equal(c.found.ModTime()) && now.Size() == c.found.Size()) {
		return &ConflictError{[]string{c.Path}}
	}
	if c.After.Mode == "" {
		return removeWithFolders(root, c.Path)
	}
	if err := root.MkdirAll(path.Dir(c.Path), 0o777); err != nil {
		return err
	}
	return c.After.replace(root, c.Path)
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

// replace writes the version beside the file and renames it.
func (v Version) replace(root *os.Root, name string) error {
	temp := path.Join(path.Dir(name), ".passbook-put-"+path.Base(name))
	if len(path.Base(temp)) > 255 {
		temp = path.Join(path.Dir(name), ".passbook-put")
	}
	if err := root.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) { // an interrupted call left it
		return err
	}
	err := File{Path: name, Mode: v.Mode, Content: v.Content}.write(root, temp)
	if err == nil && v.Mode != ModeSymlink {
		err = syncName(root, temp)
	}
	if err == nil {
		err = root.Rename(temp, name)
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
