package agent

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/shell"
)

// ErrNotFound is the error for a missing program. A retry cannot succeed.
var ErrNotFound = environ.ErrNotFound

// lookPath finds the program in the child's PATH. A name with a slash is relative to the scratch directory.
func (c Command) lookPath() (string, error) {
	name := c.Argv[0]
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.Dir, path)
		}
		if err := environ.Executable(path); err != nil {
			return "", fmt.Errorf("start agent %s: %w; give an existing path under agent.run in the pipeline file%s", name,
				err, c.amends())
		}
		return path, nil
	}
	path, err := environ.LookPath(name, c.Environ())
	if err != nil {
		return "", fmt.Errorf(
			"start agent %s: %w; install it, and resume the run from a terminal that finds it; or give its full path "+
				"under agent.run in the pipeline file%s", name, err, c.amends(),
		)
	}
	return path, nil
}

// amends is how the run adopts a changed pipeline file; empty: no run is known.
func (c Command) amends() string {
	if c.Run == "" {
		return ""
	}
	return shell.Sprintf(", then run: starter amend %s --config FILE", c.Run)
}
