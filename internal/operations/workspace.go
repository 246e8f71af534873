package operations

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/passbook-run/passbook/internal/repo"
	"github.com/passbook-run/passbook/internal/scaffold"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/run"
)

// SourceError reports that a run cannot start with its source. Nothing was started or changed.
type SourceError struct{ Source, Why string }

func (e *SourceError) Error() string {
	return fmt.Sprintf("%s: %s; nothing was started", e.Source, e.Why)
}

// taskOf returns the task of a run.
func taskOf(def Definition) string {
	if def.Task != "" {
		return def.Task
	}
	return def.Plan.Pipeline
}

// sourceOf returns the checkout or folder that a run works on.
func sourceOf(def Definition) (string, error) {
	w := def.Plan.Workspace
	source := def.WorkOn
	if source == "" {
		if def.Home == "" {
			return "", &SourceError{Source: "the workspace",
				Why: "the definition lies in no folder: say which source to work on with --source DIR"}
		}
		source = filepath.Join(def.Home, filepath.FromSlash(w.Dir))
	}
	abs, err := filepath.Abs(source)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// repositoryOf returns the repository of a run's checkout; empty: none.
func repositoryOf(def Definition) string {
	switch f := def.Follow; {
	case def.Plan.Workspace == nil || def.Plan.Workspace.Git == "":
		return ""
	case f != nil && f.Workspace != nil:
		return f.Workspace.Source
	}
	source, err := sourceOf(def)
	if err != nil {
		return ""
	}
	return source
}

// CheckSource checks the source before anything is changed.
func CheckSource(ctx context.Context, def Definition, dir projector.Dir) error {
	w := def.Plan.Workspace
	if w == nil {
		return nil
	}
	if f := def.Follow; f != nil && f.Workspace != nil {
		if err := f.sameSource(ctx, def); err != nil {
			return err
		}
		return f.check(ctx, *w)
	}
	source, err := sourceOf(def)
	if err != nil {
		return err
	}
	if w.Git == "" {
		return checkFolder(source, dir, w.Ignore)
	}
	r, err := repo.Open(ctx, source)
	if err != nil {
		return &SourceError{Source: source, Why: err.Error()}
	}
	dirt, err := r.Dirt(ctx)
	if err != nil {
		return err
	}
	switch {
	case dirt.Operation != "" && w.Dirty != "exclude":
		return &SourceError{Source: r.Root(), Why: "a " + dirt.Operation + " is under way there: end or abort it"}
	case w.Dirty == "halt":
		own := filesOf(def, r.Root())
		changed := slices.DeleteFunc(dirt.Paths(), func(p string) bool {
			return slices.Contains(own, p) || ofPipeline(filepath.Join(r.Root(), filepath.FromSlash(p)), def.Home)
		})
		if len(changed) > 0 {
			return &SourceError{Source: r.Root(),
				Why: fmt.Sprintf("it has changes that are not committed (%s): commit or stash them, or add --dirty "+
					"include, exclude or commit",
					few(changed))}
		}
	}
	return nil
}

// filesOf returns the definition's file and its prompts, relative to a repository. A run reads them when it starts, so
// it does not miss their uncommitted changes.
func filesOf(def Definition, root string) []string {
	home, err := filepath.EvalSymlinks(def.Home)
	if def.Home == "" || err != nil {
		return nil
	}
	names := []string{filepath.Base(def.Parsed.File)}
	for _, role := range def.Plan.Roles {
		names = append(names, filepath.FromSlash(role.Prompt))
	}
	var paths []string
	for _, name := range names {
		if rel, err := filepath.Rel(root, filepath.Join(home, name)); err == nil {
			paths = append(paths, filepath.ToSlash(rel))
		}
	}
	return paths
}

// ofPipeline reports whether a file belongs to a pipeline in a folder beside that of the definition, as `starter init`
// writes it: no run works on it.
func ofPipeline(file, home string) bool {
	home, err := filepath.EvalSymlinks(home)
	if err != nil {
		return false
	}
	beside, err := filepath.Rel(filepath.Dir(home), file)
	if err != nil || !filepath.IsLocal(beside) {
		return false
	}
	folder, _, below := strings.Cut(beside, string(filepath.Separator))
	fi, err := os.Stat(filepath.Join(filepath.Dir(home), folder, scaffold.Definition))
	return err == nil && fi.Mode().IsRegular() && below && folder != filepath.Base(home)
}

func few(paths []string) string {
	const most = 5
	if len(paths) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(paths[:most], ", "), len(paths)-most)
	}
	return strings.Join(paths, ", ")
}

// checkFolder requires a folder, and a run directory outside the run's tree.
func checkFolder(source string, dir projector.Dir, ignore []string) error {
	if fi, err := os.Stat(source); err != nil || !fi.IsDir() {
		return &SourceError{Source: source, Why: "it is not a folder"}
	}
	rel, inside := within(source, dir.Root)
	first, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	if inside && !slices.ContainsFunc(ignore, func(p string) bool { return strings.Trim(p, "/") == first }) {
		return &SourceError{Source: source,
			Why: fmt.Sprintf("the run directory %s lies in it, and would be part of what the run works on: choose "+
				"another --output-dir, or write %s/ into workspace.ignore",
				dir.Root, first)}
	}
	return nil
}

