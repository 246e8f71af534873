package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Dirt is what differs between a checkout and its commit.
type Dirt struct {
	// Paths of changed, untracked and unmerged files, relative to the root, with slashes, sorted; they may contain any
	// bytes. Ignored files and folders are not among them. A rename is a deletion and an addition.
	Paths    []string
	Unmerged []string // those in conflict
	// Operation in progress: "merge", "rebase", "cherry-pick", "revert", "bisect", or "".
	Operation string
}

// Dirt reads the status of the checkout and writes nothing, not even the index.
func (r *Repo) Dirt(ctx context.Context) (Dirt, error) {
	out, err := r.git.output(ctx, "status", "--porcelain", "-z", "--untracked-files=all", "--ignore-submodules=none",
		"--no-renames")
	if err != nil {
		return Dirt{}, fmt.Errorf("check for uncommitted changes: %w", err)
	}
	d := Dirt{Operation: operation(r.gitDir)}
	for _, entry := range splitNUL(out) { // XY path; ?? folder/: a nested repository
		if len(entry) < 4 {
			return Dirt{}, fmt.Errorf("check for uncommitted changes in %s: unexpected %q", r.root, entry)
		}
		path := strings.TrimSuffix(entry[3:], "/")
		d.Paths = append(d.Paths, path)
		if slices.Contains(inConflict, entry[:2]) {
			d.Unmerged = append(d.Unmerged, path)
		}
	}
	slices.Sort(d.Paths)
	d.Paths = slices.Compact(d.Paths)
	return d, nil
}

// inConflict are the states of unmerged files. See git-status(1).
var inConflict = []string{"DD", "AU", "UD", "UA", "DU", "AA", "UU"}

// operation returns the operation in progress. Git keeps a file or folder for each.
func operation(gitDir string) string {
	for _, o := range []struct{ file, name string }{
		{"rebase-merge", "rebase"}, {"rebase-apply", "rebase"}, {"MERGE_HEAD", "merge"},
		{"CHERRY_PICK_HEAD", "cherry-pick"}, {"REVERT_HEAD", "revert"}, {"BISECT_LOG", "bisect"},
	} {
		if _, err := os.Lstat(filepath.Join(gitDir, o.file)); err == nil {
			return o.name
		}
	}
	return ""
}
