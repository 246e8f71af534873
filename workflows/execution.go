package workflows

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// execution is one execution of a run: what the parts of its loop share. The fields of a part are used by its methods only.
type execution struct {
	in        contract.Input
	inbox     *inbox     // what messages have requested
	journal   *journal   // the events, the state, and the directory that they are written to
	host      *host      // activities, and what holds them up
	checkout  *checkout  // the artifact or the workspace of the run
	notices   *notices   // to receivers
	round     *round     // of the plan, that the run is in
	questions *questions // to an operator
	children  *children  // runs below this one
	replay    *replay    // permissions of a replay
	running   *running   // the step that is under way
	// waits until a paused run continues, in the middle of a step
	resumed func(workflow.Context) error
}

func newExecution(in contract.Input, hide func(string) string) *execution {
	in.Options = in.Options.Complete()
	x := &execution{in: in}
	x.inbox = &inbox{execution: x, redact: hide}
	x.journal, x.host = &journal{execution: x}, &host{execution: x, activityIDs: map[string]int{}}
	x.checkout, x.notices, x.round = &checkout{execution: x}, &notices{execution: x}, &round{execution: x}
	x.questions, x.children = &questions{execution: x}, &children{execution: x, known: map[string]*child{}}
	x.replay, x.running = &replay{}, &running{execution: x}
	return x
}

// state is the state of the run, including events that are not on disk yet.
func (x *execution) state() run.State { return x.journal.state() }

// parent is the run that started this one; empty: none.
func (x *execution) parent() string {
	switch s := x.in.Start; {
	case s.MemberOf != nil:
		return s.MemberOf.RunID
	case s.Lane != nil:
		return s.Lane.RunID
	}
	return ""
}

func (x *execution) runID() string { return x.in.Target.RunID }

// record journals an event and has the flusher write it to the directory. A message is accepted only once its
// event is journaled.
func (x *execution) record(ctx workflow.Context, kind run.Kind, payload any) error {
	raw, err := run.Payload(payload)
	if err = cmp.Or(x.journal.failed(), err); err != nil {
		return fmt.Errorf("journal %s: %w", kind, err)
	}
	x.journal.add(ctx, kind, x.state().Phase, raw)
	x.journal.soon()
	return nil
}

// lastOutput returns the last reply of the run, or its artifact.
func (x *execution) lastOutput() (digest, role string) {
	s := x.state()
	if n := len(s.Replies); n > 0 {
		return s.Replies[n-1].Reply.Digest, s.Replies[n-1].Role
	}
	if s.Artifact != nil {
		return s.Artifact.Digest, ""
	}
	return "", ""
}

// show sets the workflow's current details, in Markdown, for the Web UI. It adds no history event.
func (x *execution) show(ctx workflow.Context) {
	text := Details(x.state(), x.in)
	if held := x.host.heldUp(); held.Held {
		text += fmt.Sprintf("\nA disk is full: %s. The next attempt is at %s, or at once after a resume.\n",
			run.OneLine(held.Message), held.RetryAt)
	} else if held.Waiting {
		text += fmt.Sprintf("\nWaiting: %s. The next attempt is at %s.\n", run.OneLine(held.Message), held.RetryAt)
	}
	if pausing := x.inbox.pausing(); pausing != "" {
		text += "\nPausing: " + pausing + ".\n"
	}
	workflow.SetCurrentDetails(ctx, text)
}

func (x *execution) ack(text string) contract.Ack {
	return contract.Ack{RunID: x.in.Target.RunID, Status: x.state().Status, Message: text}
}

// failLane ends a lane that is left out when it fails; nil: it is none.
func (x *execution) failLane(why string) error {
	if l := x.in.Start.Lane; l == nil || !l.Continues {
		return nil
	}
	return errors.New(why)
}

// callPrefix returns the prefix of the run's call ids.
func (x *execution) callPrefix() string {
	if l := x.in.Start.Lane; l != nil {
		return l.Calls
	}
	if x.in.Start.Parent != nil || x.in.Start.Source != nil {
		return x.state().RunID // a follow-up makes new calls, and a replay's calls are its own
	}
	return x.state().ThreadID
}