// within returns the path of dir relative to a folder.
func within(folder, dir string) (rel string, inside bool) {
	real, err := filepath.EvalSymlinks(filepath.Dir(dir))
	if err != nil {
		real = filepath.Dir(dir)
	}
	rel, err = filepath.Rel(folder, filepath.Join(real, filepath.Base(dir)))
	return rel, err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// prepareIn creates the run's checkout with the claim's store; nil: the run has no workspace. Files left out of its
// tree become warnings.
func prepareIn(ctx context.Context, def *Definition, dir projector.Dir, claim run.Claim) (*run.Workspace, error) {
	if def.Plan.Workspace == nil {
		return nil, nil
	}
	s, err := openStoreOn(ctx, dir.Disk, claim.Store)
	if err != nil {
		return nil, err
	}
	out, err := prepare(ctx, s, def, dir, claim)
	if err == nil {
		out.Definition = def.within(out.Source)
	}
	return out, err
}

// within lists the paths below a folder of what the definition consists of: no role may change them unseen.
func (d Definition) within(root string) (all []string) {
	if d.Home == "" { // that of the earlier run
		if d.Follow != nil && d.Follow.Workspace != nil {
			return d.Follow.Workspace.Definition
		}
		return nil
	}
	names := []string{filepath.Base(d.Parsed.File)}
	for _, r := range d.Plan.Roles {
		names = append(names, r.Prompt, r.Schema)
	}
	for _, p := range d.Plan.Projects {
		names = append(names, p.Pipeline)
	}
	for _, name := range names {
		rel, inside := within(root, filepath.Join(d.Home, filepath.FromSlash(name)))
		if rel = filepath.ToSlash(rel); name != "" && inside && !slices.Contains(all, rel) {
			all = append(all, rel)
		}
	}
	slices.Sort(all)
	return all
}

// prepare creates the run's checkout and stores its first tree. A repetition finds what exists.
func prepare(ctx context.Context, s *store.Store, def *Definition, dir projector.Dir,
	claim run.Claim) (*run.Workspace, error) {
	w := def.Plan.Workspace
	if f := def.Follow; f != nil && f.Workspace != nil {
		return f.prepare(ctx, s, def, dir, claim)
	}
	source, err := sourceOf(*def)
	if err != nil {
		return nil, err
	}
	if w.Git != "" {
		return prepareGit(ctx, s, def, dir, claim, source)
	}
	out := run.Workspace{Kind: "dir", Source: source}
	saved, err := workspace.Save(ctx, s, source, out, workspace.FirstRules(def.Plan), nil)
	if err != nil {
		return nil, fmt.Errorf("store the workspace %s: %w", source, err)
	}
	begins(def, &out, saved)
	checkout := dir.Path(layout.WorkspaceDir)
	if err := dir.Inside().Mkdir(checkout, 0o755); err != nil {
		return nil, err
	}
	_, err = tree.Checkout(ctx, s, saved.Digest, checkout, workspace.Rules(*w))
	return &out, err
}

func prepareGit(ctx context.Context, s *store.Store, def *Definition, dir projector.Dir, claim run.Claim,
	source string) (*run.Workspace, error) {
	r, err := repo.Open(ctx, source)
	if err != nil {
		return nil, err
	}
	if err := hide(dir, r.Root()); err != nil {
		return nil, err
	}
	w := def.Plan.Workspace
	if w.Dirty == "commit" {
		if _, err := r.CommitAll(ctx, "Changes before a run of "+def.Plan.Pipeline+"\n\nPassbook-Run: "+claim.RunID+
			"\n"); err != nil {
			return nil, err
		}
	}
	head, _, err := r.Head(ctx)
	if err != nil {
		return nil, err
	}
	return checkedOut(ctx, s, def, dir, r,
		run.Workspace{Kind: "git", Source: r.Root(), Base: head,
			Branch: repo.BranchPrefix + claim.RunID}, w.Dirty == "include")
}

// checkedOut creates the run's checkout at the base and stores its content. A checkout of an interrupted start at
// another base contains no work of a run and is created again.
func checkedOut(ctx context.Context, s *store.Store, def *Definition, dir projector.Dir, r *repo.Repo,
	out run.Workspace, include bool) (*run.Workspace, error) {
	checkout := dir.Path(layout.WorkspaceDir)
	_, err := dir.Lstat(layout.WorkspaceDir)
	left := err == nil
	made, err := checkOut(ctx, s, def, dir, r, out, include)
	if err == nil || !left {
		return made, err
	}
	if err := r.RemoveWorktree(ctx, checkout, false); err != nil {
		return nil, err
	}
	return checkOut(ctx, s, def, dir, r, out, include)
}

func checkOut(ctx context.Context, s *store.Store, def *Definition, dir projector.Dir, r *repo.Repo, out run.Workspace,
	include bool) (*run.Workspace, error) {
	checkout := dir.Path(layout.WorkspaceDir)
	w, err := r.AddWorktree(ctx, checkout, out.Branch, out.Base)
	if err != nil {
		return nil, err
	}
	if include {
		if out.Base, err = w.ImportChanges(ctx, r, true); err != nil {
			return nil, err
		}
	}
	saved, err := workspace.Save(ctx, s, checkout, out, workspace.FirstRules(def.Plan), nil)
	if err != nil {
		return nil, fmt.Errorf("store the workspace %s: %w", checkout, err)
	}
	begins(def, &out, saved)
	return &out, nil
}

// begins sets the first tree of a run, and warns of files left out of it.
func begins(def *Definition, w *run.Workspace, saved tree.Saved) {
	w.Tree = workspace.Blob(saved)
	def.Warnings = append(append(def.Warnings, workspace.LeftOut(saved)...),
		unprotected(def.Plan.Workspace.Protect, saved.Tree)...)
}

// hide excludes a run directory inside the source's checkout from git.
func hide(dir projector.Dir, root string) error {
	if _, inside := within(root, dir.Root); !inside {
		return nil
	}
	name := dir.Path(".gitignore")
	if _, err := dir.Lstat(".gitignore"); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return dir.Inside().WriteFile(name, []byte(layout.HiddenFromGit), 0o644)
}
