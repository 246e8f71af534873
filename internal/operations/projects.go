package operations

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/passbook-run/passbook/internal/git"
	"github.com/passbook-run/passbook/internal/price"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// maxProjectInputs bounds the inputs of all projects: they are part of the input of the run, whose payload Temporal
// bounds.
const maxProjectInputs = 400 << 10

// projectSizes is the size of the inputs of a run's projects.
type projectSizes struct{ bytes int }

// add refuses an input that exceeds the bound.
func (s *projectSizes) add(p contract.ChildInput) error {
	raw, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if s.bytes += len(raw); s.bytes > maxProjectInputs {
		return fmt.Errorf("project %s: the inputs of the projects have more than %d bytes; shorten their tasks, or run "+
			"fewer projects", p.Alias, maxProjectInputs)
	}
	return nil
}

// member is the definition of a project's run.
type member struct {
	pipeline.Project
	Definition
}

// members loads the definitions of a run's projects, with all problems of these and of their sources.
func (o Operator) members(ctx context.Context, def Definition) (all []member, problems pipeline.Problems) {
	for _, p := range def.Plan.Projects {
		m, found := o.member(ctx, def, p)
		if problems = append(problems, found...); len(found) == 0 {
			all = append(all, m)
		}
	}
	return all, problems
}

// member loads the definition of a project. Uncommitted changes of its source are checked by [CheckSource].
func (o Operator) member(ctx context.Context, def Definition, p pipeline.Project) (member, pipeline.Problems) {
	at := []string{"projects", p.Alias, "pipeline"}
	if def.Home == "" {
		return member{}, pipeline.Problems{def.problem(at, "needs a folder, and this definition lies in none")}
	}
	file := filepath.Join(filepath.Dir(def.Parsed.File), filepath.FromSlash(p.Pipeline))
	d, err := LoadFile(file, price.With(o.Settings.Prices)...)
	var all pipeline.Problems
	switch {
	case errors.As(err, &all):
	case err != nil:
		all = pipeline.Problems{def.problem(at, err.Error())}
	case len(d.Plan.Projects) > 0:
		all = pipeline.Problems{def.problem(at, "names "+p.Pipeline+", which has projects too; a project's pipeline cannot")}
	case d.Plan.Workspace == nil:
		all = pipeline.Problems{def.problem(at, "names "+p.Pipeline+", which has no workspace; a project's pipeline "+
			"works on one")}
	case pipeline.PlanOnly(d.Plan.Kind):
		all = pipeline.Problems{def.problem(at, "names "+p.Pipeline+", which is of kind "+d.Plan.Kind+
			"; a project's pipeline changes files")}
	}
	source := filepath.FromSlash(p.Source)
	if !filepath.IsAbs(source) {
		source = filepath.Join(def.Home, source)
	}
	source, err = filepath.EvalSymlinks(source)
	if err == nil && d.Plan != nil && d.Plan.Workspace != nil && d.Plan.Workspace.Git != "" {
		_, err = git.Open(ctx, source)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.New("there is no such folder; create it, or correct the path")
	}
	if err != nil {
		all = append(all, def.problem([]string{"projects", p.Alias, "source"}, fmt.Sprintf("names %s: %v", p.Source, err)))
	}
	if len(all) > 0 {
		return member{}, all
	}
	d.Task, d.WorkOn = cmp.Or(p.Task, def.Task), source
	if d.Follow, err = def.Follow.ofProject(d, p.Alias); err != nil {
		return member{}, pipeline.Problems{def.problem([]string{"projects", p.Alias}, err.Error())}
	}
	if def.Follow != nil {
		d.Task = def.Task
	}
	if d.Follow != nil {
		d.WorkOn = "" // that of the earlier run
	}
	d.Plan.Unattended = cmp.Or(d.Plan.Unattended, def.Plan.Unattended)
	if def.Dirty != "" {
		d.Dirty, d.Plan.Workspace.Dirty = def.Dirty, def.Dirty
	}
	return member{p, d}, nil
}

// projectDir is the directory of a project's run.
func projectDir(dir rundir.Dir, alias string) rundir.Dir {
	dir = rundir.At(filepath.Join(dir.Root, alias))
	return dir
}

