package repo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ConflictError says that a patch does not fit the files as they are.
type ConflictError struct {
	Paths []string // the files that it does not fit, as the patch names them; sorted
	Said  string   // git's own words
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("the patch does not fit %q: %s", e.Paths, e.Said)
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

func (r *Repo) check(ctx context.Context, patch []byte, flags ...string) error {
	return r.checkIn(ctx, r.git, patch, flags...)
}

// checkIn is check with the index that g has.
func (r *Repo) checkIn(ctx context.Context, g git, patch []byte, flags ...string) error {
	args := append([]string{"apply", "--check", "--binary"}, flags...)
	_, err := g.feed(ctx, patch, args...)
	var failed *Error
	if !errors.As(err, &failed) || exitCode(err) != 1 { // 128: no patch at all
		return err
	}
	conflict := &ConflictError{Said: failed.Said}
	paths, err := r.touched(ctx, patch)
	if err != nil {
		return err
	}
	for _, p := range paths {
		if _, err := g.feed(ctx, patch, append(args, "--include="+literal(p))...); exitCode(err) == 1 {
			conflict.Paths = append(conflict.Paths, p)
		}
	}
	return conflict
}

// literal is a pattern that only path matches.
func literal(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// Apply changes the files of the checkout as the patch says; index and commits stay. It checks first. If it fails then all the same, or is
// interrupted, the files are put back as they were. A patch that is there already is fine: nothing is done.
func (r *Repo) Apply(ctx context.Context, patch []byte) error {
	if len(patch) == 0 {
		return nil
	}
	if err := r.apply(ctx, patch); err != nil {
		return fmt.Errorf("apply the patch to %s: %w", r.root, err)
	}
	return nil
}

func (r *Repo) apply(ctx context.Context, patch []byte) error {
	fits, there := r.check(ctx, patch), r.check(ctx, patch, "--reverse")
	var conflict *ConflictError
	switch {
	case fits != nil && there == nil:
		return nil
	case fits != nil:
		return fits
	case there == nil:
		if done, err := r.has(ctx, patch); err != nil || done {
			return err
		}
	case !errors.As(there, &conflict):
		return there
	}
	paths, err := r.touched(ctx, patch)
	if err != nil {
		return err
	}
	backup, err := save(r.root, paths)
	if err != nil {
		return fmt.Errorf("keep a copy of the files: %w", err)
	}
	if _, err := r.git.feed(ctx, patch, "apply", "--binary"); err != nil {
		return backup.restoreAfter(err)
	}
	return backup.drop()
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
	ids, err := r.contents(ctx, paths)
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

// contents gives the ids of the files at these paths, as git would store them.
func (r *Repo) contents(ctx context.Context, paths []string) ([]string, error) {
	index, drop, err := r.copyIndex()
	if err != nil {
		return nil, err
	}
	defer drop()
	g := r.git.with("GIT_INDEX_FILE=" + index)
	if err := (&Worktree{*r}).stage(ctx, g, paths); err != nil {
		return nil, err
	}
	out, err := g.out(ctx, append([]string{"ls-files", "-z", "--stage", "--"}, paths...)...)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, entry := range zero(out) { // mode id stage \t path
		if f := strings.Fields(entry); len(f) > 2 {
			ids = append(ids, f[1])
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
