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

// ConflictError says that a patch does not fit the files as they are.
type ConflictError struct {
	Paths []string // the files that it does not fit, as the patch names them; sorted
	Said  string   // git's own words
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("the patch does not fit %s: %s", some(e.Paths), clip(e.Said, mostSaid))
}

// Check says whether a patch of [Worktree.Patch] fits the files of the checkout as they are, uncommitted changes included. A patch that does
// not is a [*ConflictError]. Nothing is written.
func (r *Repo) Check(ctx context.Context, patch []byte) error {
	if len(patch) == 0 {
		return nil
	}
	if err := r.check(ctx, patch); err != nil {
		return fmt.Errorf("check the patch against %s: %w", r.root, err)
	}
	return nil
}

func (r *Repo) check(ctx context.Context, patch []byte) error {
	misfit, err := misfits(ctx, r.git, patch, "--check")
	if err != nil || misfit == nil {
		return err
	}
	return r.conflict(ctx, r.git, patch, misfit, "--check")
}

// misfits runs git apply, and gives its failure apart if that is only that the patch does not fit.
func misfits(ctx context.Context, g git, patch []byte, flags ...string) (misfit *Error, err error) {
	_, err = g.feed(ctx, patch, append([]string{"apply", "--binary"}, flags...)...)
	if exitCode(err) == 1 && errors.As(err, &misfit) { // 128: no patch at all
		return misfit, nil
	}
	return nil, err
}

// conflict finds out which files of a patch do not fit.
func (r *Repo) conflict(ctx context.Context, g git, patch []byte, misfit *Error, flags ...string) error {
	paths, err := r.touched(ctx, patch)
	if err != nil {
		return err
	}
	conflict := &ConflictError{Said: misfit.Said}
	for _, p := range paths {
		one, err := misfits(ctx, g, patch, append(flags, "--include="+literal(p))...)
		if err == nil && one != nil {
			conflict.Paths = append(conflict.Paths, p)
		}
	}
	return conflict
}

// literal is a pattern that only path matches.
func literal(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// Apply changes the files of the checkout as the patch says; index and commits stay. It checks first. If it fails then all the same, the files
// are put back as they were, and git's words are a [*RefusedError]; if it is cut off, the next Apply or Applied of the same patch does that. A patch that is there already is fine:
// nothing is done.
func (r *Repo) Apply(ctx context.Context, patch []byte) error {
	if len(patch) == 0 {
		return nil
	}
	err := alone(ctx, r.gitDir, applyLock, func() error {
		if err := r.mend(ctx, patch); err != nil {
			return err
		}
		return r.apply(ctx, patch)
	})
	if err != nil {
		return fmt.Errorf("apply the patch to %s: %w", r.root, err)
	}
	return nil
}

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
		return fmt.Errorf("keep a copy of the files: %w", err)
	}
	if _, err := r.git.feed(ctx, patch, "apply", "--binary"); err != nil {
		return backup.restoreAfter(err)
	}
	return backup.drop()
}

// Applied says whether a patch is in the files of the checkout already. Where that cannot be told it says no, and Apply will refuse. What an Apply
// that was cut off left half done is put back first.
func (r *Repo) Applied(ctx context.Context, patch []byte) (bool, error) {
	if len(patch) == 0 {
		return true, nil
	}
	if _, err := os.Lstat(r.backupOf(patch)); err == nil {
		if err := alone(ctx, r.gitDir, applyLock, func() error { return r.mend(ctx, patch) }); err != nil {
			return false, err
		}
	}
	applied, err := r.applied(ctx, patch)
	if errors.As(err, new(*ConflictError)) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the patch in %s: %w", r.root, err)
	}
	return applied, nil
}

// applied says whether the patch is there. A [*ConflictError] says that it is not and does not fit, or that it cannot be told.
func (r *Repo) applied(ctx context.Context, patch []byte) (bool, error) {
	fits := r.check(ctx, patch)
	undo, err := misfits(ctx, r.git, patch, "--check", "--reverse")
	switch {
	case err != nil:
		return false, err
	case undo != nil:
		return false, fits
	case fits != nil:
		return true, nil
	}
	return r.has(ctx, patch)
}

// touched lists every path that a patch reads or writes, old names of renames too.
func (r *Repo) touched(ctx context.Context, patch []byte) ([]string, error) {
	var all []string
	for _, direction := range [][]string{nil, {"--reverse"}} { // numstat gives new names only; reversed, those are the old ones
		args := append([]string{"apply", "--numstat", "-z"}, direction...)
		out, err := r.git.feed(ctx, patch, args...)
		if err != nil {
			return nil, err
		}
		for _, entry := range zero(out) {
			f := strings.SplitN(entry, "\t", 3)
			if len(f) != 3 {
				return nil, fmt.Errorf("git apply says %q, which are no numbers", entry)
			}
			all = append(all, f[2])
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// has says whether the files are exactly what the patch makes of them, for a patch that fits in both directions: one line less among many
// equal ones, for example. The patch names the content of each file before and after by id.
func (r *Repo) has(ctx context.Context, patch []byte) (bool, error) {
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
	return false, &ConflictError{Paths: paths, Said: "the files were changed since, and it cannot be told whether the patch is in them already"}
}

// contents gives the ids of the files at these paths, as git would store them; with a patch, as they will be with it.
func (r *Repo) contents(ctx context.Context, paths []string, patch []byte) (ids []string, err error) {
	index, drop, err := r.copyIndex()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	g := r.git.with("GIT_INDEX_FILE=" + index)
	if err := r.stage(ctx, g, paths); err != nil {
		return nil, err
	}
	if len(patch) > 0 {
		if _, err := g.feed(ctx, patch, "apply", "--cached", "--binary"); err != nil {
			return nil, err
		}
	}
	return g.stagedIDs(ctx, paths)
}

// perCall is how many paths git is given as arguments at once: with the longest ones that there are they stay below what a system takes.
const perCall = 100

// stagedIDs gives the ids of the contents that an index has at these paths.
func (g git) stagedIDs(ctx context.Context, paths []string) ([]string, error) {
	var ids []string
	for part := range slices.Chunk(paths, perCall) {
		out, err := g.out(ctx, append([]string{"ls-files", "-z", "--stage", "--"}, part...)...)
		if err != nil {
			return nil, err
		}
		for _, entry := range zero(out) { // mode id stage \t path
			if f := strings.Fields(entry); len(f) > 2 {
				ids = append(ids, f[1])
			}
		}
	}
	return ids, nil
}

// contentIDs reads the lines "index <before>..<after> <mode>" of a patch. A line of content begins with another character, and none of a
// binary file has a space.
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

// subset says whether all wanted ids are there. Zeroes stand for a file that is absent.
func subset(wanted, there []string) bool {
	return !slices.ContainsFunc(wanted, func(id string) bool {
		return strings.Trim(id, "0") != "" && !slices.Contains(there, id)
	})
}

// Overlaps lists the paths with uncommitted changes that the patch would touch, or whose folder it would: what the operator must be asked
// about before the patch is applied. They are sorted.
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

// overlap says whether two paths cannot change independently: they are the same, or one is a folder of the other.
func overlap(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}
