package operations

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// Branching configures a new run from a checkpoint of another one: a replay, which repeats the work, or a fork, which
// may continue with something else (requirement 003 §7, §8).
type Branching struct {
	Mode    string // run.ModeReplay or run.ModeFork
	From    string // checkpoint or boundary; empty: the first for a replay, the newest for a fork of an unfinished run
	Policy  string // of a replay, for side effects; empty: use_recorded_result
	Request string // id of the request: repeated, it starts one run; empty: each call starts another

	Dir    string      // of the new run; empty: one in run_root
	Task   string      // another task
	Budget float64     // another budget in USD; 0: the same
	Model  string      // another model for every agent
	Agent  []string    // another command for every agent
	Def    *Definition // another definition, the same up to the checkpoint

	Command []string // how the operator asks for it with starter, for messages

	Warn func(text string) // reports repaired damage; nil: it is not reported
}

// CheckDir refuses a directory that a new run cannot have, before anything is written or started. The directory of an
// earlier run of this mode may belong to the same request.
func (b Branching) CheckDir(runRoot string) error {
	if b.Dir == "" {
		return rundir.Writable(runRoot)
	}
	abs, err := filepath.Abs(b.Dir)
	if err != nil {
		return err
	}
	d := rundir.At(abs)
	if err := rundir.Usable(d); err != nil {
		return err
	}
	holder, err := d.Claim()
	if err == nil && (holder.SourceRun == "" || holder.Mode != b.Mode || holder.MemberOf != run.Membership{}) {
		return &rundir.ClaimedError{Dir: d.Root, Holder: holder}
	}
	return nil
}

// changes lists what a fork changes.
func (b Branching) changes() []string {
	var out []string
	for what, is := range map[string]bool{"task": b.Task != "", "budget": b.Budget > 0, "model": b.Model != "",
		"agent": len(b.Agent) > 0, "pipeline": b.Def != nil} {
		if is {
			out = append(out, what)
		}
	}
	slices.Sort(out)
	return out
}

// Origin is the source of a new run. Its directory may be missing: its inputs and checkpoints are in the store.
type Origin struct {
	RunID string
	Store string // URL
	Dir   *rundir.Dir
	Start run.RunStart
}

// Origin finds a run by directory or id.
func (o Operator) Origin(ctx context.Context, what string) (Origin, error) {
	dir, err := Find(o.Settings.StateDir, what, false)
	if err == nil {
		claim, cerr := dir.Claim()
		if cerr == nil {
			from := Origin{RunID: claim.RunID, Store: o.storeOf(claim), Dir: &dir}
			now, err := dir.Now()
			if err == nil && now.Tail.Seq > 0 { // otherwise it has nothing yet from which to make a run
				from.Start, err = dir.First()
			}
			return from, err
		}
		if !errors.Is(cerr, rundir.ErrNoRun) {
			return Origin{}, cerr
		}
	}
	from := Origin{RunID: what, Store: o.Settings.Store}
	if full, ferr := fullID(o.Settings.StateDir, what); ferr == nil {
		from.RunID = full
	}
	s, serr := OpenStore(ctx, from.Store)
	if serr != nil {
		return Origin{}, serr
	}
	first, ferr := rundir.LoadCheckpoint(ctx, blobs.Of(s), from.RunID, run.UnnamedID(1))
	if ferr != nil || first.Start == nil {
		if err == nil {
			err = &NameError{What: what}
		}
		return Origin{}, fmt.Errorf("%w; the store %s has no run with this id either", err, from.Store)
	}
	from.Start = *first.Start
	return from, nil
}

// Branch makes a new run from a checkpoint of another one, which stays unchanged.
func (o Operator) Branch(ctx context.Context, from Origin, b Branching) (Started, error) {
	if b.Mode == run.ModeFork {
		if err := mayChange(o.Settings, b.changes()); err != nil {
			return Started{}, err
		}
	} else if err := b.sameWork(); err != nil {
		return Started{}, err
	}
	if from.Dir != nil {
		if err := MayExecute(ctx, *from.Dir, run.Claim{RunID: from.RunID}); err != nil {
			return Started{}, err
		}
	}
	s, err := OpenStore(ctx, from.Store)
	if err != nil {
		return Started{}, err
	}
	c, source, err := o.branchPoint(ctx, s, from, b)
	if err != nil {
		return Started{}, err
	}
	start, plan, err := o.branchStart(ctx, s, from, b, c)
	if err != nil {
		return Started{}, err
	}
	claim, dir, begun, err := o.branchClaim(ctx, from, b, source, &start)
	if err != nil {
		return Started{}, err
	}
	o.identify(ctx, claim, plan.Agents, &start)
	start.Source = &source
	if err := sameBranch(ctx, s, dir, claim, start, b); err != nil {
		return Started{}, begun.refused(ctx, err)
	}
	st, err := o.launchBranch(ctx, s, dir, b, branched{claim, start, plan, c, from})
	if err == nil && !st.New { // another start may have been faster
		return st, sameBranch(ctx, s, dir, claim, start, b)
	}
	return st, begun.refused(ctx, err)
}

