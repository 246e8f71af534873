package workflows

import (
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// finish does what follows the stages of a run across projects: acceptance of all work, then delivery to all
// projects or to none. nil: the run continues.
func (ps *projects) finish(ctx workflow.Context) (*run.RunEnd, error) {
	s := ps.state()
	switch {
	case s.Status == run.Failed:
		return nil, errors.New(s.Reason)
	case s.Status.Closed():
		return &run.RunEnd{Status: s.Status, Reason: s.Reason}, nil
	case s.Accepted == "" || s.Accepted != run.DigestOf(s.Tree):
		return nil, ps.askAcceptance(ctx)
	}
	if blocked, err := ps.prepare(ctx); blocked != nil || err != nil {
		if err == nil {
			err = ps.askUnprepared(ctx, blocked)
		}
		return nil, err
	}
	return ps.commit(ctx)
}

// askAcceptance asks an operator to accept the work of all projects.
func (ps *projects) askAcceptance(ctx workflow.Context) error {
	s := ps.state()
	ask := run.QuestionRequested{
		Kind: run.QuestionHandoff, Phase: run.PhaseAcceptance, Type: run.HandoffFeedbackAlways,
		Question: "Deliver the changes of all projects?", Trigger: run.TriggerAcceptance, Round: 1,
		Verdict: s.Verdict, Approved: s.Approved, Digest: run.DigestOf(s.Tree), Deadlines: ps.questions.deadlines(ctx, nil),
	}
	if d, _ := ps.lastOutput(); d != "" {
		ask.LastOutput = d
		ask.Artifacts = append(ask.Artifacts, run.Attached{Name: "last output", Digest: d})
	}
	return ps.questions.ask(ctx, ask, routes{})
}

// unprepared is a project whose changes cannot be delivered.
type unprepared struct {
	alias string
	found contract.DeliverResult
}

// prepare checks for each project that its changes can be delivered. The first step changes nothing anywhere.
func (ps *projects) prepare(ctx workflow.Context) ([]unprepared, error) {
	var blocked []unprepared
	for _, p := range ps.toDeliver() {
		res, err := ps.deliver(ctx, p, true)
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
func (ps *projects) askUnprepared(ctx workflow.Context, blocked []unprepared) error {
	var lines []string
	for _, b := range blocked {
		lines = append(lines, fmt.Sprintf("project %s: %s", b.alias, b.found.Reason))
	}
	ask := run.QuestionRequested{
		Kind: run.QuestionDelivery, Question: strings.Join(lines, "\n"), Phase: deliveryPhase, Round: 1,
		Trigger: run.TriggerUnprepared, Digest: blocked[0].found.Diff.Digest, Deadlines: ps.questions.deadlines(ctx, nil),
		Artifacts: []run.Attached{{Name: "diff", Digest: blocked[0].found.Diff.Digest}},
	}
	return ps.questions.ask(ctx, ask, routes{})
}

// commit delivers to each project. A repetition finds what was delivered. A project that was changed since it
// was prepared is asked about; the others stay delivered.
func (ps *projects) commit(ctx workflow.Context) (*run.RunEnd, error) {
	for _, p := range ps.toDeliver() {
		res, err := ps.deliver(ctx, p, false)
		if err != nil {
			return nil, err
		}
		if res.Diff != nil && !res.Delivered {
			return nil, ps.askUnprepared(ctx, []unprepared{{p.Alias, res}})
		}
		if err := ps.journalDelivered(ctx, p.Alias, res); err != nil {
			return nil, err
		}
	}
	for _, p := range ps.state().Projects {
		if p.Delivery == nil {
			res := contract.DeliverResult{Reason: "its pipeline delivers nothing"}
			if err := ps.journalDelivered(ctx, p.Alias, res); err != nil {
				return nil, err
			}
		}
	}
	return &run.RunEnd{Status: run.Done}, nil
}

func (ps *projects) journalDelivered(ctx workflow.Context, alias string, res contract.DeliverResult) error {
	if res.Diff == nil && res.Reason == "" {
		res.Reason = "no changes"
	}
	ev := run.ProjectDelivery{Alias: alias, DeliveryCompleted: run.DeliveryCompleted{
		Delivered: res.Delivered, Commit: res.Commit, To: res.To, Target: res.Location, Files: res.Files,
		Message: res.Reason, Diff: run.DigestOf(res.Diff),
	}}
	ps.journal.emit(ctx, run.KindProjectDelivered, deliveryPhase, ev)
	return ps.journal.flush(ctx)
}

// toDeliver lists the projects that deliver something and were not delivered to yet.
func (ps *projects) toDeliver() (all []contract.ChildInput) {
	for _, in := range ps.in.Projects {
		p, _ := ps.state().Project(in.Alias)
		if p.Delivery == nil && in.Input.Start.Delivers && in.Input.Start.Workspace != nil {
			all = append(all, in)
		}
	}
	return all
}

func (ps *projects) deliver(ctx workflow.Context, p contract.ChildInput, prepare bool) (contract.DeliverResult, error) {
	start, state := p.Input.Start, run.ProjectState{}
	state, _ = ps.state().Project(p.Alias)
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
	if err := ps.checkout.run(ctx, summary, contract.DeliverProject, same(&in), &res); err != nil {
		return res, fmt.Errorf("%s: %w", summary, err)
	}
	return res, nil
}
