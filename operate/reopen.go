package operate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/passbook-run/passbook/activities"
	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/store"
	"github.com/passbook-run/passbook/work"
	"github.com/passbook-run/passbook/workflows"
)

// Reopening says why and how a closed run is to go on.
type Reopening struct {
	Force  bool   // although its settings or its status speak against it
	Reason string // of the force; it is recorded
	Note   string

	Decision *workflows.Message // of the hand-off that the last epoch left undecided
}

// Reopened says how a run goes on.
type Reopened struct {
	RunID    string
	Epoch    int
	From     run.Status
	Restored int // files that were put into the store again, because it had lost what the run needs

	Overruled []string            // differences between the run's policy and the settings that force overrules
	Repaired  []run.JournalDamage // lines of the journal that were written again, as they were
}

// Reopen lets a failed, cancelled or interrupted run go on in a new epoch, from the last thing that settled: the same run, the same directory
// (requirement 003 §6). Lines that its directory lacks are first written again as they were. Of several calls at once one wins. A refusal changes nothing
// in the directory.
func (o Operator) Reopen(ctx context.Context, dir rundir.Dir, r Reopening) (Reopened, error) {
	claim, err := dir.Claim()
	if err != nil {
		return Reopened{}, err
	}
	if err := dir.MayWrite(); err != nil {
		return Reopened{}, err
	}
	c, stands, err := o.catchUp(ctx, dir, claim)
	if err != nil {
		return Reopened{}, err
	}
	if lost := dir.Lost(c.State); lost != nil && stands.Liveness != run.LiveOpen && (stands.Liveness != run.LiveUnknown || r.Force) {
		return Reopened{}, lost
	}
	if err := mayReopen(c.State, stands, r); err != nil {
		return Reopened{}, err
	}
	overruled, err := o.reevaluated(ctx, claim, dir, c, r)
	if err != nil {
		return Reopened{}, err
	}
	stands = insisted(stands, r)
	in, restored, err := o.reopening(ctx, dir, claim, c, stands, r)
	if err != nil {
		return Reopened{}, err
	}
	in.Reopen.Overruled = overruled
	if err := o.openEpoch(ctx, dir, claim, c, stands, in, workflows.VerbResume); err != nil {
		return Reopened{}, err
	}
	return Reopened{RunID: claim.RunID, Epoch: in.Reopen.Epoch, From: stands.Status, Restored: restored, Overruled: overruled, Repaired: c.Broken}, nil
}

// reevaluated compares what the run was allowed at its start with today's settings (requirement 003 §6). Force overrules the differences, which it
// gives, if the settings allow force.
func (o Operator) reevaluated(ctx context.Context, claim run.Claim, dir rundir.Dir, c rundir.Continuation, r Reopening) (overruled []string, err error) {
	if r.Force {
		if err := mayForce(o.Settings); err != nil {
			return nil, err
		}
	}
	p, err := o.policyAtStart(ctx, claim, dir, c.Start)
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

// policyAtStart is what the run was allowed when it started.
func (o Operator) policyAtStart(ctx context.Context, claim run.Claim, dir rundir.Dir, start run.RunStart) (Policy, error) {
	var p Policy
	blobs, err := o.openStore(ctx, claim)
	if err != nil {
		return p, err
	}
	defer blobs.Close()
	if err := blobs.GetJSON(ctx, store.Digest(start.Policy), &p); err != nil {
		raw, rerr := os.ReadFile(dir.Path(rundir.PolicyFile)) // a store that has lost it: the directory has a copy
		if rerr != nil || json.Unmarshal(raw, &p) != nil {
			return p, fmt.Errorf("read what run %s was allowed: %w", claim.RunID, err)
		}
	}
	return p, nil
}

func refused(format string, args ...any) error {
	return &RefusedError{Verb: workflows.VerbResume, Why: fmt.Sprintf(format, args...)}
}

// conflict refuses a resume that the run's status does not allow.
func conflict(s run.State, stands run.Standing, format string, args ...any) error {
	_, undecided := s.Asks()
	c := run.Conflict(stands.Status, run.Resume, run.Terms{Undecided: undecided})
	return &RefusedError{Verb: workflows.VerbResume, Why: fmt.Sprintf(format, args...), Conflict: c}
}

// catchUp gives what the next epoch of a run continues: the journal of its directory, which must be no copy, as Temporal's history, the store and
// the chain say that it was written. It reads only. Of a run whose workflow is open it gives what the directory says.
func (o Operator) catchUp(ctx context.Context, dir rundir.Dir, claim run.Claim) (rundir.Continuation, run.Standing, error) {
	var c rundir.Continuation
	if err := AtHome(o.Settings.StateDir, claim, dir); err != nil {
		return c, run.Standing{}, err
	}
	now, err := dir.Now()
	if err != nil {
		return c, run.Standing{}, err
	}
	stands := o.Standing(ctx, dir.Seat(claim), now.State.Status)
	if stands.Liveness == run.LiveOpen {
		c.Now = now
		return c, stands, nil
	}
	s, err := o.openStore(ctx, claim)
	if err != nil {
		return c, stands, err
	}
	defer s.Close()
	known, head, err := o.inHistory(ctx, s, claim.RunID, stands)
	if err != nil {
		return c, stands, err
	}
	c, err = dir.Continue(ctx, activities.Blobs(s), known)
	var other *rundir.OtherEventsError
	switch {
	case errors.As(err, &other):
		return c, stands, fmt.Errorf("bring %s in line with Temporal's history: %w", dir.Root, err)
	case errors.As(err, new(*rundir.DamagedError)):
		return c, stands, cmp.Or(dir.Lost(now.State), err)
	case err != nil:
		return c, stands, err
	}
	if head != "" {
		c.Meta.SegmentHead = head
	}
	return c, run.Stands(c.State.Status, stands.Liveness, stands.Detail), nil
}

// inHistory gives the journal that Temporal's history of a closed workflow has, with the segments in the store, and the newest of these. nil: they do
// not have it from its first event on, so that the directory alone has to do.
func (o Operator) inHistory(ctx context.Context, s *store.Store, runID string, stands run.Standing) (lines []string, head string, err error) {
	if stands.Liveness != run.LiveClosed {
		return nil, "", nil
	}
	src, err := activities.TemporalHistory{Client: o.Client, Converter: o.Converter}.Source(ctx, runID, "")
	if err != nil {
		return nil, "", err
	}
	lines, err = src.Lines(ctx, activities.Blobs(s))
	if errors.As(err, new(*rundir.HistoryGapError)) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, rundir.ErrDamaged) {
		return nil, "", nil
	}
	return lines, src.Head, err
}

