package git

import (
	"context"
	"fmt"
	"slices"
)

// version is a version of git: major and minor.
type version [2]int

// minVersion is the first version that the tests of this package pass with.
var minVersion = version{2, 30}

func (v version) String() string { return fmt.Sprintf("%d.%d", v[0], v[1]) }

func (g git) checkVersion(ctx context.Context) error {
	output, err := g.line(ctx, "version")
	if err != nil {
		return err
	}
	return checkVersion(output)
}

// checkVersion accepts "git version 2.39.5 (Apple Git-154)".
func checkVersion(output string) error {
	var v version
	if _, err := fmt.Sscanf(output, "git version %d.%d", &v[0], &v[1]); err != nil {
		return fmt.Errorf("%w: unexpected output of git version: %q", ErrNoGit, output)
	}
	if slices.Compare(v[:], minVersion[:]) < 0 {
		return fmt.Errorf("%w: found git %s; install %s or later", ErrNoGit, v, minVersion)
	}
	return nil
}
