package workflows

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// projectsAtOnce is how many projects work at the same time. Requirement 001 allows one open question of all projects.
const projectsAtOnce = 1

// nextProject does the next thing about the projects of the run: it reads what changed, starts what can start, asks or
// waits. waits: the stages come later.
func (e *engine) nextProject(ctx workflow.Context) (waits bool, err error) {
	s := e.j.state
	if len(s.Projects) == 0 || s.Status.Closed() || len(s.Blocked()) == 0 && s.Tree != nil {
		return false, nil
	}
	if err := e.readProjects(ctx); err != nil {
		return true, err
	}
	if len(e.j.state.Blocked()) == 0 {
		return true, e.joinProjects(ctx)
	}
	if started, err := e.startProjects(ctx); started || err != nil {
		return true, err
	}
	if e.j.state.Status == run.AwaitingPhaseHandoff || len(e.activeProjects()) > 0 {
		_, err := e.wait(ctx, wait{name: waitProjects})
		return true, err
	}
	return true, e.askAboutBlocked(ctx)
}

// readProjects reads the record of each project that has changed, and journals what follows.
func (e *engine) readProjects(ctx workflow.Context) error {
	for _, p := range e.j.state.Projects {
		if p.Outcome == run.ProjectDone || p.Outcome == run.ProjectPending {
			continue
		}
		c, did, err := e.readChild(ctx, p.RunID, p.Alias, "project "+p.Alias)
		if err == nil && did {
			err = e.journalProject(ctx, p.Alias, c)
		}
		if err != nil {
			return err
		}
	}
	return e.j.flush(ctx)
}

// journalProject journals what a project's record shows. The table in package run decides.
func (e *engine) journalProject(ctx workflow.Context, alias string, c *child) error {
	p, _ := e.j.state.Project(alias)
	found, now := c.found, c.outcome(p.Outcome != run.ProjectPending && p.Outcome != run.ProjectSkipped)
	if err := e.forwardQuestion(ctx, p, now, found); err != nil {
		return err
	}
	switch {
	case now == run.ProjectPending:
		return nil
	case now.Rule().Ends && now != p.Outcome:
		e.steps++
		ev := run.ProjectEnd{Alias: alias, RunID: p.RunID, Outcome: now, Status: found.Status, Reason: found.Reason,
			USD: found.USD, Unknown: found.Unknown}
		if found.Found != run.Present {
			ev.USD, ev.Unknown = p.USD, p.Unknown // what was paid stays paid
		}
		if now == run.ProjectDone {
			ev.Tree, ev.Commit = found.Tree, found.Commit
		}
		if err := e.j.emit(ctx, run.KindProjectEnded, "", ev); err != nil {
			return err
		}
		return e.warnBudget(ctx)
	case !now.Rule().Ends && (p.Outcome.Rule().Ends || p.Outcome == run.ProjectPending):
		return e.j.emit(ctx, run.KindProjectStarted, "", run.ProjectStart{Alias: alias, RunID: p.RunID})
	}
	return nil
}

// forwardQuestion asks the question of a project in this run, or closes it when the project has its answer. One
// question is open at a time.
func (e *engine) forwardQuestion(ctx workflow.Context, p run.ProjectState, now run.ProjectOutcome,
	found contract.ChildFound) error {
	q, open := e.j.state.Asks()
	if open && q.Project != nil && q.Project.Alias == p.Alias &&
		(now != run.ProjectAsks || found.Question == nil || found.Question.ID != q.Project.ID) {
		m := contract.Message{ID: q.ID, Action: run.ActionContinue, By: "project " + p.Alias, Note: found.Decided}
		if err := e.j.emit(ctx, run.KindHandoffDecided, q.Phase, e.control.decisionEvent(ctx, q, m)); err != nil {
			return err
		}
		open = false
	}
	if open || now != run.ProjectAsks || found.Question == nil {
		return nil
	}
	of := found.Question
	e.routes = routes{}
	return e.openQuestion(ctx, run.QuestionRequested{
		Kind: run.QuestionHandoff, Phase: run.PhaseOfProject(p.Alias), Question: "Project " + p.Alias + ": " + of.Text,
		Type: run.HandoffFeedbackAlways, Trigger: run.TriggerProject, Round: 1, Actions: of.Actions, Digest: of.Digest,
		Verdict: of.Verdict, Approved: of.Approved,
		Project: &run.AskedBy{Alias: p.Alias, ID: of.ID, Kind: of.Kind},
	})
}

