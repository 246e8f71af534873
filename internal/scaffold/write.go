package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ConflictError lists everything that exists where files should be written. Nothing was written.
type ConflictError struct{ Paths []string }

func (e *ConflictError) Error() string {
	return "write the pipeline: these files exist:\n  " + strings.Join(e.Paths, "\n  ")
}

// Write writes all files below a folder, or none. It overwrites nothing. The error is a [ConflictError] if something is
// in the way.
func Write(dir string, files []File) (err error) {
	if err := conflicts(dir, files); err != nil {
		return err
	}
	var made []string // in the order of creation
	defer func() {
		if err == nil {
			return
		}
		for _, path := range slices.Backward(made) {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		folders, err := makeFolders(filepath.Dir(path))
		made = append(made, folders...)
		if err != nil {
			return fmt.Errorf("write the pipeline: %w", err)
		}
		created, err := writeNew(path, f.Data)
		if created {
			made = append(made, path)
		}
		if err != nil {
			return fmt.Errorf("write the pipeline: %w", err)
		}
	}
	return nil
}

// conflicts finds existing files, and files in the place of folders.
func conflicts(dir string, files []File) error {
	var found []string
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		if _, err := os.Lstat(path); err == nil {
			found = append(found, path)
		}
		for parent := filepath.Dir(path); parent != filepath.Dir(parent); parent = filepath.Dir(parent) {
			if fi, err := os.Stat(parent); err == nil {
				if !fi.IsDir() {
					found = append(found, parent)
				}
				break
			} else if _, err := os.Lstat(parent); err == nil { // a link that leads nowhere
				found = append(found, parent)
				break
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.Sort(found)
	return &ConflictError{slices.Compact(found)}
}

// makeFolders creates a folder and its parents, and returns those that did not exist, parents first.
func makeFolders(dir string) (made []string, err error) {
	if fi, err := os.Stat(dir); err == nil && fi.IsDir() {
		return nil, nil
	}
	if parent := filepath.Dir(dir); parent != dir {
		if made, err = makeFolders(parent); err != nil {
			return made, err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return made, err
	}
	return append(made, dir), nil
}

// writeNew creates a file that does not exist.
func writeNew(path string, data []byte) (created bool, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return false, err
	}
	_, err = f.Write(data)
	return true, errors.Join(err, f.Close())
}
