package workflows

import (
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

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

// children are the runs below this one.
type children struct {
	*execution
	known map[string]*child // by run id
}

// forget lets each child be read again.
func (ch *children) forget() { ch.known = map[string]*child{} }

// readAgain lets the children that are known be read again.
func (ch *children) readAgain() {
	for _, id := range workflow.DeterministicKeys(ch.known) {
		ch.known[id].changed = true
	}
}

// of returns what is known of a child. An execution reads those that another one started.
func (ch *children) of(runID string) *child {
	c := ch.known[runID]
	if c == nil {
		c = &child{changed: true}
		ch.known[runID] = c
	}
	return c
}

// changed reports whether the record of an open child is to be read.
func (ch *children) changed() bool {
	for _, p := range ch.state().Projects {
		if p.Outcome != run.ProjectDone && p.Outcome != run.ProjectPending && ch.of(p.RunID).changed {
			return true
		}
	}
	for _, l := range ch.openLanes() {
		if ch.of(ch.laneRunID(l)).changed {
			return true
		}
	}
	return false
}

// listen handles the signals of children.
func (ch *children) listen(ctx workflow.Context) {
	signals := workflow.GetSignalChannelWithOptions(ctx, contract.ChildChanged, workflow.SignalChannelOptions{
		Description: "The state of a lane or a project has changed. Its workflow sends this.",
	})
	workflow.GoNamed(ctx, "signal "+contract.ChildChanged, func(ctx workflow.Context) {
		for {
			var m contract.ChildMessage
			signals.Receive(ctx, &m)
			if ch.inbox.awaitOpen(ctx) != nil {
				return
			}
			if w := ch.known[m.RunID]; w != nil { // a child that is not known yet is read first
				w.changed = true
			}
		}
	})
}

// tellParent reports to the run that started this one that something has changed. The events are on disk. It waits until
// the message is sent: Temporal drops those of a workflow that has ended.
func (ch *children) tellParent(ctx workflow.Context) {
	of := ch.parent()
	if of == "" {
		return
	}
	m := contract.ChildMessage{RunID: ch.in.Target.RunID}
	if err := workflow.SignalExternalWorkflow(ctx, of, "", contract.ChildChanged, m).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Warn("report to the run that started this one; it may have ended", "run", of, "error", err)
	}
}

// start starts the workflow of a child. One that was started before, by an execution that was reset or reverted, is
// joined: its workflow id is its run id.
func (ch *children) start(ctx workflow.Context, p contract.ChildInput) error {
	in := *p.Input
	free, _ := workflow.NewDisconnectedContext(ctx) // a cancelled run cancels its children by message, in any execution
	opts := workflow.ChildWorkflowOptions{
		WorkflowID: in.Target.RunID, TaskQueue: p.Queue, Memo: p.Memo, StaticSummary: p.Summary, StaticDetails: p.Details,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
	}
	if ch.in.Options.Attributes {
		opts.TypedSearchAttributes = InitialSearchAttributes(in)
	}
	future := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(free, opts), contract.PipelineWorkflow, in)
	c := ch.of(in.Target.RunID)
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
		ch.of(in.Target.RunID).changed = true // a revert forgets what was known
	})
	return nil
}

// read reads the record of a child that has changed; false: it has not.
func (ch *children) read(ctx workflow.Context, runID, path, name string) (*child, bool, error) {
	c := ch.of(runID)
	if !c.changed {
		return c, false, nil
	}
	c.changed = false
	in := contract.ReadChildInput{Path: path, Child: runID}
	var found contract.ChildFound
	if err := ch.journal.runDirectoryActivity(ctx, "read "+name, contract.ReadChild, &in, &found); err != nil {
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
func (ch *children) tell(ctx workflow.Context, runID, verb string, m contract.Message) {
	m.By = "run " + ch.in.Target.RunID
	if err := workflow.SignalExternalWorkflow(ctx, runID, "", verb, m).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Warn("send a message to a child; it may have ended", "run", runID, "message", verb, "error", err)
	}
}

// cancel requests the end of children.
func (ch *children) cancel(ctx workflow.Context, runIDs []string) {
	for _, id := range runIDs {
		if err := workflow.RequestCancelExternalWorkflow(ctx, id, "").Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Warn("cancel a child; it may have ended", "run", id, "error", err)
		}
	}
}

// awaitEnds waits until the children that were cancelled have ended, and reads how, for at most two minutes.
func (ch *children) awaitEnds(ctx workflow.Context, open func() []string, read func(workflow.Context) error) error {
	const most = 2 * time.Minute
	for until := workflow.Now(ctx).Add(most); len(open()) > 0 && workflow.Now(ctx).Before(until); {
		next := workflow.Now(ctx).Add(2 * time.Second)
		if _, err := ch.wait(ctx, wait{name: waitEnds, until: next, summary: "until what was cancelled has ended"}); err != nil {
			return err
		}
		for _, id := range open() {
			ch.of(id).changed = true
		}
		if err := read(ctx); err != nil {
			return err
		}
	}
	return nil
}

// laneRunID is the run id of a lane.
func (ch *children) laneRunID(l run.Lane) string {
	return l.ChildRunID(ch.in.Target.RunID, ch.state().Lanes.Stage)
}

// laneStage is the name of the stage with the lanes.
func (ch *children) laneStage() string { return ch.in.Start.Stages[ch.state().Lanes.Stage].Name }

// openLanes are those that work or wait.
func (ch *children) openLanes() []run.Lane {
	if ch.state().Lanes == nil {
		return nil
	}
	return ch.state().Lanes.Active
}

func (ch *children) openLaneIDs() (ids []string) {
	for _, l := range ch.openLanes() {
		ids = append(ids, ch.laneRunID(l))
	}
	return ids
}

// tellLanes sends a message to all open lanes: a pause or a resume of their run is theirs.
func (ch *children) tellLanes(ctx workflow.Context, verb string, m contract.Message) {
	for _, id := range ch.openLaneIDs() {
		ch.tell(ctx, id, verb, m)
		ch.of(id).changed = true
	}
}