// activeProjects lists the projects whose runs are not over.
func (e *engine) activeProjects() (active []string) {
	for _, p := range e.j.state.Projects {
		if !p.Outcome.Rule().Ends && p.Outcome != run.ProjectPending {
			active = append(active, p.Alias)
		}
	}
	return active
}

// startProjects starts the projects that can start, and skips those that need one which is not done.
func (e *engine) startProjects(ctx workflow.Context) (started bool, err error) {
	for _, p := range e.j.state.Projects {
		if p.Outcome != run.ProjectPending && p.Outcome != run.ProjectSkipped {
			continue
		}
		missing, blocked := e.needed(p)
		switch {
		case len(blocked) > 0 && p.Outcome == run.ProjectPending:
			ev := run.ProjectSkip{Alias: p.Alias, Needs: blocked}
			if err := e.j.emit(ctx, run.KindProjectSkipped, "", ev); err != nil {
				return started, err
			}
		case len(missing) == 0 && len(e.activeProjects()) < projectsAtOnce:
			if e.budgetSpent(ctx) {
				return true, e.pauseOverBudget(ctx, nil)
			}
			started = true
			if err := e.startProject(ctx, p); err != nil {
				return started, err
			}
		}
	}
	return started, e.j.flush(ctx)
}

// needed lists the projects that a project needs and that are not done, and those of them that do not work either.
func (e *engine) needed(p run.ProjectState) (missing, blocked []string) {
	for _, name := range p.Needs {
		o, _ := e.j.state.Project(name)
		if o.Outcome == run.ProjectDone {
			continue
		}
		if missing = append(missing, name); o.Outcome.Rule().Blocks {
			blocked = append(blocked, name)
		}
	}
	return missing, blocked
}

// startProject starts the run of a project. One that was started before, by an execution that was reset or reverted, is
// joined: its workflow id is its run id.
func (e *engine) startProject(ctx workflow.Context, p run.ProjectState) error {
	i := slices.IndexFunc(e.in.Projects, func(in contract.ChildInput) bool { return in.Alias == p.Alias })
	if i < 0 {
		return fmt.Errorf("start project %s: the run has no input for it", p.Alias)
	}
	in := e.withinRest(e.in.Projects[i])
	if err := e.j.emit(ctx, run.KindProjectStarted, "", run.ProjectStart{Alias: p.Alias, RunID: p.RunID}); err != nil {
		return err
	}
	if err := e.j.flush(ctx); err != nil {
		return err
	}
	e.steps++
	if err := e.startChild(ctx, in); err != nil {
		return fmt.Errorf("start project %s: %w", p.Alias, err)
	}
	return nil
}

// withinRest bounds the budget of a project by what the run has left beside the projects that work. What a project does
// not spend is left when it ends.
func (e *engine) withinRest(in contract.ChildInput) contract.ChildInput {
	s := e.j.state
	if s.Budget.CapUSD <= 0 {
		return in
	}
	rest := s.Remaining()
	bounded, b := *in.Input, in.Input.Start.Budget
	share := 0.8
	if b.CapUSD > 0 {
		share, rest = b.WarnUSD/b.CapUSD, min(rest, b.CapUSD)
	}
	bounded.Start.Budget.CapUSD, bounded.Start.Budget.WarnUSD = rest, run.Cents(rest*share)
	in.Input = &bounded
	return in
}

