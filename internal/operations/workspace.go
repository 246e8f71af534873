package operations

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/passbook-run/passbook/internal/git"
	"github.com/passbook-run/passbook/internal/scaffold"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
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

// RunDir returns the directory below a folder for runs that a run has by default. Its parent has the name of the
// repository, or of the pipeline if the run works on none.
func (d Definition) RunDir(ctx context.Context, runRoot, name string) string {
	source, w := "", d.Plan.Workspace
	if f := d.Follow; f != nil && f.Workspace != nil {
		source = f.Workspace.Source
	} else if w != nil {
		if found, err := sourceOf(d); err == nil { // else the start reports why it is not found
			source = found
		}
		if r, err := git.Open(ctx, source); err == nil && w.Git != "" {
			source = r.Root()
		}
	}
	return runDir(runRoot, source, d.Plan.Pipeline, name)
}

func runDir(runRoot, source, pipeline, name string) string {
	parent := pipeline
	if source != "" {
		parent = filepath.Base(source)
	}
	return filepath.Join(runRoot, parent, name)
}

// CheckSource checks the source before anything is changed.
func CheckSource(ctx context.Context, def Definition, dir rundir.Dir) error {
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
	r, err := git.Open(ctx, source)
	if err != nil {
		return &SourceError{Source: source, Why: err.Error()}
	}
	if fi, err := os.Lstat(filepath.Join(r.Root(), git.IncludeFile)); err == nil && !fi.Mode().IsRegular() {
		return &SourceError{Source: r.Root(), Why: git.IncludeFile + " is not a regular file: replace it with one, or remove it"}
	}
	if def.Forge != nil { // the run starts at the remote's branch
		return nil
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
		changed := slices.DeleteFunc(dirt.Paths, func(p string) bool {
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
func checkFolder(source string, dir rundir.Dir, ignore []string) error {
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

// prepareIn stores the first tree of a run, and prepares its workspace; nil: the run has none. Files left out of the
// tree become warnings.
func (o Operator) prepareIn(ctx context.Context, def *Definition, dir rundir.Dir,
	claim run.Claim) (*run.Workspace, error) {
	if def.Plan.Workspace == nil {
		return nil, nil
	}
	s, err := openStoreOn(ctx, dir.Disk, claim.Store)
	if err != nil {
		return nil, err
	}
	w := preparation{s: s, folders: workspace.In(o.Settings.StateDir), dir: dir, claim: claim}
	out, err := w.prepare(ctx, def)
	if err == nil {
		out.Definition = def.within(out.Source)
	}
	return out, err
}

// within lists the paths below a folder that a start reads: no role may change them unseen. The seed of the artifact and
// the files of the corpus are not among them: they are what roles work on.
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
	for _, f := range d.Plan.AlwaysRead {
		names = append(names, f.Path)
	}
	for _, p := range d.Plan.Projects {
		names = append(names, p.Pipeline)
	}
	if d.Plan.Workspace.Git != "" {
		all = append(all, git.IncludeFile)
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

// preparation prepares the workspace of a run. A repetition finds what exists.
type preparation struct {
	s       *store.Store
	folders *workspace.Folders
	dir     rundir.Dir
	claim   run.Claim
}

func (p preparation) prepare(ctx context.Context, def *Definition) (*run.Workspace, error) {
	if f := def.Follow; f != nil && f.Workspace != nil {
		return f.prepare(ctx, p, def)
	}
	source, err := sourceOf(*def)
	if err != nil {
		return nil, err
	}
	if def.Plan.Workspace.Git != "" {
		return p.ofGit(ctx, def, source)
	}
	out := run.Workspace{Kind: run.WorkspaceDir, Source: source}
	saved, err := tree.Save(ctx, p.s, source, workspace.FirstRules(def.Plan), nil)
	if err != nil {
		return nil, fmt.Errorf("store the workspace %s: %w", source, err)
	}
	begins(def, &out, saved)
	return &out, p.link(out)
}

func (p preparation) ofGit(ctx context.Context, def *Definition, source string) (*run.Workspace, error) {
	r, err := git.Open(ctx, source)
	if err != nil {
		return nil, err
	}
	w := def.Plan.Workspace
	if def.Forge != nil {
		base, err := def.Forge.start(ctx, r)
		if err != nil {
			return nil, err
		}
		return p.at(ctx, r, def, base, base)
	}
	if w.Dirty == "commit" {
		if _, err := r.CommitAll(ctx, "Changes before a run of "+def.Plan.Pipeline+"\n\nPassbook-Run: "+p.claim.RunID+
			"\n"); err != nil {
			return nil, err
		}
	}
	head, _, err := r.Head(ctx)
	base := head
	if err == nil && w.Dirty == "include" {
		base, err = r.Import(ctx)
	}
	if err != nil {
		return nil, err
	}
	return p.at(ctx, r, def, head, base)
}

// at begins a run at a commit.
func (p preparation) at(ctx context.Context, r *git.Repo, def *Definition, head, base string) (*run.Workspace, error) {
	task := taskOf(*def)
	if f := def.Forge; f != nil && f.ref.Issue != nil {
		task = f.ref.Issue.Title
	}
	out := run.Workspace{
		Kind: run.WorkspaceGit, Source: r.Root(), Base: base, Branch: branchOf(task, p.claim.RunID),
	}
	if err := p.begin(ctx, r, out, base); err != nil {
		return nil, err
	}
	return &out, p.first(ctx, r, def, &out, head, base)
}

// begin creates the branch of a run at a commit. One of an interrupted start at another commit has no work of a run.
func (p preparation) begin(ctx context.Context, r *git.Repo, out run.Workspace, at string) error {
	if err := hide(p.dir, r.Root()); err != nil {
		return err
	}
	if err := p.describe(ctx, out); err != nil {
		return err
	}
	err := r.CreateBranch(ctx, out.Branch, at)
	if other := (*git.BranchError)(nil); errors.As(err, &other) {
		if err := r.RemoveBranch(ctx, out.Branch, other.At); err != nil {
			return err
		}
		return r.CreateBranch(ctx, out.Branch, at)
	}
	return err
}

// describe records the repository beside the workspace: an interrupted start has nothing else that leads to the branch.
func (p preparation) describe(ctx context.Context, out run.Workspace) error {
	w, err := p.folders.Lock(ctx, p.folders.Path(out.Source, p.claim.RunID, ""))
	if err != nil {
		return err
	}
	return errors.Join(w.Describe(out.Source), w.Unlock(), p.link(out))
}

// link lets the run directory lead to the workspace.
func (p preparation) link(out run.Workspace) error {
	return p.dir.LinkWorkspace(p.folders.Path(out.Source, p.claim.RunID, ""))
}

// first writes the files of a commit and of its submodules to the workspace and stores them. What commit head has is no
// secret.
func (p preparation) first(ctx context.Context, r *git.Repo, def *Definition, out *run.Workspace,
	head, commit string) (err error) {
	rules := workspace.FirstRules(def.Plan)
	if rules.Tracked, err = r.Tracked(ctx, head); err != nil {
		return err
	}
	w, err := p.folders.Lock(ctx, p.folders.Path(out.Source, p.claim.RunID, ""))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Unlock()) }()
	if err := w.Discard(); err != nil {
		return err
	}
	if err := r.CheckOut(ctx, commit, w.Dir); err != nil {
		return err
	}
	submodules, err := r.Submodules(ctx, commit)
	if err != nil {
		return err
	}
	out.Submodules = nil
	for _, sub := range submodules {
		out.Submodules = append(out.Submodules, sub.Path)
		if sub.Missing() {
			continue
		}
		if err := sub.CheckOut(ctx, w.Dir); err != nil {
			return err
		}
		tracked, err := sub.Tracked(ctx)
		if err != nil {
			return err
		}
		rules.Tracked = append(rules.Tracked, tracked...)
	}
	saved, err := w.Save(ctx, p.s, rules)
	if err != nil {
		return fmt.Errorf("store the workspace %s: %w", w.Dir, err)
	}
	def.Warnings = append(def.Warnings, missing(r, submodules)...)
	begins(def, out, saved)
	return nil
}

// SubmoduleWarnings names the submodules that a run of a definition would lack. A source that cannot be read has no
// warnings: a run reports that.
func (d Definition) SubmoduleWarnings(ctx context.Context) []string {
	if repositoryOf(d) == "" {
		return nil
	}
	r, err := git.Open(ctx, repositoryOf(d))
	if err != nil {
		return nil
	}
	submodules, err := r.Submodules(ctx, "HEAD")
	if err != nil {
		return nil
	}
	return missing(r, submodules)
}

// missing names the submodules that a workspace lacks.
func missing(r *git.Repo, submodules []git.Submodule) []string {
	var names []string
	for _, sub := range submodules {
		if sub.Missing() {
			names = append(names, sub.Path)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the workspace lacks submodules that are not initialised in %s: %s; to have them, run: %s",
		r.Root(), few(names), shell.Line("git", "-C", r.Root(), "submodule", "update", "--init", "--recursive"))}
}

// maxWords is the maximum length of the words of a task in a name.
const maxWords = 40

// taskWords are the first words of a task as a name: add-a-json-flag.
func taskWords(task string) (name string) {
	for _, w := range strings.FieldsFunc(strings.ToLower(task), func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		if len(name)+len(w) < maxWords {
			name = strings.TrimPrefix(name+"-"+w, "-")
		}
	}
	return name
}

// branchOf names the branch of a run after its task.
func branchOf(task, runID string) string {
	return git.BranchPrefix + strings.TrimPrefix(taskWords(task)+"-"+runID[:min(8, len(runID))], "-")
}

// begins sets the first tree of a run, and warns of files left out of it.
func begins(def *Definition, w *run.Workspace, saved tree.Saved) {
	w.Tree = workspace.Blob(saved)
	def.Warnings = append(append(def.Warnings, workspace.LeftOut(saved)...),
		unprotected(def.Plan.Workspace.Protect, saved.Tree)...)
}

// hide excludes a run directory inside the source's checkout from git.
func hide(dir rundir.Dir, root string) error {
	if _, inside := within(root, dir.Root); !inside {
		return nil
	}
	return dir.HideFromGit()
}
