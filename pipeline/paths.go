package pipeline

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Paths are paths and globs below the root of a tree. One that fits a folder covers all that is below it.
type Paths []string

// Covers reports whether one of them fits a path or a folder above it.
func (p Paths) Covers(name string, folder bool) bool {
	if p.Fits(name, folder) {
		return true
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if p.Fits(dir, true) {
			return true
		}
	}
	return false
}

// Fits reports whether one of them fits a path itself.
func (p Paths) Fits(name string, folder bool) bool {
	for _, pattern := range p {
		glob, folders := strings.CutSuffix(strings.TrimPrefix(pattern, "./"), "/")
		if (folder || !folders) && doublestar.MatchUnvalidated(glob, name) {
			return true
		}
	}
	return false
}

// maxBranching is the maximum number of { and commas in a pattern with braces: matching is exponential in it.
const maxBranching = 16

// CheckPath checks one of [Paths].
func CheckPath(p string) error {
	glob := strings.TrimSuffix(strings.TrimPrefix(p, "./"), "/")
	switch {
	case strings.TrimSpace(p) == "":
		return errors.New("is blank; write a path or leave it out")
	case strings.ContainsAny(p, "\x00\r\n"):
		return errors.New("is not one line; write one path")
	case path.IsAbs(p) || drive.MatchString(p):
		return errors.New("is an absolute path; write it relative to the root of the workspace")
	case strings.HasPrefix(p, "!"):
		return errors.New("begins with !, and there are no exceptions; write the paths to include")
	case above(glob):
		return errors.New("has the element ..; write a path below the root of the workspace")
	case glob == "" || glob == ".":
		return errors.New("is the whole workspace; write ** or the paths in it")
	case path.Clean(glob) != glob:
		return errors.New("is not in its shortest form; write " + path.Clean(glob))
	case strings.Contains(glob, "{") && strings.Count(glob, "{")+strings.Count(glob, ",") > maxBranching:
		return fmt.Errorf("has more than %d braces and commas; write several paths", maxBranching)
	case !doublestar.ValidatePattern(glob):
		return errors.New("is not a valid pattern; close its brackets, or write \\ before them")
	}
	return nil
}

func above(p string) bool {
	for element := range strings.SplitSeq(p, "/") {
		if element == ".." {
			return true
		}
	}
	return false
}