// sameBranch refuses a directory whose run was made from the same checkpoint with other changes. A run that is not
// registered has not started.
func sameBranch(ctx context.Context, s *store.Store, dir rundir.Dir, claim run.Claim, start run.RunStart,
	b Branching) error {
	there, err := registration(ctx, s, claim.RunID)
	if errors.Is(err, store.ErrMissing) {
		return nil
	}
	if err != nil {
		return err
	}
	next := "Name another --output-dir"
	if b.Request != "" {
		next = "Name another --request"
	}
	if other := there.otherThan(start); len(other) > 0 {
		return &RefusedError{Verb: claim.Mode,
			Why: fmt.Sprintf("%s already has run %s, made from the same checkpoint with another %s; nothing was "+
				"started. %s, or watch that run: starter watch %s",
				dir.Root, claim.RunID, strings.Join(other, ", "), next, claim.RunID)}
	}
	return nil
}

// sameWork checks that a replay changes nothing.
func (b Branching) sameWork() error {
	if wants := b.changes(); len(wants) > 0 {
		return &RefusedError{Verb: "replay", Why: "a replay repeats the same work: to change the " +
			strings.Join(wants, ", ") + ", fork the run"}
	}
	if b.Policy != "" && !slices.Contains([]string{run.UseRecorded, run.Reexecute, run.RequireHuman}, b.Policy) {
		return &RefusedError{Verb: "replay", Why: fmt.Sprintf("%q is not a policy of a replay: use %s, %s or %s", b.Policy,
			run.UseRecorded, run.Reexecute, run.RequireHuman)}
	}
	return nil
}

// branchPoint finds the checkpoint and the source of the new run.
func (o Operator) branchPoint(ctx context.Context, s *store.Store, from Origin,
	b Branching) (c run.Checkpoint, src run.Source, err error) {
	marks, newest, err := o.newest(ctx, s, from, branchOperation(b.Mode))
	if err != nil {
		return c, src, err
	}
	if err := run.May(newest.State.Status, branchOperation(b.Mode), run.Terms{}); err != nil {
		return c, src, err
	}
	id := b.From
	switch {
	case id == "" && b.Mode == run.ModeReplay:
		id = run.UnnamedID(1)
	case id == "":
		id = newest.ID
		if err := choose(ctx, s, from, marks, newest, b); err != nil {
			return c, src, err
		}
	}
	if c, err = restored(ctx, s, from, marks, id, b); err != nil {
		return c, src, err
	}
	src = run.Source{
		RunID: from.RunID, Checkpoint: c.ID, Seq: c.Seq, Chain: c.Chain, Mode: b.Mode,
		Generation: newest.State.Generation, Delivered: newest.State.Delivery,
	}
	if b.Mode == run.ModeReplay {
		src.Replay = b.Policy
		if src.Replay == "" {
			src.Replay = run.UseRecorded
		}
	}
	return c, src, nil
}

// restored returns a checkpoint with everything in the store that a new run needs to continue from it.
func restored(ctx context.Context, s *store.Store, from Origin, marks rundir.Names, id string,
	b Branching) (run.Checkpoint, error) {
	c, warning, err := rundir.RestoreCheckpoint(ctx, blobs.Of(s), marks, from.RunID, id)
	if err != nil {
		return c, err
	}
	if warning != "" && b.Warn != nil {
		b.Warn(warning)
	}
	if err := from.complete(ctx, s, c); err != nil {
		return c, err
	}
	if c, err = blobs.Checkpoint(ctx, s, from.RunID, id); err != nil {
		return c, err
	}
	return c, warnOfActions(from, c.Seq, b)
}

// warnOfActions warns of external actions of the source that the new run executes again. A replay does so only with
// [run.Reexecute]; with the other policies it uses the record or asks.
func warnOfActions(from Origin, seq int64, b Branching) error {
	if from.Dir == nil || b.Warn == nil || b.Mode == run.ModeReplay && b.Policy != run.Reexecute {
		return nil
	}
	all, err := ActionsAfter(*from.Dir, seq)
	for _, text := range all {
		b.Warn(text)
	}
	return err
}

// complete ensures that the store has what another run needs to continue from a checkpoint. Lost data comes from the
// directory.
func (f Origin) complete(ctx context.Context, s *store.Store, c run.Checkpoint) error {
	if f.Dir == nil {
		return rundir.Complete(ctx, blobs.Of(s), f.Start, c.State)
	}
	_, err := rundir.Import(ctx, *f.Dir, blobs.Of(s), f.Start, c.State)
	return err
}

func branchOperation(mode string) run.Operation {
	if mode == run.ModeReplay {
		return run.Replay
	}
	return run.Fork
}