// mayReopen holds the preconditions of requirement 003 §6.
func mayReopen(s run.State, stands run.Standing, r Reopening) error {
	q, undecided := s.Asks()
	switch {
	case stands.Status != run.Done && unexplained(r):
		return refused(needsReason)
	case stands.Liveness == run.LiveUnknown && !r.Force:
		return refused("whether the run is alive is unknown (%s). If that server is gone for good, resume with --force --reason TEXT", stands.Detail)
	case stands.Liveness == run.LiveOpen:
		return conflict(s, stands, "the run is %s and its workflow is open", stands.Status)
	case stands.Status == run.Unknown:
		return conflict(s, stands, "the run has not begun: start it with `starter run`")
	case stands.Status == run.Done:
		return conflict(s, stands, "the run is done, and done is final: start another run, or fork this one")
	case stands.Status == run.Halted && !r.Force:
		return conflict(s, stands, "the run was halted (%s): to go on all the same, resume with --force --reason TEXT", s.Reason)
	case undecided && r.Decision == nil:
		return undecidedError(stands, q)
	case s.Checkpoint == nil:
		return refused("the run has no checkpoint to go on from")
	}
	if r.Decision != nil && !undecided {
		return refused("nothing waits for a decision")
	}
	if r.Decision != nil {
		return workflows.MayDecide(s, *r.Decision)
	}
	return run.May(insisted(stands, r).Status, run.Resume, run.Terms{Forced: r.Force})
}

// needsReason is what is said of force without a reason, wherever it is used.
const needsReason = "--force needs --reason TEXT, which is recorded"

func unexplained(r Reopening) bool { return r.Force && strings.TrimSpace(r.Reason) == "" }

// undecidedError refuses to continue a run before an operator has decided what it left open.
func undecidedError(stands run.Standing, q run.Question) error {
	return &RefusedError{
		Verb: workflows.VerbResume, Why: fmt.Sprintf("the question %s is not decided: decide it first (starter decide), which continues the run", q.ID),
		Conflict: run.Conflict(stands.Status, run.Resume, run.Terms{Undecided: true}), Undecided: true,
	}
}

// insisted takes the operator's word that a server out of reach is gone for good.
func insisted(s run.Standing, r Reopening) run.Standing {
	if s.Liveness != run.LiveUnknown || !r.Force {
		return s
	}
	return run.Stands(s.Recorded, run.LiveGone, "its Temporal server is gone for good: "+r.Reason)
}

