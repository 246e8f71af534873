package operations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/git"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// A fork of a run with projects has copies of the runs of its projects, in folders of its directory. A copy has the
// work that its project had when the checkpoint was made: of a project that was done it makes no call, one that worked
// continues at its newest checkpoint, and one that had not begun begins. Without a named checkpoint, the fork copies
// the projects as they are now.

var errOtherProjects = errors.New("the other pipeline must have the same projects, with the same sources and needs")

// sameProjects refuses a definition with other projects than those of the run.
func sameProjects(old, other []pipeline.Project) error {
	same := func(a, b pipeline.Project) bool { return a.Alias == b.Alias && slices.Equal(a.Needs, b.Needs) }
	if slices.EqualFunc(old, other, same) {
		return nil
	}
	return errOtherProjects
}

// sameSource refuses a definition of a project that works on something else than the run's project does.
func (m member) sameSource(ctx context.Context, ref run.ProjectRef) error {
	source, err := sourceOf(m.Definition)
	if err == nil && m.Plan.Workspace.Git != "" {
		var r *git.Repo
		if r, err = git.Open(ctx, source); err == nil {
			source = r.Root()
		}
	}
	if err != nil {
		return err
	}
	if source != ref.Source {
		return fmt.Errorf("the other pipeline works on %s, and the run on %s", source, ref.Source)
	}
	return nil
}

// withCopies returns the input of a new run. For a run with projects it copies the runs of those; begun is to be
// removed if the run is refused.
func (o Operator) withCopies(ctx context.Context, s *store.Store, dir rundir.Dir, b Branching,
	r branched) (in contract.Input, begun []*beginning, err error) {
	size, declared := projectSizes{}, r.start.Projects
	r.start.Projects = nil
	in = o.target(dir, r.claim, r.start, r.plan.TimeScale)
	for _, ref := range declared {
		p := projectCopy{Branching: b.ofProject(r, ref.Alias), of: r.claim, from: r.from, ref: ref}
		if b.From != "" {
			p.at = r.at.State.Checkpoint.TS
		}
		if b.Def != nil {
			err = o.adopts(ctx, *b.Def, &p)
		}
		var started *beginning
		var project contract.ChildInput
		if err == nil {
			started, project, err = o.copyProject(ctx, s, projectDir(dir, ref.Alias), &p)
		}
		if started != nil {
			begun = append(begun, started)
		}
		if err == nil {
			err = size.add(project)
		}
		if err != nil {
			return in, begun, fmt.Errorf("project %s: %w", ref.Alias, err)
		}
		in.Start.Projects, in.Projects = append(in.Start.Projects, p.ref), append(in.Projects, project)
	}
	return in, begun, nil
}

// ofProject are the changes of a fork that apply to the run of a project. The run's task is that of projects without
// their own.
func (b Branching) ofProject(r branched, alias string) Branching {
	of := Branching{Mode: b.Mode, Model: b.Model, Agent: b.Agent, Warn: b.Warn, Task: b.Task}
	i := slices.IndexFunc(r.plan.Projects, func(p pipeline.Project) bool { return p.Alias == alias })
	if i < 0 {
		return of
	}
	switch own := r.plan.Projects[i].Task; {
	case b.Def != nil:
		of.Task = cmp.Or(own, r.start.Task)
	case own != "":
		of.Task = ""
	}
	return of
}

// projectCopy is what the copy of a project's run is made from.
type projectCopy struct {
	Branching
	of   run.Claim // of the new run with the projects
	from Origin    // of the run with the projects that is copied
	ref  run.ProjectRef
	at   string // time of the checkpoint; empty: now
}

// adopts makes a project's run adopt the definition that another definition of the run with the projects names.
func (o Operator) adopts(ctx context.Context, def Definition, p *projectCopy) error {
	i := slices.IndexFunc(def.Plan.Projects, func(d pipeline.Project) bool { return d.Alias == p.ref.Alias })
	if i < 0 {
		return errOtherProjects
	}
	m, problems := o.member(ctx, def, def.Plan.Projects[i])
	if len(problems) > 0 {
		return problems
	}
	p.Def = &m.Definition
	return errors.Join(o.allows(m.Plan), m.sameSource(ctx, p.ref))
}

