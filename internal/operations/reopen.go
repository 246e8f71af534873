package operations

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/history"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows"
	"github.com/passbook-run/passbook/workflows/contract"
)

// Reopening configures how a closed run continues.
type Reopening struct {
	Force  bool   // override its settings or its status
	Yes    bool   // an operator who was shown why the run failed resumes it
	Reason string // of Force; recorded in the journal
	Note   string
	Now    bool // do not wait for a limit that the last epoch met

	Decision *contract.Message // of the hand-off that the last epoch left open
	Amend    *contract.Message // the definition that the run is to adopt

	moved string // where the terminated workflow wrote; empty: the directory was not moved
}

// Reopened describes how a run continues.
type Reopened struct {
	RunID    string
	Epoch    int
	From     run.Status
	Restored int // files stored again, because the store had lost them

	Left      []string            // why projects and lanes do not continue with their run
	Overruled []string            // differences between the run's policy and the settings that force overrules
	Repaired  []run.JournalDamage // restored lines of the journal
}

// Reopen continues a failed, cancelled or interrupted run in a new epoch, from its last checkpoint, in the same
// directory (requirement 003 §6), and a paused one whose directory was moved. Lines that the directory lacks are
// restored first. Of several concurrent calls one wins. A refusal changes nothing in the directory.
func (o Operator) Reopen(ctx context.Context, dir rundir.Dir, r Reopening) (Reopened, error) {
	claim, err := dir.Claim()
	if err != nil {
		return Reopened{}, err
	}
	if err := rundir.MayWrite(dir); err != nil {
		return Reopened{}, err
	}
	if err := MayExecute(ctx, dir, claim); err != nil {
		return Reopened{}, err
	}
	c, effective, err := o.catchUp(ctx, dir, claim)
	if err == nil && effective.Liveness == run.LiveOpen {
		if r.moved, err = o.endMoved(ctx, dir, claim, c, r); err == nil && r.moved != "" {
			c, effective, err = o.catchUp(ctx, dir, claim)
			effective.Detail = r.moved
		}
	}
	if err != nil {
		return Reopened{}, err
	}
	effective = insisted(effective, r)
	if lost := rundir.Lost(dir, c.State); lost != nil && hasEnded(effective) {
		return Reopened{}, lost
	}
	var overruled []string
	if !lacksEnd(c, effective) {
		if err := mayReopen(dir, c.State, effective, r); err != nil {
			return Reopened{}, err
		}
		if overruled, err = o.reevaluated(ctx, claim, dir, c, r); err != nil {
			return Reopened{}, err
		}
	}
	in, restored, err := o.reopening(ctx, dir, claim, c, effective, r)
	if err != nil {
		return Reopened{}, err
	}
	in.Reopen.Overruled = overruled
	left := o.resumeChildren(ctx, dir, c.State, r) // first: the run reads them when it begins
	if err := o.openEpoch(ctx, dir, claim, c, effective, in, contract.VerbResume); err != nil {
		return Reopened{}, err
	}
	return Reopened{RunID: claim.RunID, Epoch: in.Reopen.Epoch, From: effective.Status, Restored: restored,
		Left: left, Overruled: overruled, Repaired: c.Broken}, nil
}

// reevaluated compares what the run was allowed at its start with today's settings (requirement 003 §6). If the
// settings allow force, force overrules the differences, which are returned.
func (o Operator) reevaluated(ctx context.Context, claim run.Claim, dir rundir.Dir, c rundir.Continuation,
	r Reopening) (overruled []string, err error) {
	if r.Force {
		if err := mayForce(o.Settings); err != nil {
			return nil, err
		}
	}
	p, err := o.policyInForce(ctx, claim, dir, c.State.PlanInForce(c.Start))
	switch {
	case err != nil && r.Force:
		return []string{err.Error()}, nil
	case err != nil:
		return nil, err
	}
	var differs *PolicyError
	if err := p.Allowed(o.Settings, c.State.Budget.CapUSD); r.Force && errors.As(err, &differs) {
		return differs.Differences, nil
	} else if err != nil {
		return nil, fmt.Errorf("%w. Change the settings, or resume with --force --reason TEXT", err)
	}
	return nil, nil
}

