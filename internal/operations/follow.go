package operations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/passbook-run/passbook/internal/git"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Modes of a follow-up.
const (
	FollowUp    = "follow_up"     // the same work continues with a new task
	FromRunPlan = "from_run_plan" // the plan of the run is carried out
)

// Follow is the run that a new one follows up, and what that takes over from it.
type Follow struct {
	Mode      string
	Task      string // of the run; empty: it had none
	Dir       rundir.Dir
	Claim     run.Claim
	Workspace *rundir.Workspace // as the run left it
	Tree      *run.Blob         // of the workspace
	Delivered bool
	Artifact  *run.Blob
	From      *run.Place
	Replies   []run.Reply
	Brief     string // of the run, for prompts
}

// FollowRun returns what a run of a definition takes over from an earlier run, which must have ended.
func FollowRun(dir rundir.Dir, mode string, def Definition) (*Follow, error) {
	claim, err := dir.Claim()
	if err != nil {
		return nil, err
	}
	now, err := dir.Now()
	if err != nil {
		return nil, err
	}
	s := now.State
	if err := run.May(run.NewEffectiveStatus(s.Status, run.LiveUnknown, "").Status, run.FollowUp, s.Terms()); err != nil {
		return nil, err
	}
	meta, err := dir.Meta()
	if err != nil {
		return nil, err
	}
	f := &Follow{Mode: mode, Dir: dir, Claim: claim, Workspace: meta.Workspace, Tree: s.Tree, Artifact: s.Artifact,
		Delivered: s.Delivery != nil && s.Delivery.Delivered}
	if s.Task != claim.Pipeline {
		f.Task = s.Task
	}
	if mode == FromRunPlan && len(claim.Projects) > 0 {
		return nil, &RefusedError{Verb: "run", Why: "the run has projects, and each has its own plan: start from the run " +
			"of a project (RUN/PROJECT)"}
	}
	if mode == FromRunPlan {
		return f, f.skip(def, meta.History, s.Replies)
	}
	f.Brief, err = briefOf(dir, claim, s)
	return f, err
}

// ofProject returns what the run of a project takes over from the project's earlier run. Nil: the earlier run had not
// begun, or had no such project.
func (f *Follow) ofProject(def Definition, alias string) (*Follow, error) {
	if f == nil {
		return nil, nil
	}
	dir := projectDir(f.Dir, alias)
	if tail, err := dir.Tail(); err != nil || tail.Seq == 0 {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	return FollowRun(dir, f.Mode, def)
}

// skip starts after the stages that the earlier run completed, and returns their replies.
func (f *Follow) skip(def Definition, h run.History, replies []run.Reply) error {
	done := func(stage string) bool {
		return slices.ContainsFunc(h.Completed, func(m run.PhaseMark) bool { return m.Phase == stage })
	}
	n := 0
	for n < len(def.Plan.Stages)-1 && done(def.Plan.Stages[n].Name) {
		n++
	}
	if n == 0 {
		return &SourceError{Source: "run " + f.Claim.RunID,
			Why: fmt.Sprintf("it has not completed the first stage of this pipeline, %s: there is no plan to start with",
				def.Plan.Stages[0].Name)}
	}
	f.From = &run.Place{Stage: n, Round: 1}
	for _, r := range replies {
		if slices.ContainsFunc(def.Plan.Stages[:n], func(s pipeline.PlanStage) bool { return s.Name == r.Phase }) {
			f.Replies = append(f.Replies, r)
		}
	}
	return nil
}

// sameSource refuses another source: a follow-up begins with the result of the earlier run.
func (f *Follow) sameSource(ctx context.Context, def Definition) error {
	const begins = "a follow-up begins with the result of run %s, which worked on %s: "
	w := f.Workspace
	if def.Dirty != "" {
		return &SourceError{Source: "--dirty " + def.Dirty,
			Why: fmt.Sprintf(begins+"drop --dirty", f.Claim.RunID, w.Source)}
	}
	if def.WorkOn == "" {
		return nil
	}
	source, err := givenSource(ctx, def)
	if err != nil || source == w.Source {
		return err
	}
	return &SourceError{Source: source, Why: fmt.Sprintf(begins+"drop --source, or start a run without --follow-up",
		f.Claim.RunID, w.Source)}
}

// check reports why a follow-up cannot start with the earlier run's result, before anything is changed.
func (f *Follow) check(ctx context.Context, wants pipeline.Workspace) error {
	w := f.Workspace
	switch ofGit := w.Kind == run.WorkspaceGit; {
	case ofGit && wants.Git == "":
		return &SourceError{Source: w.Source,
			Why: fmt.Sprintf("run %s worked on a git repository, and the pipeline works on a folder: name a "+
				"pipeline with workspace: {git: worktree}", f.Claim.RunID)}
	case !ofGit && wants.Git != "":
		return &SourceError{Source: w.Source,
			Why: fmt.Sprintf("run %s worked on a folder, and the pipeline works on a git repository: name a "+
				"pipeline with workspace: {dir: FOLDER}", f.Claim.RunID)}
	case ofGit:
		if _, err := git.Open(ctx, w.Source); err != nil {
			return &SourceError{Source: w.Source,
				Why: fmt.Sprintf("the result of run %s is in this repository: %v", f.Claim.RunID, err)}
		}
		return nil
	}
	s, err := OpenStore(ctx, f.Claim.Store)
	if err != nil {
		return err
	}
	if f.Tree == nil {
		return &SourceError{Source: w.Source, Why: fmt.Sprintf("run %s has recorded no tree of the folder",
			f.Claim.RunID)}
	}
	if _, err := tree.Load(ctx, s, store.Digest(f.Tree.Digest)); err != nil {
		return &SourceError{Source: w.Source,
			Why: fmt.Sprintf("read the result of run %s from the store: %v", f.Claim.RunID, err)}
	}
	return nil
}

// prepare begins with the result of the earlier run. Undelivered changes become part of the follow-up's changes.
func (f *Follow) prepare(ctx context.Context, p preparation, def *Definition) (*run.Workspace, error) {
	w := f.Workspace
	if w.Kind != run.WorkspaceGit {
		out := run.Workspace{Kind: run.WorkspaceDir, Source: w.Source, Tree: *f.Tree}
		return &out, p.link(out)
	}
	r, err := git.Open(ctx, w.Source)
	if err != nil {
		return nil, err
	}
	at := cmp.Or(w.Commit, w.Base)
	out := run.Workspace{Kind: run.WorkspaceGit, Source: w.Source, Base: at, Branch: branchOf(taskOf(*def), p.claim.RunID),
		Submodules: w.Submodules}
	if err := p.begin(ctx, r, out, at); err != nil {
		return nil, err
	}
	if f.Tree != nil {
		out.Tree = *f.Tree
	} else if err := p.first(ctx, r, def, &out, at, at); err != nil {
		return nil, err
	}
	if !f.Delivered && at != w.Base {
		out.Base, out.Commit = w.Base, at
	}
	return &out, nil
}