// copyProject claims the directory of a project, creates its checkout, and returns the input of its run.
func (o Operator) copyProject(ctx context.Context, s *store.Store, dir rundir.Dir,
	p *projectCopy) (begun *beginning, in contract.ChildInput, err error) {
	of := run.Membership{RunID: p.of.RunID, Alias: p.ref.Alias}
	from, given, c, err := o.projectAt(ctx, s, dir, p)
	if err != nil {
		return nil, in, err
	}
	if p.Def != nil && p.Def.Plan.ConfigHash == from.Start.ConfigHash {
		p.Def = nil
	}
	start, plan, err := o.branchStart(ctx, s, from, p.Branching, c)
	if err != nil {
		return nil, in, err
	}
	claim, state := p.of, c.State
	claim.Pipeline, claim.ConfigHash, claim.ThreadID = start.Pipeline, start.ConfigHash, from.Start.ThreadID
	if c.ID != "" {
		id := run.UnnamedID(c.Seq) // a later checkpoint may have the same name
		claim.SourceRun, claim.SourceCheckpoint = from.RunID, id
		start.Source = &run.Source{RunID: from.RunID, Checkpoint: id, Seq: c.Seq, Chain: c.Chain, Mode: p.Mode,
			Generation: c.State.Generation}
	} else { // it begins as the other one would, which may be a copy itself
		claim.SourceRun, claim.SourceCheckpoint = given.Claim.SourceRun, given.Claim.SourceCheckpoint
		claim.Mode, start.Source = given.Claim.Mode, given.Start.Source
		if claim.SourceRun == "" {
			claim.ThreadID = "" // it begins a thread
		}
		if given.Start.State == nil {
			start.State = nil
		}
		state.Tree, state.Commit = &start.Workspace.Tree, cmp.Or(start.Workspace.Commit, start.Workspace.Base)
	}
	repository := ""
	if start.Workspace.Kind == run.WorkspaceGit {
		repository = start.Workspace.Source
	}
	if claim, begun, err = o.takeForProject(dir, claim, of, repository); err != nil {
		return begun, in, err
	}
	o.identify(ctx, claim, plan.Agents, &start)
	if start.Workspace, err = o.branchWorkspace(ctx, dir, claim, plan.Pipeline, *start.Workspace, state); err != nil {
		return begun, in, err
	}
	in, err = o.declared(ctx, &p.ref, o.target(dir, claim, start, plan.TimeScale))
	return begun, in, err
}

// projectAt returns the run of a project, the input that it was given, and its newest checkpoint at the time of the
// copy. The checkpoint has no ID if the run had not begun then; its state is what the run was to begin with.
func (o Operator) projectAt(ctx context.Context, s *store.Store, dir rundir.Dir,
	p *projectCopy) (from Origin, given contract.Input, c run.Checkpoint, err error) {
	if err := s.GetJSON(ctx, store.Digest(p.ref.Input), &given); err != nil {
		return from, given, c, fmt.Errorf("read the input of its run: %w", err)
	}
	if from, err = o.projectOrigin(ctx, s, p); err != nil {
		return from, given, c, err
	}
	if c, err = p.checkpoint(ctx, s, dir, from); err != nil {
		return from, given, c, err
	}
	if c.ID == "" {
		from.Start = given.Start
		if given.Start.State != nil {
			c.State = *given.Start.State
		}
	}
	from.Start.Budget = given.Start.Budget // without the bound by what the run with the projects had left
	return from, given, c, nil
}

// projectOrigin finds the run of a project in the directory of the run with the projects, or else in the store. Its
// start is empty if neither has an event of it.
func (o Operator) projectOrigin(ctx context.Context, s *store.Store, p *projectCopy) (Origin, error) {
	from := Origin{RunID: p.ref.RunID, Store: p.from.Store}
	if p.from.Dir != nil {
		dir := projectDir(*p.from.Dir, p.ref.Alias)
		claim, err := dir.Claim()
		if err == nil && claim.RunID == p.ref.RunID {
			from.Dir = &dir
			now, err := dir.Now()
			if err == nil && now.Tail.Seq > 0 {
				from.Start, err = dir.First()
			}
			return from, err
		}
		if err != nil && !errors.Is(err, rundir.ErrNoRun) {
			return from, err
		}
	}
	first, err := rundir.LoadCheckpoint(ctx, blobs.Of(s), from.RunID, run.UnnamedID(1))
	if none := (*rundir.NoCheckpointError)(nil); errors.As(err, &none) {
		return from, nil
	}
	if err == nil && first.Start != nil {
		from.Start = *first.Start
	}
	return from, err
}

// checkpoint returns the newest checkpoint of a project's run at the time of the copy; without an ID: it had none. An
// earlier call that has claimed the directory has chosen it.
func (p *projectCopy) checkpoint(ctx context.Context, s *store.Store, dir rundir.Dir,
	from Origin) (c run.Checkpoint, err error) {
	var names, journal rundir.Names = blobs.Of(s), nil
	if from.Dir != nil {
		if journal, err = rundir.Checkpoints(*from.Dir); err != nil {
			return c, err
		}
		names = journal
	}
	claim, err := dir.Claim()
	switch {
	case err == nil && claim.MemberOf.RunID == p.of.RunID && claim.SourceRun == from.RunID:
		return restored(ctx, s, from, journal, claim.SourceCheckpoint, p.Branching)
	case err == nil && claim.MemberOf.RunID == p.of.RunID:
		return c, nil
	}
	id, err := newestUntil(ctx, names, from.RunID, p.at)
	if id == "" || err != nil {
		return c, err
	}
	return restored(ctx, s, from, journal, id, p.Branching)
}

// newestUntil returns the newest checkpoint of a run that was made until a time. A damaged one has the time of the one
// before.
func newestUntil(ctx context.Context, names rundir.Names, runID, until string) (id string, err error) {
	marks, err := rundir.Marks(ctx, names, runID)
	if err != nil {
		return "", err
	}
	n := len(marks)
	if until != "" {
		n = sort.Search(len(marks), func(i int) bool {
			for _, m := range slices.Backward(marks[:i+1]) {
				c, lerr := m.Load(ctx, names, runID, m.ID)
				switch {
				case lerr == nil:
					return c.State.Checkpoint.TS > until
				case !errors.Is(lerr, disk.ErrDamaged):
					err = lerr
					return false
				}
			}
			return false
		})
	}
	if n == 0 || err != nil {
		return "", err
	}
	return run.UnnamedID(marks[n-1].Seq), nil
}
