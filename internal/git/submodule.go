package git

import (
	"context"
	"os"
	"path"
	"path/filepath"
)

// Submodule is a submodule of a commit, or of one of its submodules.
type Submodule struct {
	Path   string // below the root of the repository
	Commit string // recorded

	repo *Repo // its checkout; nil: it cannot be checked out
}

// Submodules returns the submodules of a commit, each before those in it. Which ones are initialised is decided by
// the checkout of the repository.
func (r *Repo) Submodules(ctx context.Context, commit string) (all []Submodule, err error) {
	files, err := r.entries(ctx, commit)
	if err != nil {
		return nil, err
	}
	for _, e := range files {
		if e.mode != modeSubmodule {
			continue
		}
		s := Submodule{Path: e.path, Commit: e.id}
		if s.repo, err = r.submodule(ctx, s); err != nil {
			return nil, err
		}
		all = append(all, s)
		if s.repo == nil {
			continue
		}
		below, err := s.repo.Submodules(ctx, s.Commit)
		if err != nil {
			return nil, err
		}
		for _, b := range below {
			b.Path = path.Join(s.Path, b.Path)
			all = append(all, b)
		}
	}
	return all, nil
}

// submodule opens the checkout of a submodule; nil: it is not initialised, or lacks the recorded commit.
func (r *Repo) submodule(ctx context.Context, s Submodule) (*Repo, error) {
	dir := filepath.Join(r.root, s.Path)
	if _, err := os.Lstat(filepath.Join(dir, ".git")); err != nil {
		return nil, nil //nolint:nilerr // not initialised
	}
	sub, err := Open(ctx, dir)
	if Missing(err) {
		return nil, nil
	}
	if err != nil || sub.root != dir { // git found another repository above
		return nil, err
	}
	if _, err := sub.commit(ctx, s.Commit); err != nil {
		return nil, ctx.Err()
	}
	return sub, nil
}

// Missing reports whether the submodule is not initialised, or lacks its recorded commit.
func (s Submodule) Missing() bool { return s.repo == nil }

// CheckOut writes the files of the recorded commit to their place in a checkout of the repository, and nothing of git.
func (s Submodule) CheckOut(ctx context.Context, root string) error {
	return s.repo.CheckOut(ctx, s.Commit, filepath.Join(root, s.Path))
}

// Tracked returns the files of the recorded commit: paths below the root of the repository.
func (s Submodule) Tracked(ctx context.Context) ([]string, error) {
	files, err := s.repo.Tracked(ctx, s.Commit)
	for i, f := range files {
		files[i] = path.Join(s.Path, f)
	}
	return files, err
}
