package git

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
)

type version struct{ major, minor int }

// minVersion is the first version that repairs a moved worktree from its new location.
var minVersion = version{2, 30}

func (v version) String() string { return fmt.Sprintf("%d.%d", v.major, v.minor) }

func (v version) before(o version) bool {
	return v.major < o.major || v.major == o.major && v.minor < o.minor
}

func (g git) checkVersion(ctx context.Context) error {
	output, err := g.line(ctx, "version")
	if err != nil {
		return err
	}
	return checkVersion(output)
}

func checkVersion(output string) error {
	v, ok := parseVersion(output)
	switch {
	case !ok:
		return fmt.Errorf("%w: unexpected output of git version: %q", ErrNoGit, output)
	case v.before(minVersion):
		return fmt.Errorf("%w: found git %s; install %s or later", ErrNoGit, v, minVersion)
	}
	return nil
}

// parseVersion parses "git version 2.39.5 (Apple Git-154)".
func parseVersion(output string) (version, bool) {
	m := regexp.MustCompile(`^git version (\d+)\.(\d+)`).FindStringSubmatch(output)
	if m == nil {
		return version{}, false
	}
	major, err1 := strconv.Atoi(m[1])
	minor, err2 := strconv.Atoi(m[2])
	return version{major, minor}, err1 == nil && err2 == nil
}
