package repo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// ConflictError means that a patch does not apply to the current files.
type ConflictError struct {
	Paths   []string // conflicting files, as named in the patch; sorted
	Message string   // git's message
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("the patch does not apply to %s: %s", firstPaths(e.Paths), clip(e.Message, maxMessage))
}

// check reports whether a patch of [Comparison.Patch] applies to the files of the checkout, including uncommitted
// changes. If not, the error is a [*ConflictError]. Nothing is written.
func (r *Repo) check(ctx context.Context, patch []byte) error {
	misfit, err := tryApply(ctx, r.git, patch, "--check")
	if err != nil || misfit == nil {
		return err
	}
	return r.conflict(ctx, r.git, patch, misfit, "--check")
}

// tryApply runs git apply and returns its failure as misfit if the patch does not apply.
func tryApply(ctx context.Context, g git, patch []byte, flags ...string) (misfit *Error, err error) {
	_, err = g.run(ctx, patch, append([]string{"apply", "--binary"}, flags...)...)
	if exitCode(err) == 1 && errors.As(err, &misfit) { // 128: not a patch
		return misfit, nil
	}
	return nil, err
}

// conflict determines the files to which a patch does not apply.
func (r *Repo) conflict(ctx context.Context, g git, patch []byte, misfit *Error, flags ...string) error {
	paths, err := r.touched(ctx, patch)
	if err != nil {
		return err
	}
	conflict := &ConflictError{Message: misfit.Message}
	for _, p := range paths {
		one, err := tryApply(ctx, g, patch, append(flags, "--include="+literalPattern(p))...)
		if err == nil && one != nil {
			conflict.Paths = append(conflict.Paths, p)
		}
	}
	return conflict
}

// literalPattern returns a pattern that matches only path.
func literalPattern(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// Apply applies a patch to the files of the checkout; index and commits are unchanged. It checks first. If
// applying fails anyway, the files are restored and git's message is a [*RefusedError]; after a crash, the next
// Apply or Applied of the same patch restores them. A patch that is already applied is not an error.
func (r *Repo) Apply(ctx context.Context, patch []byte) error {
	if len(patch) == 0 {
		return nil
	}
	err := withLock(ctx, r.gitDir, applyLock, func() error {
		if err := r.recoverApply(ctx, patch); err != nil {
			return err
		}
		return r.apply(ctx, patch)
	})
	if err != nil {
		return fmt.Errorf("apply the patch to %s: %w", r.root, err)
	}
	return nil
}

// CanApply returns a [*ConflictError] if a patch does not apply to the checkout. It changes nothing.
func (r *Repo) CanApply(ctx context.Context, patch []byte) error { return r.check(ctx, patch) }

func (r *Repo) apply(ctx context.Context, patch []byte) error {
	if applied, err := r.applied(ctx, patch); err != nil || applied {
		return err
	}
	paths, err := r.touched(ctx, patch)
	if err != nil {
		return err
	}
	made, err := r.contents(ctx, paths, patch)
	if err != nil {
		return err
	}
	backup, err := save(r.root, r.backupOf(patch), paths, made)
	if err != nil {
		return fmt.Errorf("back up the files: %w", err)
	}
	if _, err := r.git.run(ctx, patch, "apply", "--binary"); err != nil {
		return backup.restoreAfter(err)
	}
	return backup.drop()
}

// Applied reports whether a patch is already applied. If unknown, it returns false, and Apply will refuse. It
// first restores what an interrupted Apply left.
func (r *Repo) Applied(ctx context.Context, patch []byte) (bool, error) {
	if len(patch) == 0 {
		return true, nil
	}
	if _, err := os.Lstat(r.backupOf(patch)); err == nil {
		if err := withLock(ctx, r.gitDir, applyLock, func() error { return r.recoverApply(ctx, patch) }); err != nil {
			return false, err
		}
	}
	applied, err := r.applied(ctx, patch)
	if errors.As(err, new(*ConflictError)) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("check for the patch in %s: %w", r.root, err)
	}
	return applied, nil
}

// applied reports whether the patch is applied. A [*ConflictError] means that it is not and does not apply, or
// that this is unknown.
func (r *Repo) applied(ctx context.Context, patch []byte) (bool, error) {
	fits := r.check(ctx, patch)
	undo, err := tryApply(ctx, r.git, patch, "--check", "--reverse")
	switch {
	case err != nil:
		return false, err
	case undo != nil:
		return false, fits
	case fits != nil:
		return true, nil
	}
	return r.hasContent(ctx, patch)
}

