package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrNotFound says that there is no such program. Trying again does not help.
var ErrNotFound = errors.New("program not found")

// lookPath finds a program in the child's own PATH. A name with a slash is taken from dir.
func lookPath(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if err := executable(path); err != nil {
			return "", fmt.Errorf("start agent %s: %w", name, err)
		}
		return path, nil
	}
	search := valueOf(env, "PATH")
	for _, folder := range filepath.SplitList(search) {
		path := filepath.Join(folder, name)
		if filepath.IsAbs(path) && executable(path) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("start agent %s: %w: looked in PATH (%s); install it, or give its full path under agent.run in the pipeline file", name, ErrNotFound, search)
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: there is no file %s; give an existing path under agent.run in the pipeline file", ErrNotFound, path)
	case err != nil:
		return err
	case info.IsDir() || info.Mode()&0o111 == 0:
		return fmt.Errorf("%s: %w: it is no program, or may not be executed", path, fs.ErrPermission)
	}
	return nil
}

func valueOf(env []string, name string) string {
	for _, pair := range env {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}
