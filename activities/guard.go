package activities

import (
	"encoding/json"
	"fmt"
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
	restored, tampered, err := workspace.Protect(j.ctx, j.s, j.in.Tree.Tree, *j.ans.Tree, func(name string, folder bool) bool {
		return of.InSubmodule(name) ||
			protects && (w.Protect.Fits(name, folder) || slices.Contains(of.Definition, name))
	})
	return guarded{tree: &restored, tampered: tampered}, err
}

// tamperedFiles describes changes of protected files for an event.
func (j evaluation) tamperedFiles(changes []tree.Change) *run.Tampered {
	if len(changes) == 0 {
		return nil
	}
	t := run.Tampered{Step: j.step.Key, Call: j.in.Call, Role: j.role.Name, Count: len(changes)}
	for _, c := range changes[:min(len(changes), run.MaxTampered)] {
		f := tamperedFile(c)
		f.Path, f.Old = shortened(f.Path), shortened(f.Old)
		t.First = append(t.First, f)
	}
	return &t
}

// tamperedFile describes a change of a protected file. A file that became something else was replaced.
func tamperedFile(c tree.Change) run.FileChange {
	f := workspace.FileChange(c)
	if c.Kind == tree.Changed && (!c.Before.IsFile() || !c.After.IsFile()) {
		f.Kind = "replaced"
	}
	return f
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
	of := j.in.Tree
	if now == nil || of.Workspace.Kind != run.WorkspaceGit || of.Workspace.Tree.Digest == now.Digest {
		return nil, nil
	}
	return workspace.Hidden(j.ctx, j.s, of.Workspace.Tree, *now)
}

// outside lists the files that are not as they were when the scope was declared, and that the scope does not have.
func (j evaluation) outside(now *run.Blob) ([]string, error) {
	scope := j.in.Scope
	if scope == nil || now == nil || scope.Tree == "" || scope.Tree == now.Digest {
		return nil, nil
	}
	var paths pipeline.Paths
	if err := j.s.GetJSON(j.ctx, store.Digest(scope.Digest), &paths); err != nil {
		return nil, err
	}
	return workspace.Outside(j.ctx, j.s, run.Blob{Digest: scope.Tree}, *now, paths)
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