// policyInForce returns what the run was allowed when it started, or when it was amended last.
func (o Operator) policyInForce(ctx context.Context, claim run.Claim, dir rundir.Dir,
	ref run.PlanRef) (Policy, error) {
	var p Policy
	blobs, err := o.openStore(ctx, claim)
	if err != nil {
		return p, err
	}
	if err := blobs.GetJSON(ctx, store.Digest(ref.Policy), &p); err != nil {
		name, rerr := dir.InForce(rundir.PolicyFile) // the store has lost it; the directory has a copy
		raw, ferr := dir.ReadFile(name)
		if rerr != nil || ferr != nil || json.Unmarshal(raw, &p) != nil {
			return p, fmt.Errorf("read the policy of run %s: %w", claim.RunID, err)
		}
	}
	return p, nil
}

func refused(format string, args ...any) error {
	return &RefusedError{Verb: contract.VerbResume, Why: fmt.Sprintf(format, args...)}
}

// unmet refuses a resume whose precondition does not hold.
func unmet(format string, args ...any) error {
	return &RefusedError{Verb: contract.VerbResume, Why: fmt.Sprintf(format, args...), FailedPrecondition: true}
}

// conflict refuses a resume that the run's status does not allow.
func conflict(s run.State, effective run.EffectiveStatus, format string, args ...any) error {
	c := run.Conflict(effective.Status, run.Resume, s.Terms())
	return &RefusedError{Verb: contract.VerbResume, Why: fmt.Sprintf(format, args...), Conflict: c}
}

// catchUp returns what the next epoch continues: the journal of the run's directory, which must be no copy, compared
// with Temporal's history, the store and the chain. It only reads. For a run with an open workflow, it returns the
// content of the directory.
func (o Operator) catchUp(ctx context.Context, dir rundir.Dir,
	claim run.Claim) (rundir.Continuation, run.EffectiveStatus, error) {
	var c rundir.Continuation
	if err := AtHome(o.Settings.StateDir, claim, dir); err != nil {
		return c, run.EffectiveStatus{}, err
	}
	now, err := dir.Now()
	if err != nil {
		return c, run.EffectiveStatus{}, err
	}
	effective := o.EffectiveStatus(ctx, dir.CurrentClaim(claim), now.State.Status)
	if effective.Liveness == run.LiveOpen {
		c.Now = now
		return c, effective, nil
	}
	s, err := o.openStore(ctx, claim)
	if err != nil {
		return c, effective, err
	}
	known, head, err := o.inHistory(ctx, s, claim.RunID, effective)
	if err != nil {
		return c, effective, err
	}
	c, err = rundir.Continue(ctx, dir, blobs.Of(s), known)
	var other *rundir.OtherEventsError
	switch {
	case errors.As(err, &other):
		return c, effective, fmt.Errorf("bring %s in line with Temporal's history: %w", dir.Root, err)
	case errors.As(err, new(*rundir.DamagedError)):
		return c, effective, cmp.Or(rundir.Lost(dir, now.State), err)
	case err != nil:
		return c, effective, err
	}
	if head != "" {
		c.Meta.SegmentHead = head
	}
	return c, run.NewEffectiveStatus(c.State.Status, effective.Liveness, effective.Detail), nil
}

