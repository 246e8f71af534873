package workflows

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// projects are the runs of the projects that a run across projects has.
type projects struct{ *execution }

// projectsAtOnce is how many projects work at the same time. Requirement 001 allows one open question of all projects.
const projectsAtOnce = 1

// next does the next thing about the projects of the run: it reads what changed, starts what can start, asks or
// waits. waits: the stages come later.
func (ps *projects) next(ctx workflow.Context) (waits bool, err error) {
	s := ps.state()
	if len(s.Projects) == 0 || s.Status.Closed() || len(s.Blocked()) == 0 && s.Tree != nil {
		return false, nil
	}
	if err := ps.read(ctx); err != nil {
		return true, err
	}
	if len(ps.state().Blocked()) == 0 {
		return true, ps.join(ctx)
	}
	if started, err := ps.startSome(ctx); started || err != nil {
		return true, err
	}
	if ps.state().Status == run.AwaitingPhaseHandoff || len(ps.active()) > 0 {
		_, err := ps.wait(ctx, wait{name: waitProjects})
		return true, err
	}
	return true, ps.askAboutBlocked(ctx)
}

// read reads the record of each project that has changed, and journals what follows.
func (ps *projects) read(ctx workflow.Context) error {
	for _, p := range ps.state().Projects {
		if p.Outcome == run.ProjectDone || p.Outcome == run.ProjectPending {
			continue
		}
		c, did, err := ps.children.read(ctx, p.RunID, p.Alias, "project "+p.Alias)
		if err != nil {
			return err
		}
		if did {
			ps.journalProject(ctx, p.Alias, c)
		}
	}
	return ps.journal.flush(ctx)
}

// journalProject journals what a project's record shows. The table in package run decides.
func (ps *projects) journalProject(ctx workflow.Context, alias string, c *child) {
	p, _ := ps.state().Project(alias)
	found, now := c.found, c.outcome(p.Outcome != run.ProjectPending && p.Outcome != run.ProjectSkipped)
	ps.forwardQuestion(ctx, p, now, found)
	switch {
	case now == run.ProjectPending:
		return
	case now.Rule().Ends && now != p.Outcome:
		ps.host.stepDone()
		ev := run.ProjectEnd{Alias: alias, RunID: p.RunID, Outcome: now, Status: found.Status, Reason: found.Reason,
			USD: found.USD, Unknown: found.Unknown}
		if found.Found != run.Present {
			ev.USD, ev.Unknown = p.USD, p.Unknown // what was paid stays paid
		}
		if now == run.ProjectDone {
			ev.Tree, ev.Commit = found.Tree, found.Commit
		}
		ps.journal.emit(ctx, run.KindProjectEnded, "", ev)
		ps.warnBudget(ctx)
	case !now.Rule().Ends && (p.Outcome.Rule().Ends || p.Outcome == run.ProjectPending):
		ps.journal.emit(ctx, run.KindProjectStarted, "", run.ProjectStart{Alias: alias, RunID: p.RunID})
		return
	}

}

// forwardQuestion asks the question of a project in this run, or closes it when the project has its answer. One
// question is open at a time.
func (ps *projects) forwardQuestion(ctx workflow.Context, p run.ProjectState, now run.ProjectOutcome,
	found contract.ChildFound) {
	q, open := ps.state().Asks()
	if open && q.Project != nil && q.Project.Alias == p.Alias &&
		(now != run.ProjectAsks || found.Question == nil || found.Question.ID != q.Project.ID) {
		m := contract.Message{ID: q.ID, Action: run.ActionContinue, By: "project " + p.Alias, Note: found.Decided}
		ps.journal.emit(ctx, run.KindHandoffDecided, q.Phase, ps.questions.decisionEvent(ctx, q, m))
		open = false
	}
	if open || now != run.ProjectAsks || found.Question == nil {
		return
	}
	of := found.Question
	ps.questions.open(ctx, run.QuestionRequested{
		Kind: run.QuestionHandoff, Phase: run.PhaseOfProject(p.Alias), Question: "Project " + p.Alias + ": " + of.Text,
		Type: run.HandoffFeedbackAlways, Trigger: run.TriggerProject, Round: 1, Actions: of.Actions, Digest: of.Digest,
		Verdict: of.Verdict, Approved: of.Approved,
		Project: &run.AskedBy{Alias: p.Alias, ID: of.ID, Kind: of.Kind},
	}, routes{})
}

// active lists the projects whose runs are not over.
func (ps *projects) active() (active []string) {
	for _, p := range ps.state().Projects {
		if !p.Outcome.Rule().Ends && p.Outcome != run.ProjectPending {
			active = append(active, p.Alias)
		}
	}
	return active
}

// startSome starts the projects that can start, and skips those that need one which is not done.
func (ps *projects) startSome(ctx workflow.Context) (started bool, err error) {
	for _, p := range ps.state().Projects {
		if p.Outcome != run.ProjectPending && p.Outcome != run.ProjectSkipped {
			continue
		}
		missing, blocked := ps.needed(p)
		switch {
		case len(blocked) > 0 && p.Outcome == run.ProjectPending:
			ev := run.ProjectSkip{Alias: p.Alias, Needs: blocked}
			ps.journal.emit(ctx, run.KindProjectSkipped, "", ev)
		case len(missing) == 0 && len(ps.active()) < projectsAtOnce:
			if ps.budgetSpent(ctx) {
				ps.pauseOverBudget(ctx, nil)
				return true, nil
			}
			started = true
			if err := ps.start(ctx, p); err != nil {
				return started, err
			}
		}
	}
	return started, ps.journal.flush(ctx)
}

