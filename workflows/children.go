package workflows

import (
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// A child is a run below a run: a lane, or the run of a project. Its workflow is an abandoned child workflow, so that the
// next execution of its run has it too: pause, resume and cancellation are messages. A child signals that something has
// changed; its run reads the child's record then, and once for each open child when an execution begins.

// child is what this execution knows of a child besides the journal.
type child struct {
	changed bool // its record is to be read
	found   contract.ChildFound
	budget  run.Budget // its share of the budget
}

// childOf returns what is known of a child. An execution reads those that another one started.
func (e *engine) childOf(runID string) *child {
	c := e.children[runID]
	if c == nil {
		c = &child{changed: true}
		if e.children == nil {
			e.children = map[string]*child{}
		}
		e.children[runID] = c
	}
	return c
}

// childChanged reports whether the record of an open child is to be read.
func (e *engine) childChanged() bool {
	for _, p := range e.j.state.Projects {
		if p.Outcome != run.ProjectDone && p.Outcome != run.ProjectPending && e.childOf(p.RunID).changed {
			return true
		}
	}
	for _, l := range e.openLanes() {
		if e.childOf(e.laneRunID(l)).changed {
			return true
		}
	}
	return false
}

// listenToChildren handles the signals of children.
func (c *control) listenToChildren(ctx workflow.Context) {
	ch := workflow.GetSignalChannelWithOptions(ctx, contract.ChildChanged, workflow.SignalChannelOptions{
		Description: "The state of a lane or a project has changed. Its workflow sends this.",
	})
	workflow.GoNamed(ctx, "signal "+contract.ChildChanged, func(ctx workflow.Context) {
		for {
			var m contract.ChildMessage
			ch.Receive(ctx, &m)
			if c.awaitOpen(ctx) != nil {
				return
			}
			if w := c.e.children[m.RunID]; w != nil { // a child that is not known yet is read first
				w.changed = true
			}
		}
	})
}

// parent is the run that started this one; empty: none.
func (e *engine) parent() string {
	switch s := e.in.Start; {
	case s.MemberOf != nil:
		return s.MemberOf.RunID
	case s.Lane != nil:
		return s.Lane.RunID
	}
	return ""
}

// tellParent reports to the run that started this one that something has changed. The events are on disk. It waits until
// the message is sent: Temporal drops those of a workflow that has ended.
func (e *engine) tellParent(ctx workflow.Context) {
	of := e.parent()
	if of == "" {
		return
	}
	m := contract.ChildMessage{RunID: e.in.Target.RunID}
	if err := workflow.SignalExternalWorkflow(ctx, of, "", contract.ChildChanged, m).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Warn("report to the run that started this one; it may have ended", "run", of, "error", err)
	}
}

// startChild starts the workflow of a child. One that was started before, by an execution that was reset or reverted, is
// joined: its workflow id is its run id.
func (e *engine) startChild(ctx workflow.Context, p contract.ChildInput) error {
	in := *p.Input
	free, _ := workflow.NewDisconnectedContext(ctx) // a cancelled run cancels its children by message, in any execution
	opts := workflow.ChildWorkflowOptions{
		WorkflowID: in.Target.RunID, TaskQueue: p.Queue, Memo: p.Memo, StaticSummary: p.Summary, StaticDetails: p.Details,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
	}
	if e.in.Options.Attributes {
		opts.TypedSearchAttributes = InitialSearchAttributes(in)
	}
	future := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(free, opts), contract.PipelineWorkflow, in)
	c := e.childOf(in.Target.RunID)
	c.changed, c.budget = false, in.Start.Budget
	switch err := future.GetChildWorkflowExecution().Get(ctx, nil); {
	case alreadyStarted(err):
		c.changed = true
		return nil
	case err != nil:
		return err
	}
	workflow.GoNamed(ctx, "child "+in.Target.RunID, func(ctx workflow.Context) {
		if err := future.Get(ctx, nil); err != nil { // its record shows how it ended
			workflow.GetLogger(ctx).Info("a child has ended", "run", in.Target.RunID, "error", err)
		}
		e.childOf(in.Target.RunID).changed = true // a revert forgets what was known
	})
	return nil
}

func alreadyStarted(err error) bool {
	var started *temporal.ChildWorkflowExecutionAlreadyStartedError
	return errors.As(err, &started)
}

// readChild reads the record of a child that has changed; false: it has not.
func (e *engine) readChild(ctx workflow.Context, runID, path, name string) (*child, bool, error) {
	c := e.childOf(runID)
	if !c.changed {
		return c, false, nil
	}
	c.changed = false
	in := contract.ReadChildInput{Path: path, Child: runID}
	var found contract.ChildFound
	if err := e.runDirectoryActivity(ctx, "read "+name, contract.ReadChild, &in, &found); err != nil {
		return c, false, fmt.Errorf("read %s: %w", name, err)
	}
	c.found = found
	if found.Budget != (run.Budget{}) {
		c.budget = found.Budget
	}
	return c, true, nil
}

// outcome is what the record of a child that was started shows. The table in package run decides.
func (c *child) outcome(begun bool) run.ProjectOutcome {
	f := c.found
	return run.ProjectFacts{Found: f.Found, Status: f.Status, Reason: f.Reason, Closed: f.Closed, Begun: begun}.Outcome()
}

// tell sends a message to a child, which may have ended.
func (e *engine) tell(ctx workflow.Context, runID, verb string, m contract.Message) {
	m.By = "run " + e.in.Target.RunID
	if err := workflow.SignalExternalWorkflow(ctx, runID, "", verb, m).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Warn("send a message to a child; it may have ended", "run", runID, "message", verb, "error", err)
	}
}

// cancelChildren requests the end of children.
func (e *engine) cancelChildren(ctx workflow.Context, runIDs []string) {
	for _, id := range runIDs {
		if err := workflow.RequestCancelExternalWorkflow(ctx, id, "").Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Warn("cancel a child; it may have ended", "run", id, "error", err)
		}
	}
}

// awaitEnds waits until the children that were cancelled have ended, and reads how, for at most two minutes.
func (e *engine) awaitEnds(ctx workflow.Context, open func() []string, read func(workflow.Context) error) error {
	const most = 2 * time.Minute
	for until := workflow.Now(ctx).Add(most); len(open()) > 0 && workflow.Now(ctx).Before(until); {
		next := workflow.Now(ctx).Add(2 * time.Second)
		if _, err := e.wait(ctx, wait{name: waitEnds, until: next, summary: "until what was cancelled has ended"}); err != nil {
			return err
		}
		for _, id := range open() {
			e.childOf(id).changed = true
		}
		if err := read(ctx); err != nil {
			return err
		}
	}
	return nil
}