// itemName is the name of the item of a lane; empty: the run is none.
func (x *execution) itemName() string {
	if l := x.in.Start.Lane; l != nil {
		return l.Name
	}
	return ""
}

// inLane adds the item to a text about a step.
func (x *execution) inLane(text string) string {
	if name := x.itemName(); name != "" {
		return text + " — " + name
	}
	return text
}

// pause journals a pause, with a checkpoint if an operator requested it. A paused run stays paused.
func (x *execution) pause(ctx workflow.Context, reason, detail, by string) {
	x.pauseWith(ctx, run.RunPaused{Reason: reason, Detail: detail, By: by})
}

func (x *execution) pauseWith(ctx workflow.Context, ev run.RunPaused) {
	if x.state().Status == run.Paused {
		return
	}
	now := x.inbox.pausesNow()
	x.journal.emit(ctx, run.KindRunPaused, x.state().Phase, ev)
	x.children.tellLanes(ctx, contract.VerbPause, contract.Message{Note: ev.Detail, Now: now})
	if ev.Reason != run.UserRequested {
		return
	}
	x.checkpoint(ctx, x.checkpointNow(ctx, "cp-PAUSE-"))
}

// checkpoint journals a named checkpoint of the current state.
func (x *execution) checkpoint(ctx workflow.Context, id string) {
	s := x.state()
	x.journal.emit(ctx, run.KindCheckpointCreated, s.Phase, run.CheckpointCreated{
		ID: id, AtPass: s.Passes.LastSettled, AtRound: s.Rounds, USD: s.Total(), Score: s.Score,
	})
}

// checkpointNow is the name of a checkpoint with its time. Of several in one second, each later one has a number.
func (x *execution) checkpointNow(ctx workflow.Context, prefix string) string {
	name := prefix + workflow.Now(ctx).UTC().Format("20060102T150405Z")
	taken := func(id string) bool {
		return slices.ContainsFunc(x.state().Checkpoints, func(c run.CheckpointRef) bool { return c.ID == id })
	}
	id := name
	for n := 2; taken(id); n++ {
		id = fmt.Sprintf("%s-%d", name, n)
	}
	return id
}

// planUse names the plan in force.
func (x *execution) planUse() contract.PlanUse { return useOf(x.in.Start.PlanRef()) }

func useOf(ref run.PlanRef) contract.PlanUse {
	return contract.PlanUse{Plan: ref.Plan, Inputs: ref.Inputs}
}

// active reports whether the run makes progress, with its own calls or from a record.
func (x *execution) active() bool {
	s := x.state().Status
	return s == run.Running || s == run.Replaying
}

// journalRecovered journals errors that an activity recovered from. attempt is that of errors without one; 0: no
// retry was needed. Nothing is journaled after the end of the run.
func (x *execution) journalRecovered(ctx workflow.Context, context string, all []contract.RecoveredError,
	attempt int) {
	if x.state().Status.Closed() || x.journal.isNewer() {
		return
	}
	for _, t := range all {
		ev := run.ErrorNoted{
			Context: context, Category: t.Category, Message: t.Message, Diagnostics: t.Diagnostics, Recovered: true,
			Attempt: cmp.Or(t.Attempt, attempt), Kept: t.Kept,
		}
		x.journal.emit(ctx, run.KindErrorNoted, x.state().Phase, ev)
	}
}

// hostBound reports whether all calls run on one host, because its store is a folder there.
func (x *execution) hostBound() bool { return strings.HasPrefix(x.in.Target.Store, "file:") }

// workspace returns the current workspace, or nil for a run without one.
func (x *execution) workspace() *contract.Tree {
	w, s := x.in.Start.Workspace, x.state()
	if len(s.Projects) > 0 && s.Tree != nil {
		return &contract.Tree{PlanUse: x.planUse(), Workspace: run.Workspace{Kind: run.WorkspaceProjects}, Tree: *s.Tree}
	}
	if w == nil || s.Tree == nil {
		return nil
	}
	return &contract.Tree{PlanUse: x.planUse(), Workspace: *w, Tree: *s.Tree, Commit: s.Commit}
}