// needed lists the projects that a project needs and that are not done, and those of them that do not work either.
func (ps *projects) needed(p run.ProjectState) (missing, blocked []string) {
	for _, name := range p.Needs {
		o, _ := ps.state().Project(name)
		if o.Outcome == run.ProjectDone {
			continue
		}
		if missing = append(missing, name); o.Outcome.Rule().Blocks {
			blocked = append(blocked, name)
		}
	}
	return missing, blocked
}

// start starts the run of a project. One that was started before, by an execution that was reset or reverted, is
// joined: its workflow id is its run id.
func (ps *projects) start(ctx workflow.Context, p run.ProjectState) error {
	i := slices.IndexFunc(ps.in.Projects, func(in contract.ChildInput) bool { return in.Alias == p.Alias })
	if i < 0 {
		return fmt.Errorf("start project %s: the run has no input for it", p.Alias)
	}
	in := ps.withinRest(ps.in.Projects[i])
	ps.journal.emit(ctx, run.KindProjectStarted, "", run.ProjectStart{Alias: p.Alias, RunID: p.RunID})
	if err := ps.journal.flush(ctx); err != nil {
		return err
	}
	ps.host.stepDone()
	if err := ps.children.start(ctx, in); err != nil {
		return fmt.Errorf("start project %s: %w", p.Alias, err)
	}
	return nil
}

// withinRest bounds the budget of a project by what the run has left beside the projects that work. What a project does
// not spend is left when it ends.
func (ps *projects) withinRest(in contract.ChildInput) contract.ChildInput {
	s := ps.state()
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

// join journals the tree of all projects, for the stages.
func (ps *projects) join(ctx workflow.Context) error {
	in := contract.JoinTreesInput{}
	for _, p := range ps.state().Projects {
		if p.Tree != nil {
			in.Trees = append(in.Trees, contract.ProjectTree{Alias: p.Alias, Tree: *p.Tree})
		}
	}
	var joined run.Blob
	if err := ps.checkout.run(ctx, "join the trees of the projects", contract.JoinTrees, same(&in), &joined); err != nil {
		return fmt.Errorf("join the trees of the projects: %w", err)
	}
	ps.journal.emit(ctx, run.KindWorkspaceUpdated, "", run.WorkspaceUpdated{Cause: run.CauseProjects, Tree: joined})
	return nil
}

// askAboutBlocked asks what to do with projects that keep the run from being delivered. A project that works again
// answers too.
func (ps *projects) askAboutBlocked(ctx workflow.Context) error {
	text := "These projects are not done:"
	for _, p := range ps.state().Blocked() {
		text += "\n- " + p.Text()
	}
	ask := run.QuestionRequested{
		Kind: run.QuestionGate, Question: text, Phase: "projects", Round: 1, Trigger: run.TriggerBlocked,
		Deadlines: ps.questions.deadlines(ctx, nil),
	}
	if err := ps.questions.awaitResumed(ctx); err != nil {
		return err
	}
	ps.questions.open(ctx, ask, routes{})
	if err := ps.awaitBlocked(ctx); err != nil {
		return err
	}
	for _, p := range ps.state().Blocked() { // the answer may be retry
		ps.children.of(p.RunID).changed = true
	}
	return nil
}

// awaitBlocked waits for an answer, or for a project that works again.
func (ps *projects) awaitBlocked(ctx workflow.Context) error {
	for ps.state().Status == run.AwaitingGateDecision {
		q, _ := ps.state().Open(run.QuestionGate)
		at, expired := nextDue(q, ps.questions.besideSince(q))
		due, err := ps.wait(ctx, wait{name: waitBlocked, until: at, summary: "until the reminder for " + q.ID})
		if err == nil && due {
			ps.questions.spoken(ctx)
			err = ps.questions.remindOrExpire(ctx, q, expired)
		}
		if err != nil || ps.questions.answered() {
			return err
		}
		if err := ps.inbox.failed(); err != nil {
			return err
		}
		if err := ps.read(ctx); err != nil {
			return err
		}
		if q, open := ps.state().Open(run.QuestionGate); open && len(ps.active())+len(ps.doneNow()) > 0 {
			m := contract.Message{ID: q.ID, Action: run.ActionRetry, By: "project"}
			ps.journal.emit(ctx, run.KindGateDecided, q.Phase, ps.questions.decisionEvent(ctx, q, m))
			return nil
		}
	}
	return nil
}

// doneNow lists the projects that can start or whose end lets the run continue.
func (ps *projects) doneNow() (ready []string) {
	if len(ps.state().Blocked()) == 0 {
		return []string{""}
	}
	for _, p := range ps.state().Projects {
		if missing, _ := ps.needed(p); len(missing) == 0 && p.Outcome == run.ProjectSkipped {
			ready = append(ready, p.Alias)
		}
	}
	return ready
}

// cancel cancels the active projects of a cancelled run, waits for their ends, and journals them.
func (ps *projects) cancel(ctx workflow.Context) error {
	open := func() (ids []string) {
		for _, alias := range ps.active() {
			p, _ := ps.state().Project(alias)
			ids = append(ids, p.RunID)
		}
		return ids
	}
	ps.children.cancel(ctx, open())
	return ps.children.awaitEnds(ctx, open, ps.read)
}