func (e *engine) interruptsWait() bool {
	return e.control.Pause && e.active() || e.control.Revert != nil || e.control.err != nil || e.j.state.Status.Closed()
}

// joinProjects journals the tree of all projects, for the stages.
func (e *engine) joinProjects(ctx workflow.Context) error {
	in := contract.JoinTreesInput{}
	for _, p := range e.j.state.Projects {
		if p.Tree != nil {
			in.Trees = append(in.Trees, contract.ProjectTree{Alias: p.Alias, Tree: *p.Tree})
		}
	}
	var joined run.Blob
	if err := e.runCheckoutActivity(ctx, "join the trees of the projects", contract.JoinTrees, &in, &joined); err != nil {
		return fmt.Errorf("join the trees of the projects: %w", err)
	}
	return e.j.emit(ctx, run.KindWorkspaceUpdated, "", run.WorkspaceUpdated{Cause: run.CauseProjects, Tree: joined})
}

// askAboutBlocked asks what to do with projects that keep the run from being delivered. A project that works again
// answers too.
func (e *engine) askAboutBlocked(ctx workflow.Context) error {
	text := "These projects are not done:"
	for _, p := range e.j.state.Blocked() {
		text += "\n- " + p.Text()
	}
	e.routes = routes{}
	ask := run.QuestionRequested{
		Kind: run.QuestionGate, Question: text, Phase: "projects", Round: 1, Trigger: run.TriggerBlocked,
		Deadlines: e.deadlines(ctx, nil),
	}
	if err := e.awaitResumed(ctx); err != nil {
		return err
	}
	if err := e.openQuestion(ctx, ask); err != nil {
		return err
	}
	if err := e.awaitBlocked(ctx); err != nil {
		return err
	}
	for _, p := range e.j.state.Blocked() { // the answer may be retry
		e.childOf(p.RunID).changed = true
	}
	return nil
}

// awaitBlocked waits for an answer, or for a project that works again.
func (e *engine) awaitBlocked(ctx workflow.Context) error {
	for e.j.state.Status == run.AwaitingGateDecision {
		q, _ := e.j.state.Open(run.QuestionGate)
		at, expired := nextDue(q, e.besideSince(q))
		due, err := e.wait(ctx, wait{name: waitBlocked, until: at, summary: "until the reminder for " + q.ID})
		if err == nil && due {
			e.reminded = run.Time(workflow.Now(ctx))
			err = e.remindOrExpire(ctx, q, expired)
		}
		if err != nil || e.answered() {
			return err
		}
		if err := e.control.err; err != nil {
			return err
		}
		if err := e.readProjects(ctx); err != nil {
			return err
		}
		if q, open := e.j.state.Open(run.QuestionGate); open && len(e.activeProjects())+len(e.doneNow()) > 0 {
			m := contract.Message{ID: q.ID, Action: run.ActionRetry, By: "project"}
			return e.j.emit(ctx, run.KindGateDecided, q.Phase, e.control.decisionEvent(ctx, q, m))
		}
	}
	return nil
}

// doneNow lists the projects that can start or whose end lets the run continue.
func (e *engine) doneNow() (ready []string) {
	if len(e.j.state.Blocked()) == 0 {
		return []string{""}
	}
	for _, p := range e.j.state.Projects {
		if missing, _ := e.needed(p); len(missing) == 0 && p.Outcome == run.ProjectSkipped {
			ready = append(ready, p.Alias)
		}
	}
	return ready
}

// cancelProjects cancels the active projects of a cancelled run, waits for their ends, and journals them.
func (e *engine) cancelProjects(ctx workflow.Context) error {
	open := func() (ids []string) {
		for _, alias := range e.activeProjects() {
			p, _ := e.j.state.Project(alias)
			ids = append(ids, p.RunID)
		}
		return ids
	}
	e.cancelChildren(ctx, open())
	return e.awaitEnds(ctx, open, e.readProjects)
}