// touched returns all paths of a patch, including old names of renames.
func (r *Repo) touched(ctx context.Context, patch []byte) ([]string, error) {
	var all []string
	for _, direction := range [][]string{nil, {"--reverse"}} { // numstat lists new names; reversed, the old ones
		args := append([]string{"apply", "--numstat", "-z"}, direction...)
		out, err := r.git.run(ctx, patch, args...)
		if err != nil {
			return nil, err
		}
		for _, entry := range splitNUL(out) {
			f := strings.SplitN(entry, "\t", 3)
			if len(f) != 3 {
				return nil, fmt.Errorf("parse git apply --numstat: unexpected %q", entry)
			}
			all = append(all, f[2])
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// hasContent reports whether the files have the content after the patch, for a patch that applies in both directions,
// such as one line less among equal ones. The patch contains the ids of each file before and after.
func (r *Repo) hasContent(ctx context.Context, patch []byte) (bool, error) {
	paths, err := r.touched(ctx, patch)
	if err != nil {
		return false, err
	}
	ids, err := r.contents(ctx, paths, nil)
	if err != nil {
		return false, err
	}
	before, after := contentIDs(patch)
	switch {
	case subset(after, ids):
		return true, nil
	case subset(before, ids):
		return false, nil
	}
	return false, &ConflictError{
		Paths: paths, Message: "the files were changed since, so it is unknown whether the patch is applied",
	}
}

// contents returns the git ids of the files at these paths; with a patch, those after applying it.
func (r *Repo) contents(ctx context.Context, paths []string, patch []byte) (ids []string, err error) {
	index, drop, err := r.copyIndex()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	g := r.git.withEnv("GIT_INDEX_FILE=" + index)
	if err := r.stage(ctx, g, paths); err != nil {
		return nil, err
	}
	if len(patch) > 0 {
		if _, err := g.run(ctx, patch, "apply", "--cached", "--binary"); err != nil {
			return nil, err
		}
	}
	return g.stagedIDs(ctx, paths)
}

// maxPathArgs is the maximum number of path arguments per git command: even with the longest paths they fit the
// system's limit.
const maxPathArgs = 100

// stagedIDs returns the ids in an index at these paths.
func (g git) stagedIDs(ctx context.Context, paths []string) ([]string, error) {
	var ids []string
	for part := range slices.Chunk(paths, maxPathArgs) {
		out, err := g.output(ctx, append([]string{"ls-files", "-z", "--stage", "--"}, part...)...)
		if err != nil {
			return nil, err
		}
		for _, entry := range splitNUL(out) { // mode id stage \t path
			if f := strings.Fields(entry); len(f) > 2 {
				ids = append(ids, f[1])
			}
		}
	}
	return ids, nil
}

// contentIDs reads the lines "index <before>..<after> <mode>" of a patch. Content lines begin with another
// character, and those of binary files contain no space.
func contentIDs(patch []byte) (before, after []string) {
	for line := range bytes.Lines(patch) {
		rest, ok := strings.CutPrefix(string(line), "index ")
		if !ok {
			continue
		}
		ids, _, _ := strings.Cut(strings.TrimSuffix(rest, "\n"), " ")
		if b, a, ok := strings.Cut(ids, ".."); ok {
			before, after = append(before, b), append(after, a)
		}
	}
	return before, after
}

// subset reports whether all wanted ids exist. Zeroes mean an absent file.
func subset(wanted, there []string) bool {
	return !slices.ContainsFunc(wanted, func(id string) bool {
		return strings.Trim(id, "0") != "" && !slices.Contains(there, id)
	})
}

// Overlaps returns the paths with uncommitted changes that the patch or a folder in it would touch, sorted: an
// operator must decide first.
func (r *Repo) Overlaps(ctx context.Context, patch []byte) ([]string, error) {
	if len(patch) == 0 {
		return nil, nil
	}
	paths, err := r.touched(ctx, patch)
	if err != nil {
		return nil, fmt.Errorf("read the patch: %w", err)
	}
	d, err := r.Dirt(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(d.Paths(), func(dirty string) bool {
		return !slices.ContainsFunc(paths, func(p string) bool { return overlap(dirty, p) })
	}), nil
}

// overlap reports whether two paths are the same or one is a folder of the other.
func overlap(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}