// newest returns the last checkpoint of a run; marks are those of its directory, if it exists. A run without one has
// not started.
func (o Operator) newest(ctx context.Context, s *store.Store, from Origin,
	op run.Operation) (marks rundir.Names, newest run.Checkpoint, err error) {
	var names rundir.Names = blobs.Of(s)
	if from.Dir != nil {
		if marks, err = rundir.Checkpoints(*from.Dir); err != nil {
			return nil, newest, err
		}
		names = marks
	}
	all, err := rundir.Marks(ctx, names, from.RunID)
	if err != nil {
		return marks, newest, err
	}
	if len(all) == 0 {
		return marks, newest, o.notBegun(ctx, from, op)
	}
	last := all[len(all)-1]
	newest, err = rundir.LoadCheckpoint(ctx, names, from.RunID, last.ID)
	if from.Dir != nil && err == nil {
		now, nerr := from.Dir.Now()
		if nerr != nil {
			return marks, newest, nerr
		}
		newest.State.Status, newest.State.Generation, newest.State.Delivery = now.State.Status, now.State.Generation,
			now.State.Delivery
	}
	return marks, newest, err
}

func (o Operator) notBegun(ctx context.Context, from Origin, op run.Operation) error {
	status := run.Pending
	if from.Dir != nil {
		claim, err := from.Dir.Claim()
		if err != nil {
			return err
		}
		status = o.EffectiveStatus(ctx, claim, "").Status
	}
	return run.Conflict(status, op, run.Terms{})
}

// branchStart returns the inputs of the new run: those of the source, except for the changes.
func (o Operator) branchStart(ctx context.Context, s *store.Store, from Origin, b Branching,
	c run.Checkpoint) (run.RunStart, *pipeline.Plan, error) {
	var plan pipeline.Plan
	start, err := o.startAt(ctx, s, from, c)
	start.MemberOf = nil // a copy of a project's run stands alone, unless the run across projects is copied
	if err == nil && len(start.Projects) > 0 && b.Mode == run.ModeReplay {
		err = errReplayOfProjects()
	}
	if err == nil && start.Lane != nil {
		err = &RefusedError{Verb: b.Mode, Why: "it is a lane of run " + start.Lane.RunID + ": name that run"}
	}
	if err != nil {
		return start, nil, err
	}
	if err := s.GetJSON(ctx, store.Digest(start.Plan), &plan); err != nil {
		return run.RunStart{}, nil, fmt.Errorf("read the plan of run %s: %w", from.RunID, err)
	}
	if b.Def != nil {
		if err := sameUpTo(&plan, b.Def.Plan, c.State.Next); err != nil {
			return start, nil, err
		}
		b.Def.Plan.KeepGiven(&plan)
		stored, err := b.Def.Upload(ctx, s)
		if err != nil {
			return start, nil, fmt.Errorf("store the inputs: %w", err)
		}
		if (b.Def.Plan.Workspace == nil) != (from.Start.Workspace == nil) {
			return start, nil,
				errors.New("the other pipeline and the run must both work on a workspace, or neither of them")
		}
		if err := sameProjects(plan.Projects, b.Def.Plan.Projects); err != nil {
			return start, nil, err
		}
		start, plan = startEvent(*b.Def, run.Claim{}, stored), *b.Def.Plan
		start.Task, start.Workspace, start.Brief = from.Start.Task, from.Start.Workspace, from.Start.Brief
		start.Projects, start.RunKind = from.Start.Projects, from.Start.RunKind
	} else if len(b.Agent) > 0 || b.Model != "" {
		plan.Agents = slices.Clone(plan.Agents)
		for i := range plan.Agents {
			plan.Agents[i].Run = otherAgent(plan.Agents[i].Run, b.Agent, b.Model)
		}
		digest, err := s.PutJSON(ctx, plan)
		if err != nil {
			return start, nil, err
		}
		start.Plan = string(digest)
	}
	if b.Task != "" {
		start.Task = b.Task
	}
	if b.Budget > 0 {
		start.Budget = contract.BudgetOf(&plan)
		start.Budget.CapUSD, start.Budget.WarnUSD = b.Budget, run.Cents(b.Budget*plan.Budget.WarnAt)
	}
	first := 0
	if from.Start.From != nil {
		first = from.Start.From.Stage
	}
	start.Judged = plan.JudgedFrom(first)
	policy := policyOf(&plan, start.Definition, start.Budget)
	if err := policy.Allowed(o.Settings, start.Budget.CapUSD); err != nil {
		return start, nil, err
	}
	digest, err := s.PutJSON(ctx, policy)
	start.Policy = string(digest)
	if b.Mode == run.ModeReplay && err == nil {
		err = o.recordAfter(ctx, s, from, c, &start)
	}
	state := c.Branched()
	if l := state.Lanes; l != nil && err == nil && l.Stage < len(start.Stages) {
		state.Lanes, err = givenLanes(ctx, s, from, l, start.Stages[l.Stage].Name)
	}
	if len(start.Projects) > 0 {
		state.Tree = nil // of its copies, when they are done
	}
	start.State, start.Parent, start.From, start.Replies, start.Found, start.Warnings = &state, nil, nil, nil, nil, nil
	if start.Artifact != nil && state.Artifact != nil {
		seed := *start.Artifact
		seed.Seed = *state.Artifact
		start.Artifact = &seed
	}
	return start, &plan, err
}
