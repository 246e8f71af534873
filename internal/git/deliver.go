package git

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
)

// Delivered are files of a commit for a branch or a checkout.
type Delivered struct {
	Branch, Base string   // of CommitOn: a new branch begins at Base
	Commit       string   // that has the files
	Paths        []string // that differ between Base and Commit
	Message      string   // of Apply: empty: no commit
	Trailer      string   // line of the message: the newest commit with it is returned
	DryRun       bool     // only check that the files can be delivered
}

// Apply changes files of the checkout, and commits exactly these paths with a message. The files of Base must be there as
// a checkout has them, or those of Commit; otherwise the error is a [*ConflictError]. The attributes of Base convert
// both. After a crash or an error that is neither of this kind nor a [*RefusedError] some are changed; the same call
// completes it.
func (r *Repo) Apply(ctx context.Context, d Delivered) (id string, err error) {
	defer wrap(&err, "write the changes to %s", r.root)
	head, _, err := r.Head(ctx)
	if err != nil {
		return "", err
	}
	if has, err := r.hasTrailer(ctx, head, d.Trailer); err != nil || has {
		return head, err
	}
	puts, drop, err := r.puts(ctx, d)
	if err != nil {
		return "", asRefused(err)
	}
	defer func() { err = errors.Join(err, drop()) }()
	if err := r.putFiles(ctx, puts, true); err != nil {
		return "", err
	}
	if d.Message != "" {
		check := d
		check.DryRun = true
		if _, err := r.commitPaths(ctx, check); err != nil {
			return "", err
		}
	}
	if d.DryRun {
		return "", nil
	}
	lock := filepath.Join(r.gitDir, "passbook-apply-lock")
	err = withLock(ctx, lock, func() error { return r.putFiles(ctx, puts, false) })
	if err != nil || d.Message == "" {
		return "", err
	}
	return r.commitPaths(ctx, d)
}

// puts returns the changes of files of a checkout. drop removes temporary files; the puts are invalid then.
func (r *Repo) puts(ctx context.Context, d Delivered) (puts []put, drop func() error, err error) {
	before, dropBefore, err := r.versions(ctx, d.Base, d.Base, d.Paths)
	if err != nil {
		return nil, nil, err
	}
	after, dropAfter, err := r.versions(ctx, d.Commit, d.Base, d.Paths)
	if err != nil {
		return nil, nil, errors.Join(err, dropBefore())
	}
	for _, p := range d.Paths {
		puts = append(puts, put{p, before[p], after[p]})
	}
	return puts, func() error { return errors.Join(dropBefore(), dropAfter()) }, nil
}

// versions returns files of a commit as the attributes of another one convert them.
func (r *Repo) versions(ctx context.Context, commit, start string, paths []string) (map[string]File, func() error,
	error) {
	at, err := r.entriesAt(ctx, commit, paths)
	if err != nil {
		return nil, nil, err
	}
	var files []File
	var list []entry
	for _, e := range at {
		if e.mode != "" {
			files, list = append(files, File{Path: e.path, Mode: e.mode}), append(list, e)
		}
	}
	attributes, err := r.attributesFor(ctx, start, files)
	if err != nil {
		return nil, nil, err
	}
	c, err := r.checkOut(ctx, attributes, list)
	if err != nil {
		return nil, nil, err
	}
	all := map[string]File{}
	for _, e := range list {
		all[e.path] = File{Path: e.path, Mode: e.mode, Content: c.opener(ctx, e)}
	}
	return all, c.drop, nil
}

// CommitOn commits files on a branch that no checkout has. Where the branch has a file neither as it was before nor as
// it is to be, the error is a [*ConflictError].
func (r *Repo) CommitOn(ctx context.Context, d Delivered) (id string, err error) {
	defer wrap(&err, "commit the changes on branch %s of %s", d.Branch, r.root)
	base, at, err := r.target(ctx, d.Branch, d.Base)
	if err != nil {
		return "", err
	}
	parent := base
	if at != "" {
		parent = at
		if has, err := r.hasTrailer(ctx, at, d.Trailer); err != nil || has {
			return at, err
		}
	}
	if err := r.checkNotOut(ctx, d.Branch, at); err != nil {
		return "", err
	}
	list, err := r.carried(ctx, d, base, parent)
	if err != nil {
		return "", err
	}
	tree, err := r.treeWith(ctx, parent, list)
	if err != nil {
		return "", err
	}
	if err := r.checkOnly(ctx, parent, tree, d.Paths); err != nil || d.DryRun {
		return "", err
	}
	if id, err = r.commitObject(ctx, tree, parent, d.Message); err != nil {
		return "", err
	}
	return id, r.moveRef(ctx, d.Branch, id, at)
}

// carried returns the entries to commit, if the parent has them as before or as after.
func (r *Repo) carried(ctx context.Context, d Delivered, base, parent string) ([]entry, error) {
	var states [3]map[string]entry
	for i, commit := range []string{base, d.Commit, parent} {
		var err error
		if states[i], err = r.entriesAt(ctx, commit, d.Paths); err != nil {
			return nil, err
		}
	}
	var list []entry
	var conflicts []string
	for _, p := range d.Paths {
		before, after, now := states[0][p], states[1][p], states[2][p]
		if now != before && now != after {
			conflicts = append(conflicts, p)
		}
		after.path = p
		list = append(list, after)
	}
	return list, conflicting(conflicts)
}

// checkOnly refuses a tree in which files of the parent are missing because a file is where a folder was, or the other
// way round.
func (r *Repo) checkOnly(ctx context.Context, parent, tree string, paths []string) error {
	changed, err := r.changed(ctx, parent, tree)
	if err != nil {
		return err
	}
	return conflicting(slices.DeleteFunc(changed, func(p string) bool { return slices.Contains(paths, p) }))
}

// conflicting returns a [*ConflictError], or nil if there are no paths.
func conflicting(paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	slices.Sort(paths)
	return &ConflictError{paths}
}

// Paths returns all paths of changes, including old ones of renames.
func Paths(changes []Change) []string {
	var all []string
	for _, c := range changes {
		all = append(all, c.Path)
		if c.OldPath != "" {
			all = append(all, c.OldPath)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