// inHistory returns the journal in Temporal's history of a closed workflow and in the segments of the store, with the
// newest segment. Nil: they lack the first event, so only the directory has the journal.
func (o Operator) inHistory(ctx context.Context, s *store.Store, runID string,
	effective run.EffectiveStatus) (lines []string, head string, err error) {
	if effective.Liveness != run.LiveClosed {
		return nil, "", nil
	}
	src, err := history.Reader{Client: o.Client, Converter: o.Converter}.Source(ctx, runID, "")
	if err != nil {
		return nil, "", err
	}
	lines, err = src.Lines(ctx, blobs.Of(s))
	if errors.As(err, new(*rundir.HistoryGapError)) || errors.Is(err, fs.ErrNotExist) ||
		errors.Is(err, disk.ErrDamaged) {
		return nil, "", nil
	}
	return lines, src.Head, err
}

// lacksEnd reports whether a review approved the run and its workflow was ended before it wrote run.end. The next epoch
// writes only that.
func lacksEnd(c rundir.Continuation, effective run.EffectiveStatus) bool {
	return hasEnded(effective) && c.State.Status == run.Done && c.State.Reason == run.ReasonReviewApproved && !c.Ended
}

// hasEnded reports whether no workflow of the run is open.
func hasEnded(s run.EffectiveStatus) bool {
	return s.Liveness == run.LiveClosed || s.Liveness == run.LiveGone
}

// mayReopen checks the preconditions of requirement 003 §6.
func mayReopen(dir rundir.Dir, s run.State, effective run.EffectiveStatus, r Reopening) error {
	q, undecided := s.Asks()
	switch {
	case effective.Status != run.Done && unexplained(r):
		return refused(needsReason)
	case effective.Liveness == run.LiveUnknown:
		return unknown(contract.VerbResume, dir, effective)
	case effective.Liveness == run.LiveOpen:
		return conflict(s, effective, "the run is %s and its workflow is open", effective.Status)
	case effective.Status == run.Unknown:
		return conflict(s, effective, "the run has not begun: start it with `starter run`")
	case effective.Status == run.Done:
		return conflict(s, effective, contract.DoneIsFinal)
	case effective.Status == run.Halted && !r.Force:
		return conflict(s, effective, "the run was halted (%s); to resume it nevertheless, run: %s", s.Reason,
			toType(s, effective, run.Resume))
	case effective.Status == run.Cancelled && len(s.Projects) > 0:
		return conflict(s, effective, "a cancelled run across projects is not resumed; to continue in a new run: %s",
			toType(s, effective, run.FollowUp))
	case undecided && r.Decision == nil && !r.Force && r.moved == "": // else the next epoch asks again
		return undecidedError(s, effective, q)
	case s.Checkpoint == nil:
		return unmet("the run has no checkpoint to continue from")
	case effective.Status == run.Failed && !r.informed():
		return conflict(s, effective, "the run failed: %s. Inspect it first: starter diagnose %s. Then, to resume it, run: %s",
			strings.TrimSuffix(s.Reason, "."), s.RunID, toType(s, effective, run.Resume))
	}
	if r.Decision != nil && !undecided {
		return unmet("nothing waits for a decision")
	}
	if r.Decision != nil {
		return refusalOf(s.RunID, contract.VerbDecide, workflows.CheckDecision(s, *r.Decision))
	}
	return run.May(effective.Status, run.Resume, run.Terms{Forced: r.informed(), Projects: len(s.Projects) > 0})
}

// informed reports whether an operator resumes a failed run on purpose (requirement 001): by force, after its cause was
// shown, with a decision or with another definition.
func (r Reopening) informed() bool { return r.Force || r.Yes || r.Decision != nil || r.Amend != nil }

// needsReason is the refusal of a force without a reason.
const needsReason = "--force needs --reason TEXT, which is recorded"

func unexplained(r Reopening) bool { return r.Force && strings.TrimSpace(r.Reason) == "" }

// toType returns the command for an operation on a run.
func toType(s run.State, effective run.EffectiveStatus, op run.Operation) string {
	c, _ := run.Offers(run.NextCommands(s, run.Situation{EffectiveStatus: effective, Dir: s.RunID}), op)
	return strings.Join(shell.Next("starter", []run.Command{c}), "")
}

