package workflows

import (
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// finishProjects does what follows the stages of a run across projects: acceptance of all work, then delivery to all
// projects or to none. nil: the run continues.
func (e *engine) finishProjects(ctx workflow.Context) (*run.RunEnd, error) {
	s := e.j.state
	switch {
	case s.Status == run.Failed:
		return nil, errors.New(s.Reason)
	case s.Status.Closed():
		return &run.RunEnd{Status: s.Status, Reason: s.Reason}, nil
	case s.Accepted == "" || s.Accepted != run.DigestOf(s.Tree):
		return nil, e.askAcceptance(ctx)
	}
	if blocked, err := e.prepareProjects(ctx); blocked != nil || err != nil {
		if err == nil {
			err = e.askUnprepared(ctx, blocked)
		}
		return nil, err
	}
	return e.commitProjects(ctx)
}

// askAcceptance asks an operator to accept the work of all projects.
func (e *engine) askAcceptance(ctx workflow.Context) error {
	s := e.j.state
	ask := run.QuestionRequested{
		Kind: run.QuestionHandoff, Phase: run.PhaseAcceptance, Type: run.HandoffFeedbackAlways,
		Question: "Deliver the changes of all projects?", Trigger: run.TriggerAcceptance, Round: 1,
		Verdict: s.Verdict, Approved: s.Approved, Digest: run.DigestOf(s.Tree), Deadlines: e.deadlines(ctx, nil),
	}
	if d, _ := e.lastOutput(); d != "" {
		ask.LastOutput = d
		ask.Artifacts = append(ask.Artifacts, run.Attached{Name: "last output", Digest: d})
	}
	return e.askQuestion(ctx, ask, routes{})
}

// unprepared is a project whose changes cannot be delivered.
type unprepared struct {
	alias string
	found contract.DeliverResult
}

// prepareProjects checks for each project that its changes can be delivered. The first step changes nothing anywhere.
func (e *engine) prepareProjects(ctx workflow.Context) ([]unprepared, error) {
	var blocked []unprepared
	for _, p := range e.toDeliver() {
		res, err := e.deliverProject(ctx, p, true)
		if err != nil {
			return nil, err
		}
		if res.Diff != nil && res.Reason != "" {
			blocked = append(blocked, unprepared{p.Alias, res})
		}
	}
	return blocked, nil
}

// askUnprepared names each project that cannot take its changes. Nothing was delivered yet, or the rest of a delivery
// waits.
func (e *engine) askUnprepared(ctx workflow.Context, blocked []unprepared) error {
	var lines []string
	for _, b := range blocked {
		lines = append(lines, fmt.Sprintf("project %s: %s", b.alias, b.found.Reason))
	}
	ask := run.QuestionRequested{
		Kind: run.QuestionDelivery, Question: strings.Join(lines, "\n"), Phase: deliveryPhase, Round: 1,
		Trigger: run.TriggerUnprepared, Digest: blocked[0].found.Diff.Digest, Deadlines: e.deadlines(ctx, nil),
		Artifacts: []run.Attached{{Name: "diff", Digest: blocked[0].found.Diff.Digest}},
	}
	return e.askQuestion(ctx, ask, routes{})
}

// commitProjects delivers to each project. A repetition finds what was delivered. A project that was changed since it
// was prepared is asked about; the others stay delivered.
func (e *engine) commitProjects(ctx workflow.Context) (*run.RunEnd, error) {
	for _, p := range e.toDeliver() {
		res, err := e.deliverProject(ctx, p, false)
		if err != nil {
			return nil, err
		}
		if res.Diff != nil && !res.Delivered {
			return nil, e.askUnprepared(ctx, []unprepared{{p.Alias, res}})
		}
		if err := e.journalDelivered(ctx, p.Alias, res); err != nil {
			return nil, err
		}
	}
	for _, p := range e.j.state.Projects {
		if p.Delivery == nil {
			res := contract.DeliverResult{Reason: "its pipeline delivers nothing"}
			if err := e.journalDelivered(ctx, p.Alias, res); err != nil {
				return nil, err
			}
		}
	}
	return &run.RunEnd{Status: run.Done}, nil
}

func (e *engine) journalDelivered(ctx workflow.Context, alias string, res contract.DeliverResult) error {
	if res.Diff == nil && res.Reason == "" {
		res.Reason = "no changes"
	}
	ev := run.ProjectDelivery{Alias: alias, DeliveryCompleted: run.DeliveryCompleted{
		Delivered: res.Delivered, Commit: res.Commit, To: res.To, Target: res.Location, Files: res.Files,
		Message: res.Reason, Diff: run.DigestOf(res.Diff),
	}}
	if err := e.j.emit(ctx, run.KindProjectDelivered, deliveryPhase, ev); err != nil {
		return err
	}
	return e.j.flush(ctx)
}

// toDeliver lists the projects that deliver something and were not delivered to yet.
func (e *engine) toDeliver() (all []contract.ChildInput) {
	for _, in := range e.in.Projects {
		p, _ := e.j.state.Project(in.Alias)
		if p.Delivery == nil && in.Input.Start.Delivers && in.Input.Start.Workspace != nil {
			all = append(all, in)
		}
	}
	return all
}

func (e *engine) deliverProject(ctx workflow.Context, p contract.ChildInput, prepare bool) (contract.DeliverResult, error) {
	start, state := p.Input.Start, run.ProjectState{}
	state, _ = e.j.state.Project(p.Alias)
	in := contract.DeliverProjectInput{Alias: p.Alias, Prepare: prepare, Project: contract.DeliverInput{
		Target: p.Input.Target, Workspace: *start.Workspace, Commit: state.Commit, Tree: state.Tree,
		PlanUse: useOf(start.PlanRef()),
		Message: fmt.Sprintf("%s\n\nPassbook-Run: %s\n", strings.TrimSpace(start.Task), p.Input.Target.RunID),
	}}
	summary := "deliver the changes of project " + p.Alias
	if prepare {
		summary = "prepare the delivery to project " + p.Alias
	}
	var res contract.DeliverResult
	if err := e.runCheckoutActivity(ctx, summary, contract.DeliverProject, &in, &res); err != nil {
		return res, fmt.Errorf("%s: %w", summary, err)
	}
	return res, nil
}
