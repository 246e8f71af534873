package rundir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"github.com/passbook-run/passbook/internal/disk"
)

// RestoreFile writes a file of an operator that is missing.
func (d Dir) RestoreFile(name string, content []byte) error {
	return d.inside().WriteFile(d.Path(name), content, FilePerm)
}

// HideFromGit excludes a directory in a checkout from git, unless it has a .gitignore.
func (d Dir) HideFromGit() error {
	const name = ".gitignore"
	if _, err := d.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return d.inside().WriteFile(d.Path(name), []byte(HiddenFromGit), FilePerm)
}

// KeepFile copies a file of an operator that is in the way into the directory, and returns its new name relative to it:
// its name below the folder in [EditsDir], with a number if that is taken. Of a link, the target is kept as text.
// On return the copy is on disk. No link leads out of the folder.
func (d Dir) KeepFile(folder, name string) (string, error) {
	content, err := contentOf(folder, name)
	if err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		to := path.Join(EditsDir, filepath.ToSlash(name))
		if n > 1 {
			to = fmt.Sprintf("%s~%d", to, n)
		}
		_, err := d.Lstat(to)
		if err == nil {
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if err := d.inside().Mkdir(filepath.Dir(d.Path(to)), DirPerm); err != nil {
			return "", err
		}
		if err := d.inside().WriteFile(d.Path(to), content, FilePerm); err != nil {
			return "", err
		}
		return to, nil
	}
}

func contentOf(folder, name string) (content []byte, err error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		to, err := root.Readlink(name)
		return []byte(to), err
	}
	if !info.Mode().IsRegular() {
		return nil, &disk.KindError{Name: name, Kind: disk.Kind(info.Mode())}
	}
	if perm := info.Mode().Perm(); perm&0o400 == 0 {
		if err := root.Chmod(name, perm|0o400); err != nil {
			return nil, err
		}
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe that has replaced it does not block
	if err != nil {
		return nil, err
	}
	content, err = io.ReadAll(f)
	return content, errors.Join(err, f.Close())
}

// UnlinkWorkspace removes the link to the workspace of the run, if there is one.
func (d Dir) UnlinkWorkspace() error {
	info, err := d.Lstat(WorkspaceDir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&fs.ModeSymlink == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	return d.inside().Remove(d.Path(WorkspaceDir))
}

// LinkWorkspace lets the directory lead to the workspace of the run.
func (d Dir) LinkWorkspace(to string) error {
	link := d.Path(WorkspaceDir)
	if now, err := os.Readlink(link); err == nil && now == to {
		return nil
	}
	if info, err := d.Lstat(WorkspaceDir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if err := os.Remove(link); err != nil {
			return err
		}
	}
	err := os.Symlink(to, link)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("link the workspace: %s is not a link: move it away", link)
	}
	return err
}