// undecidedError refuses to continue a run before an operator has answered its open question.
func undecidedError(s run.State, effective run.EffectiveStatus, q run.Question) error {
	return &RefusedError{
		Verb: contract.VerbResume,
		Why: fmt.Sprintf("the question %s is not decided. To decide it, which continues the run: %s", q.ID,
			toType(s, effective, run.Decide)),
		Conflict: run.Conflict(effective.Status, run.Resume, run.Terms{Undecided: true}), Undecided: true,
	}
}

// insisted treats an unreachable server as lost if the operator forces the resume.
func insisted(s run.EffectiveStatus, r Reopening) run.EffectiveStatus {
	if s.Liveness != run.LiveUnknown || !r.Force {
		return s
	}
	return run.NewEffectiveStatus(s.Recorded, run.LiveGone, "its Temporal server is gone for good: "+r.Reason)
}

// reopening returns the input of the new epoch's first execution, from the directory alone.
func (o Operator) reopening(ctx context.Context, dir rundir.Dir, claim run.Claim, now rundir.Continuation,
	effective run.EffectiveStatus, r Reopening) (contract.Input, int, error) {
	var in contract.Input
	start := now.Start
	s, err := o.openStore(ctx, claim)
	if err != nil {
		return in, 0, err
	}
	restored, err := rundir.Import(ctx, dir, blobs.Of(s), start, now.State)
	if err != nil {
		return in, restored, err
	}
	if start, err = inForce(ctx, s, start, now.State); err != nil {
		return in, restored, err
	}
	scale, err := timeScale(ctx, s, start.Plan)
	if err != nil {
		return in, restored, err
	}
	in = o.target(dir, claim, start, scale)
	if in.Projects, err = o.reopenedProjects(ctx, s, dir, start); err != nil {
		return in, restored, err
	}
	in.Snapshot = &contract.Snapshot{State: now.State, Tail: now.Tail}
	if last, err := rundir.SegmentEnd(ctx, blobs.Of(s),
		now.Meta.SegmentHead); err == nil { // else the whole journal is stored again
		in.Snapshot.Head, in.Snapshot.Archived = now.Meta.SegmentHead, last
	}
	cluster, err := o.cluster(ctx)
	if err != nil {
		return in, restored, fmt.Errorf("ask Temporal for its cluster: %w", err)
	}
	in.Reopen = &contract.Reopen{
		Epoch: now.Epoch, From: effective.Status, By: o.By, Note: r.Note, Force: r.Force,
		Reason: r.Reason, Now: r.Now, Host: o.Host, Build: o.Build,
		Decision: r.Decision, Amend: r.Amend, Cluster: cluster, Embedded: o.Embedded, Address: o.address(),
		Repaired: now.Broken,
	}
	if effective.Status == run.Interrupted && effective.Recorded != run.Interrupted {
		in.Reopen.Interruption = effective.Detail
	}
	in.Reopen.Unended = effective.Status == run.Halted && !now.Ended
	return in, restored, nil
}

func timeScale(ctx context.Context, s *store.Store, plan string) (float64, error) {
	var p pipeline.Plan
	if err := s.GetJSON(ctx, store.Digest(plan), &p); err != nil {
		return 0, fmt.Errorf("read the plan: %w", err)
	}
	return p.TimeScale, nil
}

// openStore opens the store of a run. A file store of another host is replaced by this host's.
func (o Operator) openStore(ctx context.Context, claim run.Claim) (*store.Store, error) {
	return OpenStore(ctx, o.storeOf(claim))
}

func (o Operator) storeOf(claim run.Claim) string { return o.storeAt(claim.Store, claim.Host) }

func (o Operator) storeAt(url, host string) string {
	if host != o.Host && HostBound(url) {
		return o.Settings.Store
	}
	return url
}