// withProjects claims the directory of each project, creates its checkout, and adds its input to that of the run. What
// an earlier start of the same run has claimed is adopted. begun is to be removed if the run is refused.
func (o Operator) withProjects(ctx context.Context, def *Definition, dir rundir.Dir, claim run.Claim,
	in contract.Input) (out contract.Input, begun []*beginning, err error) {
	all, problems := o.members(ctx, *def)
	if len(problems) > 0 {
		return in, nil, problems
	}
	size := projectSizes{}
	for _, m := range all {
		b, ref, p, err := o.claimProject(ctx, m, projectDir(dir, m.Alias), claim, in.Start.CreatedAt)
		if b != nil {
			begun = append(begun, b)
		}
		if err != nil {
			return in, begun, fmt.Errorf("project %s: %w", m.Alias, err)
		}
		if err := size.add(p); err != nil {
			return in, begun, err
		}
		in.Start.Projects, in.Projects = append(in.Start.Projects, ref), append(in.Projects, p)
	}
	in.Start.RunKind = run.RunKindCross
	return in, begun, nil
}

func (o Operator) claimProject(ctx context.Context, m member, dir rundir.Dir, parent run.Claim,
	at string) (*beginning, run.ProjectRef, contract.ChildInput, error) {
	ref := run.ProjectRef{Alias: m.Alias, Needs: m.Needs}
	none := contract.ChildInput{}
	stored, err := upload(ctx, m.Definition, dir, parent.Store)
	if err != nil {
		return nil, ref, none, err
	}
	claim := parent
	claim.CreatedAt, claim.Pipeline, claim.ConfigHash, claim.ThreadID = at, m.Plan.Pipeline, m.Plan.ConfigHash, ""
	if m.Follow != nil {
		claim.ThreadID = m.Follow.Claim.ThreadID
	}
	claim, begun, err := o.takeForProject(dir, claim, run.Membership{RunID: parent.RunID, Alias: m.Alias},
		repositoryOf(m.Definition))
	if err != nil {
		return begun, ref, none, err
	}
	if stored.Workspace, err = o.prepareIn(ctx, &m.Definition, dir, claim); err != nil {
		return begun, ref, none, err
	}
	p, err := o.declared(ctx, &ref, o.input(ctx, m.Definition, dir, claim, stored))
	return begun, ref, p, err
}

// takeForProject claims the directory of a project for a new run, or adopts the claim of an earlier call.
func (o Operator) takeForProject(dir rundir.Dir, claim run.Claim, of run.Membership,
	repository string) (run.Claim, *beginning, error) {
	there, err := dir.Claim()
	switch {
	case err == nil && there.MemberOf != of:
		return there, nil, &LiveError{Dir: dir.Root, RunID: there.RunID, What: "a project needs a separate directory"}
	case err == nil:
		return there, nil, index(dir.Disk, o.Settings.StateDir, there.RunID, dir.Root)
	case !errors.Is(err, rundir.ErrNoRun):
		return claim, nil, err
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return claim, nil, err
	}
	claim.RunID, claim.MemberOf, claim.Projects = id.String(), of, nil
	claim.ThreadID = cmp.Or(claim.ThreadID, claim.RunID)
	begun, err := o.take(dir, claim)
	if err != nil {
		return claim, nil, err
	}
	begun.source = repository
	return claim, begun, index(dir.Disk, o.Settings.StateDir, claim.RunID, dir.Root)
}

// declared completes the declaration of a project, and returns the input with which the run starts it.
func (o Operator) declared(ctx context.Context, ref *run.ProjectRef,
	in contract.Input) (p contract.ChildInput, err error) {
	in.Start.MemberOf = &in.Claim.MemberOf
	in = o.hiddenInput(in)
	ref.RunID, ref.Source = in.Claim.RunID, in.Start.Workspace.Source
	if ref.Input, err = storeInput(ctx, in); err != nil {
		return p, err
	}
	return o.projectInput(ctx, ref.Alias, in)
}

// storeInput stores the input of a project.
func storeInput(ctx context.Context, in contract.Input) (string, error) {
	s, err := OpenStore(ctx, in.Target.Store)
	if err != nil {
		return "", err
	}
	digest, err := s.PutJSON(ctx, in)
	return string(digest), err
}

// projectInput is the input with which a run starts one of its projects.
func (o Operator) projectInput(ctx context.Context, alias string, in contract.Input) (contract.ChildInput, error) {
	in, opts, _, err := o.prepared(ctx, in)
	if err != nil {
		return contract.ChildInput{}, err
	}
	return contract.ChildInput{Alias: alias, Queue: opts.TaskQueue, Summary: opts.StaticSummary,
		Details: opts.StaticDetails, Memo: opts.Memo, Input: &in}, nil
}

