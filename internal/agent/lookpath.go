package agent

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/passbook-run/passbook/internal/environ"
)

// ErrNotFound is the error for a missing program. A retry cannot succeed.
var ErrNotFound = environ.ErrNotFound

// lookPath finds a program in the child's PATH. A name with a slash is relative to dir.
func lookPath(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if err := environ.Executable(path); err != nil {
			return "", fmt.Errorf("start agent %s: %w; give an existing path under agent.run in the pipeline file, then "+
				"run: starter amend RUN --config FILE", name, err)
		}
		return path, nil
	}
	path, err := environ.LookPath(name, env)
	if err != nil {
		return "", fmt.Errorf(
			"start agent %s: %w; install it, and resume the run from a terminal that finds it; or give its full path "+
				"under agent.run in the pipeline file, then run: starter amend RUN --config FILE", name, err,
		)
	}
	return path, nil
}