// target returns the part of an input that names the places of the work.
func (o Operator) target(dir rundir.Dir, claim run.Claim, start run.RunStart, scale float64) contract.Input {
	q := contract.HostQueues(claim.TaskQueue, o.Host)
	in := contract.Input{
		Target: contract.Target{RunID: claim.RunID, Dir: dir.Root, Store: o.storeOf(claim)},
		Claim:  claim, Start: start, DirQueue: q.Dir, Calls: q.HostCalls,
		Options: contract.Options{
			HeartbeatMS: o.Settings.Heartbeat.Milliseconds(), TimeScale: scale, ContinueAfter: o.Settings.ContinueAfter,
			Attributes: o.Attributes, RFCStatus: o.Attributes, Turns: true,
		},
	}
	if !HostBound(in.Target.Store) {
		in.Calls = contract.CallQueuePrefix(contract.StoreQueue(claim.TaskQueue, in.Target.Store))
	}
	return in
}

// execute starts an execution of a run.
func (o Operator) execute(ctx context.Context, in contract.Input, reuse enumspb.WorkflowIdReusePolicy) error {
	in, opts, undo, err := o.prepared(ctx, in)
	if err != nil {
		return err
	}
	opts.WorkflowIDReusePolicy = reuse
	if err := o.routed(ctx, opts.TaskQueue); err != nil {
		return errors.Join(err, undo())
	}
	_, err = o.Client.ExecuteWorkflow(ctx, opts, contract.PipelineWorkflow, o.hiddenInput(in))
	if already := (*serviceerror.WorkflowExecutionAlreadyStarted)(nil); errors.As(err, &already) {
		return errors.Join(err, undo()) // the environment of the faster call is used
	}
	return err
}

// prepared does what precedes the start of an execution: the run is known in its store, and its calls get the
// environment.
func (o Operator) prepared(ctx context.Context, in contract.Input) (out contract.Input,
	opts client.StartWorkflowOptions, undo func() error, err error) {
	if err := register(ctx, in); err != nil {
		return in, opts, nil, err
	}
	if undo, err = o.handOverTo(ctx, in); err != nil {
		return in, opts, nil, err
	}
	queue, needs, err := needs(ctx, in)
	if err != nil {
		return in, opts, nil, errors.Join(err, undo())
	}
	opts = client.StartWorkflowOptions{
		ID: in.Claim.RunID, TaskQueue: queue, WorkflowExecutionErrorWhenAlreadyStarted: true,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		StaticSummary:            summary(o.hiddenInput(in)),
		StaticDetails: fmt.Sprintf("%s; directory `%s`; store `%s`", sizeOf(in.Start), in.Target.Dir,
			config.Masked(in.Target.Store)),
	}
	opts.Memo = map[string]any{
		"directory": in.Target.Dir, "store": config.Masked(in.Target.Store), "definition": in.Start.Definition,
		"config_hash": in.Start.ConfigHash,
		"host":        o.Host, "build": o.Build, "environment": in.Start.Environment,
	}
	if needs != nil {
		opts.Memo[MemoNeeds] = needs
	}
	if from, mode := in.Start.Origin(); from != "" {
		opts.Memo["source"], opts.Memo["mode"] = from, mode
	}
	if o.Attributes {
		opts.TypedSearchAttributes = workflows.InitialSearchAttributes(in)
	}
	return in, opts, undo, nil
}

// sizeOf counts what a run has to do, in its words.
func sizeOf(s run.RunStart) string {
	if s.Wording == run.WordingStages {
		return run.Plural(run.Stages(s.Stages), "stage")
	}
	if s.TotalPasses == 1 {
		return "1 pass"
	}
	return fmt.Sprintf("%d passes", s.TotalPasses)
}

// summary recognises a run in the list of the Web UI: its pipeline, directory and task. Temporal allows 400 bytes.
func summary(in contract.Input) string {
	text := fmt.Sprintf("%s in %s", in.Start.Pipeline, in.Target.Dir)
	if in.Start.Task != in.Start.Pipeline {
		text += ": " + run.OneLine(in.Start.Task)
	}
	const most = 300
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
