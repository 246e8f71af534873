package operations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// A fork of a run with projects has copies of the runs of its projects, in folders of its directory. A copy has the
// work that its project had when the checkpoint was made: of a project that was done it makes no call, one that worked
// continues at its newest checkpoint, and one that had not begun begins. The fork of the newest checkpoint copies the
// projects as they are now.

// sameProjects refuses a definition with other projects than those of the run.
func sameProjects(old, other []pipeline.Project) error {
	same := func(a, b pipeline.Project) bool {
		return a.Alias == b.Alias && a.Source == b.Source && slices.Equal(a.Needs, b.Needs)
	}
	if slices.EqualFunc(old, other, same) {
		return nil
	}
	return errors.New("the other pipeline must have the same projects, with the same sources and needs")
}

// withCopies returns the input of a new run. For a run with projects it copies the runs of those; begun is to be
// removed if the run is refused.
func (o Operator) withCopies(ctx context.Context, s *store.Store, dir projector.Dir, b Branching,
	r branched) (in workflows.Input, begun []*beginning, err error) {
	var others []member
	if b.Def != nil {
		if others, err = o.members(ctx, *b.Def, dir); err != nil {
			return in, nil, err
		}
	}
	at := r.at.State.Checkpoint.TS
	if r.now {
		at = ""
	}
	size, declared := projectSizes{}, r.start.Projects
	r.start.Projects = nil
	in = o.target(dir, r.claim, r.start, r.plan.TimeScale)
	for _, ref := range declared {
		copied := projectCopy{Branching: b.ofProject(r.plan, ref.Alias), of: r.claim, ref: ref, at: at}
		if i := slices.IndexFunc(others, func(m member) bool { return m.Alias == ref.Alias }); i >= 0 {
			copied.Def = &others[i].Definition
		}
		started, p, err := o.copyProject(ctx, s, projectDir(dir, ref.Alias), &copied)
		if started != nil {
			begun = append(begun, started)
		}
		if err == nil {
			err = size.add(p)
		}
		if err != nil {
			return in, begun, fmt.Errorf("project %s: %w", ref.Alias, err)
		}
		in.Start.Projects, in.Projects = append(in.Start.Projects, copied.ref), append(in.Projects, p)
	}
	return in, begun, nil
}

// ofProject are the changes of a fork that apply to the run of a project. Another task is for projects without their
// own.
func (b Branching) ofProject(plan *pipeline.Plan, alias string) Branching {
	i := slices.IndexFunc(plan.Projects, func(p pipeline.Project) bool { return p.Alias == alias })
	of := Branching{Mode: b.Mode, Model: b.Model, Agent: b.Agent, Warn: b.Warn}
	if i >= 0 && plan.Projects[i].Task == "" {
		of.Task = b.Task
	}
	return of
}

// projectCopy is what the copy of a project's run is made from.
type projectCopy struct {
	Branching
	of  run.Claim // of the run with the projects
	ref run.ProjectRef
	at  string // time of the checkpoint; empty: now
}

// copyProject claims the directory of a project, creates its checkout, and returns the input of its run.
func (o Operator) copyProject(ctx context.Context, s *store.Store, dir projector.Dir,
	p *projectCopy) (begun *beginning, in workflows.ProjectInput, err error) {
	from, c, err := o.projectAt(ctx, s, p)
	if err != nil {
		return nil, in, err
	}
	start, plan, err := o.branchStart(ctx, s, from, p.Branching, c)
	if err != nil {
		return nil, in, err
	}
	claim := p.of
	claim.Pipeline, claim.ConfigHash, claim.ThreadID = start.Pipeline, start.ConfigHash, from.Start.ThreadID
	claim.SourceRun, claim.SourceCheckpoint = from.RunID, c.ID
	state := c.State
	if c.ID == "" {
		claim.SourceRun, claim.Mode, start.State, start.Source = "", "", nil, nil
		state.Tree, state.Commit = &start.Workspace.Tree, cmp.Or(start.Workspace.Commit, start.Workspace.Base)
	} else {
		start.Source = &run.Source{RunID: from.RunID, Checkpoint: c.ID, Seq: c.Seq, Chain: c.Chain, Mode: p.Mode,
			Generation: c.State.Generation}
	}
	repository := ""
	if start.Workspace.Kind == run.WorkspaceGit {
		repository = start.Workspace.Source
	}
	claim, begun, err = o.takeForProject(dir, claim, run.Membership{RunID: p.of.RunID, Alias: p.ref.Alias}, repository)
	if err != nil {
		return begun, in, err
	}
	o.identify(ctx, claim, plan.Agents, &start)
	if start.Workspace, err = branchWorkspace(ctx, s, plan, dir, claim, *start.Workspace, state); err != nil {
		return begun, in, err
	}
	in, err = o.declared(ctx, &p.ref, o.target(dir, claim, start, plan.TimeScale))
	return begun, in, err
}

// projectAt returns the run of a project, with its newest checkpoint at the time of the copy. It has no ID if the run
// had not begun then.
func (o Operator) projectAt(ctx context.Context, s *store.Store,
	p *projectCopy) (from Origin, c run.Checkpoint, err error) {
	var given workflows.Input
	if err := s.GetJSON(ctx, store.Digest(p.ref.Input), &given); err != nil {
		return from, c, fmt.Errorf("read the input of its run: %w", err)
	}
	from, err = o.Origin(ctx, p.ref.RunID)
	if err != nil {
		return from, c, err
	}
	if from.Dir != nil {
		if err := o.MayExecute(ctx, *from.Dir, run.Claim{RunID: from.RunID}); err != nil {
			return from, c, err
		}
	}
	c, err = newestUntil(ctx, s, from, p.Branching, p.at)
	if c.ID == "" {
		from.Start = given.Start
	}
	from.Start.Budget = given.Start.Budget // without the bound by what the run with the projects had left
	return from, c, err
}

// newestUntil returns the newest checkpoint of a run that was made until a time; without an ID: it had none.
func newestUntil(ctx context.Context, s *store.Store, from Origin, b Branching,
	until string) (c run.Checkpoint, err error) {
	var names, journal projector.Names = blobs.Of(s), nil
	if from.Dir != nil {
		if journal, err = projector.Checkpoints(from.Dir.Dir); err != nil {
			return c, err
		}
		names = journal
	}
	marks, err := projector.Marks(ctx, names, from.RunID)
	if err != nil {
		return c, err
	}
	n := sort.Search(len(marks), func(i int) bool {
		at, lerr := projector.LoadCheckpoint(ctx, names, from.RunID, marks[i].ID)
		if lerr != nil {
			err = lerr
		}
		return lerr == nil && until != "" && at.State.Checkpoint.TS > until
	})
	if err != nil || n == 0 {
		return c, err
	}
	return restored(ctx, s, from, journal, marks[n-1].ID, b)
}