// reopenedProjects returns the inputs of the projects for a new epoch of their run.
func (o Operator) reopenedProjects(ctx context.Context, s *store.Store, dir rundir.Dir,
	start run.RunStart) ([]contract.ChildInput, error) {
	var all []contract.ChildInput
	for _, ref := range start.Projects {
		var in contract.Input
		if err := s.GetJSON(ctx, store.Digest(ref.Input), &in); err != nil {
			return nil, fmt.Errorf("read the input of project %s: %w", ref.Alias, err)
		}
		in.Target.Dir = projectDir(dir, ref.Alias).Root
		p, err := o.projectInput(ctx, ref.Alias, in)
		if err != nil {
			return nil, fmt.Errorf("project %s: %w", ref.Alias, err)
		}
		all = append(all, p)
	}
	return all, nil
}

// removeRefused removes what the start of a refused run created for its projects.
func removeRefused(ctx context.Context, begun []*beginning, err error) error {
	for _, b := range begun {
		err = b.refused(ctx, err)
	}
	return err
}

// forwarded returns the directory of the project whose question a run forwards, and the message for it. A decision is
// made where the question was asked.
func forwarded(dir rundir.Dir, s run.State, m contract.Message) (rundir.Dir, contract.Message, bool) {
	q, open := s.Asks()
	if !open || q.Project == nil || m.ID != "" && m.ID != q.ID {
		return dir, m, false
	}
	m.ID, m.Implicit = q.Project.ID, m.ID == ""
	return projectDir(dir, q.Project.Alias), m, true
}

// projectsWait is how long an operation on all projects of a run may take for each.
const projectsWait = 20 * time.Second

// toProjects sends a message to each open project of a run: a pause or a resume of the run is one of all its projects.
// What a project refuses is a warning.
func (o Operator) toProjects(ctx context.Context, dir rundir.Dir, s run.State, verb string,
	m contract.Message) (warnings []string) {
	for _, p := range s.Projects {
		if p.Outcome.Rule().Ends || p.Outcome == run.ProjectPending {
			continue
		}
		wait, cancel := context.WithTimeout(ctx, projectsWait)
		_, err := o.SendUpdate(wait, projectDir(dir, p.Alias), verb, m)
		cancel()
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("project %s: %v", p.Alias, err))
		}
	}
	return warnings
}

// resumeChildren resumes the open projects and lanes of a run that a new epoch continues: those that were moved with its
// directory, and those that are paused, as by a pause of the run.
func (o Operator) resumeChildren(ctx context.Context, dir rundir.Dir, s run.State, r Reopening) (left []string) {
	r = Reopening{Note: r.Note, Force: r.Force, Reason: r.Reason, Now: r.Now}
	resume := func(name string, child rundir.Dir) {
		if err := o.resumeChild(ctx, child, r); err != nil {
			left = append(left, fmt.Sprintf("%s: %v", name, err))
		}
	}
	for _, p := range s.Projects {
		if !p.Outcome.Rule().Ends && p.Outcome != run.ProjectPending {
			resume("project "+p.Alias, projectDir(dir, p.Alias))
		}
	}
	for _, l := range dir.Lanes(s) {
		if l.Live != nil && !l.Live.Status.Closed() {
			resume("lane "+l.Name, rundir.At(l.Directory))
		}
	}
	return left
}

func (o Operator) resumeChild(ctx context.Context, dir rundir.Dir, r Reopening) error {
	claim, err := dir.Claim()
	if err != nil {
		return err
	}
	now, effective, err := o.Observe(ctx, dir, claim)
	if err != nil || effective.Liveness != run.LiveOpen {
		return err
	}
	where, err := o.moved(ctx, claim, dir)
	if paused := now.State.Status == run.Paused && now.State.Reason == run.UserRequested; err == nil && where == "" && !paused {
		return nil
	}
	_, err = o.Resume(ctx, dir, r)
	return err
}

// ProjectNames lists the names of the projects of a run as commands take them.
func ProjectNames(runID string, aliases []string) string {
	names := make([]string, len(aliases))
	for i, alias := range aliases {
		names[i] = runID + "/" + alias
	}
	return strings.Join(names, ", ")
}

// errOfProject refuses to start a run in the directory of a project.
func errOfProject(dir rundir.Dir, claim run.Claim) error {
	return &RefusedError{Verb: "run", Why: fmt.Sprintf("%s is the directory of project %s of run %s; nothing was "+
		"changed. Resume the project, or take another --output-dir", dir.Root, claim.MemberOf.Alias, claim.MemberOf.RunID)}
}

// errReplayOfProjects refuses to replay a run with projects.
func errReplayOfProjects() error {
	return &RefusedError{Verb: run.ModeReplay, Why: "the run has projects, whose deliveries its record lacks: fork it, " +
		"or replay the run of a project (RUN/PROJECT)"}
}
