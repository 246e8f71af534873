package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/pass"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// guarded is what a pass left in the workspace, with the protected files as they were.
type guarded struct {
	tree     *run.Blob // nil: the pass changes no workspace
	tampered []tree.Change
}

// guard restores the protected files that a pass changed. They are as the pass got them: an operator's own changes to
// them are part of that.
func (j evaluation) guard() (guarded, error) {
	if j.role.Gives != pipeline.GivesChanges || j.ans.Tree == nil || j.in.Tree == nil {
		return guarded{}, nil
	}
	g := guarded{tree: j.ans.Tree}
	w, of := j.plan.Workspace, j.in.Tree.Workspace
	protects := w != nil && len(w.Protect)+len(of.Definition) > 0 && j.role.Protected()
	if !protects && len(of.Submodules) == 0 {
		return g, nil
	}
	restored, tampered, err := restoreTree(j.ctx, j.s, j.in.Tree.Tree, *j.ans.Tree, func(name string, folder bool) bool {
		return of.InSubmodule(name) ||
			protects && (w.Protect.Fits(name, folder) || slices.Contains(of.Definition, name))
	})
	return guarded{tree: &restored, tampered: tampered}, err
}

// restoreTree returns the tree after with the protected paths as they are in before, and what that undoes.
func restoreTree(ctx context.Context, s *store.Store, before, after run.Blob,
	protected func(name string, folder bool) bool) (run.Blob, []tree.Change, error) {
	if before.Digest == after.Digest {
		return after, nil, nil
	}
	was, err := tree.Load(ctx, s, store.Digest(before.Digest))
	if err != nil {
		return after, nil, err
	}
	is, err := tree.Load(ctx, s, store.Digest(after.Digest))
	if err != nil {
		return after, nil, err
	}
	restored, undone := tree.Restore(was, is, protected)
	if len(undone) == 0 {
		return after, nil, nil
	}
	return workspace.Blob(tree.Saved{Digest: restored.Digest(), Tree: restored}), undone, tree.Put(ctx, s, restored)
}

// tamperedFiles describes changes of protected files for an event.
func (j evaluation) tamperedFiles(changes []tree.Change) *run.Tampered {
	if len(changes) == 0 {
		return nil
	}
	t := run.Tampered{Step: stepKey(j.plan, j.in.At), Call: j.in.Call, Role: j.role.Name, Count: len(changes)}
	for _, c := range changes[:min(len(changes), run.MaxTampered)] {
		f := tamperedFile(c)
		f.Path, f.Old = shortened(f.Path), shortened(f.Old)
		t.First = append(t.First, f)
	}
	return &t
}

// tamperedFile describes a change of a protected file. A file that became something else was replaced.
func tamperedFile(c tree.Change) run.FileChange {
	f := fileChange(c)
	if c.Kind == tree.Changed && (!c.Before.IsFile() || !c.After.IsFile()) {
		f.Kind = "replaced"
	}
	return f
}

func fileChange(c tree.Change) run.FileChange {
	return run.FileChange{
		Path: strings.ToValidUTF8(c.Path, "�"), Old: strings.ToValidUTF8(c.From, "�"), Kind: string(c.Kind),
		Before: string(c.Before.Digest), After: string(c.After.Digest),
	}
}

