package agent

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/passbook-run/passbook/environ"
)

// ErrNotFound says that there is no such program. Trying again does not help.
var ErrNotFound = environ.ErrNotFound

// lookPath finds a program in the child's own PATH. A name with a slash is taken from dir.
func lookPath(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if err := environ.Executable(path); err != nil {
			return "", fmt.Errorf("start agent %s: %w; give an existing path under agent.run in the pipeline file", name, err)
		}
		return path, nil
	}
	path, err := environ.LookPath(name, env)
	if err != nil {
		return "", fmt.Errorf("start agent %s: %w; install it, or give its full path under agent.run in the pipeline file, then resume the run from a terminal that finds it", name, err)
	}
	return path, nil
}