// reopening is the input of the new epoch's first execution: what the directory holds, and nothing from elsewhere.
func (o Operator) reopening(ctx context.Context, dir rundir.Dir, claim run.Claim, now rundir.Continuation, stands run.Standing, r Reopening) (workflows.Input, int, error) {
	var in workflows.Input
	start := now.Start
	s, err := o.openStore(ctx, claim)
	if err != nil {
		return in, 0, err
	}
	defer s.Close()
	restored, err := dir.Import(ctx, activities.Blobs(s), start, now.State)
	if err != nil {
		return in, restored, err
	}
	scale, err := timeScale(ctx, s, start.Plan)
	if err != nil {
		return in, restored, err
	}
	in = o.target(dir, claim, start, scale)
	in.Carry = &workflows.Carry{State: now.State, Tail: now.Tail}
	if last, err := rundir.SegmentEnd(ctx, activities.Blobs(s), now.Meta.SegmentHead); err == nil { // else the whole journal is stored again
		in.Carry.Head, in.Carry.Sealed = now.Meta.SegmentHead, last
	}
	cluster, err := o.cluster(ctx)
	if err != nil {
		return in, restored, fmt.Errorf("ask Temporal for its cluster: %w", err)
	}
	in.Reopen = &workflows.Reopen{
		Epoch: now.State.Epoch + 1, From: stands.Status, By: o.By, Note: r.Note, Force: r.Force, Why: r.Reason, Host: o.Host, Build: o.Build,
		Decision: r.Decision, Cluster: cluster, Embedded: o.Embedded, Address: o.address(), Repaired: now.Broken,
	}
	if stands.Status == run.Interrupted && stands.Recorded != run.Interrupted {
		in.Reopen.Torn = stands.Detail
	}
	return in, restored, nil
}

func timeScale(ctx context.Context, s *store.Store, plan string) (float64, error) {
	var p pipeline.Plan
	if err := s.GetJSON(ctx, store.Digest(plan), &p); err != nil {
		return 0, fmt.Errorf("read the plan: %w", err)
	}
	return p.TimeScale, nil
}

// openStore opens the store that a run uses. A file store of another host is replaced by this host's.
func (o Operator) openStore(ctx context.Context, claim run.Claim) (*store.Store, error) {
	return store.Open(ctx, o.storeOf(claim))
}

func (o Operator) storeOf(claim run.Claim) string { return o.storeAt(claim.Store, claim.Host) }

func (o Operator) storeAt(url, host string) string {
	if host != o.Host && HostBound(url) {
		return o.Settings.Store
	}
	return url
}

// target is the part of an input that says where the work is done.
func (o Operator) target(dir rundir.Dir, claim run.Claim, start run.RunStart, scale float64) workflows.Input {
	q := work.QueuesOf(claim.TaskQueue, o.Host)
	in := workflows.Input{
		Target: work.Target{RunID: claim.RunID, Dir: dir.Root, Store: o.storeOf(claim)},
		Claim:  claim, Start: start, DirQueue: q.Dir, Calls: q.HostCalls,
		Options: workflows.Options{
			HeartbeatMS: o.Settings.Heartbeat.Milliseconds(), TimeScale: scale, ContinueAfter: o.Settings.ContinueAfter, Attributes: o.Attributes,
		},
	}
	if !HostBound(in.Target.Store) {
		in.Calls = work.CallsOf(work.StoreQueue(claim.TaskQueue, in.Target.Store))
	}
	return in
}

// execute starts an execution of a run.
func (o Operator) execute(ctx context.Context, in workflows.Input, reuse enumspb.WorkflowIdReusePolicy) error {
	if err := register(ctx, in); err != nil {
		return err
	}
	undo, err := o.handOverTo(ctx, in)
	if err != nil {
		return err
	}
	queue, needs, err := needs(ctx, in)
	if err != nil {
		return errors.Join(err, undo())
	}
	opts := client.StartWorkflowOptions{
		ID: in.Claim.RunID, TaskQueue: queue, WorkflowExecutionErrorWhenAlreadyStarted: true,
		WorkflowIDReusePolicy:    reuse,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		StaticSummary:            fmt.Sprintf("%s in %s", in.Start.Pipeline, in.Target.Dir),
		StaticDetails:            fmt.Sprintf("%d passes; directory `%s`; store `%s`", in.Start.TotalPasses, in.Target.Dir, config.Masked(in.Target.Store)),
	}
	opts.Memo = map[string]any{
		"directory": in.Target.Dir, "store": config.Masked(in.Target.Store), "definition": in.Start.Definition, "config_hash": in.Start.ConfigHash,
		"host": o.Host, "build": o.Build, "environment": in.Start.Environment,
	}
	if needs != nil {
		opts.Memo[MemoNeeds] = needs
	}
	if from, mode := in.Start.Origin(); from != "" {
		opts.Memo["source"], opts.Memo["mode"] = from, mode
	}
	if name := in.Claim.Schedule.Name; name != "" {
		opts.Memo["schedule"] = name
	}
	if o.Attributes {
		opts.TypedSearchAttributes = workflows.FirstAttributes(in.Start)
	}
	_, err = o.Client.ExecuteWorkflow(ctx, opts, workflows.Name, o.hiddenInput(in))
	if already := (*serviceerror.WorkflowExecutionAlreadyStarted)(nil); errors.As(err, &already) {
		return errors.Join(err, undo()) // the environment of who was faster counts
	}
	return err
}