// find collects what was found out about the changes of the run: protected files that the pass changed, files outside
// the declared scope, files that changed ignore rules hide, and files that are left out for their names.
func (j evaluation) find(g guarded) (*run.Found, error) {
	review := pass.Review{Blockers: []pass.Finding{}, Gaps: []pass.Finding{}}
	add := func(severity, file, text string) {
		review.Findings = append(review.Findings, pass.Finding{Severity: severity, File: file, Text: text})
	}
	for _, c := range g.tampered {
		f := tamperedFile(c)
		file := f.Path
		if f.Old != "" {
			file = f.Old
		}
		what := "a protected file"
		if j.in.Tree.Workspace.InSubmodule(file) {
			what = "a file of a submodule"
		}
		add("tampered", file, what+" that "+j.role.Name+" changed ("+f.Kind+"); it was restored")
	}
	outside, err := j.outside(g.tree)
	if err != nil {
		return nil, err
	}
	found := run.Found{}
	for _, name := range outside {
		add("scope", name, "changed outside the scope that "+j.in.Scope.Role+" declared")
	}
	if len(outside) > 0 {
		found.Scope, found.Count, found.Outside = j.in.Scope.Role, len(outside), firstFound(outside)
	}
	hidden, err := j.hidden(g.tree)
	if err != nil {
		return nil, err
	}
	found.Hidden, found.HiddenCount = firstFound(hidden), len(hidden)
	for _, name := range found.Hidden {
		add("hidden", name, "ignore rules that the run changed hide it, and it is still part of the work")
	}
	if more := len(hidden) - len(found.Hidden); more > 0 {
		add("hidden", "", fmt.Sprintf("%d more", more))
	}
	for _, left := range j.ans.Skipped {
		if left.Reason == string(tree.ReasonName) {
			add("name", left.Path, "left out of the work: git or another system refuses its name, or it differs from another "+
				"only in case")
			found.Refused = append(found.Refused, left.Path)
		}
	}
	found.Refused = firstFound(found.Refused)
	if len(review.Findings) == 0 {
		return nil, nil
	}
	stored, err := j.a.storeReview(j.ctx, j.s, &review)
	found.Findings = stored
	return &found, err
}

// firstFound returns the first of some files, for an event.
func firstFound(files []string) (first []string) {
	for _, name := range files[:min(len(files), run.MaxFound)] {
		first = append(first, shortened(strings.ToValidUTF8(name, "�")))
	}
	return first
}

// hidden lists the files of the tree that its ignore rules hide, and that those at the start did not. They stay tracked:
// what is ignored is decided by the tree that a pass gets.
func (j evaluation) hidden(now *run.Blob) ([]string, error) {
	if now == nil || j.in.Tree.Workspace.Kind != run.WorkspaceGit || j.in.Tree.Workspace.Tree.Digest == now.Digest {
		return nil, nil
	}
	before, err := tree.Load(j.ctx, j.s, store.Digest(j.in.Tree.Workspace.Tree.Digest))
	if err != nil {
		return nil, err
	}
	after, err := tree.Load(j.ctx, j.s, store.Digest(now.Digest))
	if err != nil {
		return nil, err
	}
	was, err := tree.ReadIgnores(j.ctx, j.s, before)
	if err != nil {
		return nil, err
	}
	is, err := tree.ReadIgnores(j.ctx, j.s, after)
	if err != nil || maps.Equal(was.Files, is.Files) {
		return nil, err
	}
	return after.Hidden(was, is), nil
}

// outside lists the files that are not as they were when the scope was declared, and that the scope does not have.
func (j evaluation) outside(now *run.Blob) ([]string, error) {
	scope := j.in.Scope
	if scope == nil || now == nil || scope.Tree == "" || scope.Tree == now.Digest {
		return nil, nil
	}
	raw, err := j.s.Get(j.ctx, store.Digest(scope.Digest))
	if err != nil {
		return nil, err
	}
	var paths pipeline.Paths
	if err := json.Unmarshal(raw, &paths); err != nil {
		return nil, err
	}
	before, err := tree.Load(j.ctx, j.s, store.Digest(scope.Tree))
	if err != nil {
		return nil, err
	}
	after, err := tree.Load(j.ctx, j.s, store.Digest(now.Digest))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range tree.Diff(before, after) {
		folder := c.After.Mode == tree.ModeFolder || c.Before.Mode == tree.ModeFolder
		for _, name := range []string{c.Path, c.From} {
			if name != "" && !folder && !paths.Covers(name, false) {
				names = append(names, strings.ToValidUTF8(name, "�"))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// scope stores the paths that a reply declares.
func (j evaluation) scope() (*run.Scope, error) {
	paths := j.ans.Read.Scope
	if len(paths) == 0 {
		return nil, nil
	}
	raw, err := json.Marshal(paths)
	if err != nil {
		return nil, err
	}
	b, err := j.a.storeText(j.ctx, j.s, string(raw)+"\n")
	s := run.Scope{Role: j.role.Name, Digest: b.Digest, Count: len(paths)}
	for _, p := range paths[:min(len(paths), run.MaxScope)] {
		s.Paths = append(s.Paths, shortened(p))
	}
	return &s, err
}
