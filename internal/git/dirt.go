package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Dirt is what differs between a checkout and its commit. Paths are relative to the root, with slashes, sorted,
// and may contain any bytes. A path can be in several lists. A rename is a deletion and an addition.
type Dirt struct {
	Staged    []string // differs between commit and index
	Unstaged  []string // differs between index and file
	Untracked []string // not in the index and not ignored; never folders
	Unmerged  []string // in conflict
	// Submodules have commits or changes that the superproject does not record. They are in Unstaged too. Their
	// content is in no commit, patch or worktree of the superproject.
	Submodules []string
	// Operation in progress: "merge", "rebase", "cherry-pick", "revert", "bisect", or "".
	Operation string
}

// Paths returns the paths of all lists, sorted and unique.
func (d Dirt) Paths() []string {
	all := slices.Concat(d.Staged, d.Unstaged, d.Untracked, d.Unmerged)
	slices.Sort(all)
	return slices.Compact(all)
}

// Dirt reads the status of the checkout and writes nothing, not even the index.
func (r *Repo) Dirt(ctx context.Context) (Dirt, error) {
	out, err := r.git.output(ctx, "status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignore-submodules=none",
		"--no-renames")
	if err != nil {
		return Dirt{}, fmt.Errorf("check for uncommitted changes: %w", err)
	}
	d, err := parseStatus(out)
	if err != nil {
		return Dirt{}, fmt.Errorf("check for uncommitted changes in %s: %w", r.root, err)
	}
	d.Operation = operation(r.gitDir)
	return d, nil
}

// parseStatus parses porcelain version 2 without renames. See git-status(1).
func parseStatus(out []byte) (Dirt, error) {
	var d Dirt
	for _, entry := range splitNUL(out) {
		if err := d.add(entry); err != nil {
			return Dirt{}, err
		}
	}
	return d, nil
}

func (d *Dirt) add(entry string) error {
	// 1 XY sub mH mI mW hH hI path | u XY sub m1 m2 m3 mW h1 h2 h3 path | ? path
	fields := map[byte]int{'1': 9, 'u': 11, '?': 2}
	var f []string
	if entry != "" {
		f = strings.SplitN(entry, " ", fields[entry[0]])
	}
	if len(f) < 2 || len(f) != fields[entry[0]] || f[0] != "?" && len(f[1]) != 2 {
		return fmt.Errorf("parse git status: unexpected %q", entry)
	}
	path := f[len(f)-1]
	switch f[0] {
	case "?":
		d.Untracked = append(d.Untracked, strings.TrimSuffix(path, "/")) // a slash: a nested repository
		return nil
	case "u":
		d.Unmerged = append(d.Unmerged, path)
	case "1":
		if f[1][0] != '.' {
			d.Staged = append(d.Staged, path)
		}
		if f[1][1] != '.' {
			d.Unstaged = append(d.Unstaged, path)
		}
	}
	if strings.HasPrefix(f[2], "S") && f[2] != "S..." {
		d.Submodules = append(d.Submodules, path)
	}
	return nil
}

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
