package operations

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/redact"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// Operator starts and controls runs on this host through Temporal.
type Operator struct {
	Client    client.Client
	Address   string // of the server, for messages
	Namespace string
	Settings  config.Settings
	Host      string
	Build     string
	By        string   // the user, for the journal
	Environ   []string // NAME=value; calls of started and resumed runs get what is allowed of it; nil: nothing
	Inherit   bool     // a run keeps the environment that it has, instead of Environ

	Converter  converter.DataConverter // of the client; nil: payloads are not encrypted
	Redact     *redact.Redactor        // of all texts that are sent; nil: nothing is redacted
	Request    string                  // id of a request that may be repeated; empty: it has none
	Embedded   bool                    // the server is the embedded one of this host
	Attributes bool                    // the namespace has the search attributes

	WorkerStarts bool // a worker of this machine has just started: queues without pollers mean nothing
}

// Started is the result of a start.
type Started struct {
	RunID    string
	Dir      rundir.Dir
	Status   run.Status
	New      bool
	Reopened *Reopened // set if the run was interrupted
	Amended  *Amended  // set if the run has adopted the definition
	Warnings []string
}

// LiveError reports that the run of a directory is open, so an operation on it is refused.
type LiveError struct{ Dir, RunID, What string }

func (e *LiveError) Error() string {
	return fmt.Sprintf("%s: run %s in %s is live; nothing was changed. Pause or end it first (starter pause %s), or "+
		"take another --output-dir", e.What, e.RunID, e.Dir, shell.Quote(e.Dir))
}

// Start starts a run of a definition in a directory, or finds the run that the directory contains. A claim without a
// workflow is adopted; a finished run stays unchanged. Starts of this host in one directory run one after another,
// because between its claim and its workflow a run looks abandoned.
func (o Operator) Start(ctx context.Context, def Definition, dir rundir.Dir) (Started, error) {
	if f := def.Follow; f != nil {
		if err := MayExecute(ctx, f.Dir, f.Claim); err != nil { // its repository and store
			return Started{}, err
		}
	}
	turn, err := o.turn(ctx, dir)
	if err != nil {
		return Started{}, err
	}
	st, err := o.start(ctx, def, dir)
	if _, none := dir.Claim(); err != nil && errors.Is(none, rundir.ErrNoRun) {
		return st, errors.Join(err, turn.Remove()) // nothing was started here
	}
	return st, errors.Join(err, turn.Unlock())
}

// turn waits until no other start of this host uses a directory. It writes nothing there.
func (o Operator) turn(ctx context.Context, dir rundir.Dir) (*disk.Lock, error) {
	path, err := resolved(dir.Root)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(o.Settings.StateDir, "starts")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	name := string(store.DigestOf([]byte(path)))[:16] + ".lock"
	return (disk.Disk{}).WaitLock(ctx, filepath.Join(folder, name), disk.Self("start on "+path, time.Now()))
}

func (o Operator) start(ctx context.Context, def Definition, dir rundir.Dir) (Started, error) {
	claim, err := dir.Claim()
	switch {
	case errors.Is(err, rundir.ErrNoRun):
		if err := rundir.Usable(dir); err != nil {
			return Started{}, err
		}
		if err := o.CheckStart(ctx, def, dir); err != nil {
			return Started{}, err
		}
		return o.fresh(ctx, def, dir)
	case err != nil:
		return Started{}, err
	case claim.MemberOf != run.Membership{}:
		return Started{}, errOfProject(dir, claim)
	case run.OfLane(claim.RunID) != "":
		return Started{}, &RefusedError{Verb: "run", Why: fmt.Sprintf("%s is the directory of a lane of run %s; nothing was "+
			"changed. Take another --output-dir", dir.Root, run.OfLane(claim.RunID))}
	case def.Follow != nil && claim.ThreadID != def.Follow.Claim.ThreadID:
		return Started{}, &LiveError{Dir: dir.Root, RunID: claim.RunID, What: "a follow-up needs a separate directory"}
	case def.Changed == ChangedFresh:
		return o.startFresh(ctx, def, dir, claim)
	}
	return o.found(ctx, def, dir, claim)
}

// ownPrograms is the environment in which the agents of a run on this host are looked up; nil: others may make its calls.
func (o Operator) ownPrograms() []string {
	if !o.Settings.LocalStore() {
		return nil
	}
	return o.Environ
}

// startFresh archives the run of a directory, unless it is live, and starts a new one, because an operator asks for it.
func (o Operator) startFresh(ctx context.Context, def Definition, dir rundir.Dir, claim run.Claim) (Started, error) {
	now, err := dir.Now()
	if err != nil {
		return Started{}, err
	}
	effective := o.EffectiveStatus(ctx, dir.CurrentClaim(claim), now.State.Status)
	if effective.Liveness == run.LiveOpen && now.State.Status.Class() == run.OperatorPause {
		if err := o.CheckStart(ctx, def, dir); err != nil { // before the run is ended
			return Started{}, err
		}
		if effective, err = o.ended(ctx, dir, claim); err != nil {
			return Started{}, err
		}
	}
	if effective.Liveness == run.LiveOpen || effective.Liveness == run.LiveUnknown && !effective.Recorded.Closed() {
		return Started{}, &LiveError{Dir: dir.Root, RunID: claim.RunID, What: "--fresh"}
	}
	if err := o.CheckStart(ctx, def, dir); err != nil {
		return Started{}, err
	}
	to, err := dir.Archive(ctx)
	if err != nil {
		return Started{}, fmt.Errorf("archive the run in %s: %w", dir.Root, err)
	}
	text, where := run.ArchivedState, "The old run is in "+to
	if claim.ConfigHash != def.Plan.ConfigHash {
		text = fmt.Sprintf("Config changed (old: %s, new: %s). %s", claim.ConfigHash, def.Plan.ConfigHash, text)
		def.Found = append(def.Found, run.ErrorNoted{Context: "start", Category: run.CategoryConfigMismatch,
			Message: text, Diagnostics: where, Recovered: true})
	}
	def.Warnings = append(def.Warnings, text, where)
	return o.fresh(ctx, def, dir)
}

// ended cancels the run of a directory, which does not work at the moment, and waits until its workflow is closed.
func (o Operator) ended(ctx context.Context, dir rundir.Dir, claim run.Claim) (run.EffectiveStatus, error) {
	if err := o.Cancel(ctx, dir); err != nil {
		return run.EffectiveStatus{}, err
	}
	const wait, interval = 20 * time.Second, 100 * time.Millisecond
	late := time.After(wait)
	for {
		now, effective, err := o.Observe(ctx, dir, claim)
		if err != nil || effective.Liveness != run.LiveOpen && now.State.Status.Closed() {
			return effective, err
		}
		select {
		case <-ctx.Done():
			return effective, context.Cause(ctx)
		case <-late:
			return effective, nil // it is refused as live
		case <-time.After(interval):
		}
	}
}

// found continues the run of a directory. A run whose workflow was lost continues in a new epoch.
func (o Operator) found(ctx context.Context, def Definition, dir rundir.Dir, claim run.Claim) (Started, error) {
	st := Started{RunID: claim.RunID, Dir: dir, Status: run.Pending}
	if err := AtHome(o.Settings.StateDir, claim, dir); err != nil {
		return st, err
	}
	now, effective, err := o.Observe(ctx, dir, claim)
	if err != nil {
		return st, err
	}
	if now.Tail.Seq == 0 && effective.Liveness == run.LiveOpen { // another start was faster
		if now, err = waitFor(ctx, dir, func(n rundir.Now) bool { return n.Tail.Seq > 0 }); err != nil {
			return st, err
		}
		if now.Tail.Seq == 0 && claim.ConfigHash != def.Plan.ConfigHash {
			return st, &LiveError{Dir: dir.Root, RunID: claim.RunID, What: "another definition"}
		}
		effective = o.EffectiveStatus(ctx, dir.CurrentClaim(claim), now.State.Status)
	}
	st.Status = effective.Status
	lost := rundir.Lost(dir, now.State)
	var amends *contract.Message
	if now.Tail.Seq > 0 && lost == nil {
		if st.Amended, amends, err = o.unchanged(ctx, def, dir, claim, now, effective); err != nil {
			return st, err
		}
		sent, before := st.Amended != nil && amends == nil, now.Tail.Seq
		now, err = waitFor(ctx, dir, func(n rundir.Now) bool { return !sent || n.Tail.Seq > before })
		if err != nil {
			return st, err
		}
	}
	switch {
	case lost == nil && now.Tail.Seq == 0 && hasEnded(effective):
		// Only claimed: the starter died, or the workflow was ended before its first event.
		if claim.ConfigHash != def.Plan.ConfigHash {
			return o.startFresh(ctx, def, dir, claim)
		}
		if err := o.CheckStart(ctx, def, dir); err != nil {
			return st, err
		}
		stored, err := upload(ctx, def, dir, claim.Store)
		if err != nil {
			return st, err
		}
		return o.launch(ctx, def, dir, claim, stored)
	case effective.Liveness == run.LiveOpen && (causeGone(now.State) || fixed(def, now.State)):
		if _, err := o.SendUpdate(ctx, dir, contract.VerbResume, contract.Message{Note: "run"}); err != nil {
			return st, err
		}
		// the pause that has just ended is not shown
		_, err := waitFor(ctx, dir, func(n rundir.Now) bool { return n.State.Status != run.Paused })
		return st, err
	case effective.Liveness == run.LiveOpen, effective.Recorded.Closed() && amends == nil:
		return st, nil
	}
	re, err := o.Reopen(ctx, dir, Reopening{Note: "run", Amend: amends})
	if err == nil {
		st.Reopened = &re
	}
	return st, err
}

// waitFor waits some seconds until the state of a directory fits, and returns it in any case: events are written after
// a message is accepted.
func waitFor(ctx context.Context, dir rundir.Dir, fits func(rundir.Now) bool) (rundir.Now, error) {
	const wait, interval = 5 * time.Second, 50 * time.Millisecond
	late := time.After(wait)
	for {
		now, err := dir.Now()
		if err != nil || fits(now) {
			return now, err
		}
		select {
		case <-ctx.Done():
			return now, ctx.Err()
		case <-late:
			return now, nil
		case <-time.After(interval):
		}
	}
}

// causeGone reports whether the cause of a pause no longer exists: the budget was raised, or the disk has space. A
// pause that an operator requested or has to review stays.
func causeGone(s run.State) bool {
	if s.Status != run.Paused {
		return false
	}
	return s.Reason == run.DiskFull || s.Reason == run.BudgetThreshold && !s.BudgetShort()
}

// fixed reports whether an operator has amended a run that is paused because a pass, a gate or its setup failed.
func fixed(def Definition, s run.State) bool {
	return def.Changed == ChangedAmend && s.Status == run.Paused &&
		slices.Contains([]string{run.PassFailed, run.GateFailed, run.SetupFailed}, s.Reason)
}

// Open reports whether Temporal has an open workflow of a run.
func (o Operator) Open(ctx context.Context, runID string) (bool, error) {
	d, err := o.Client.DescribeWorkflowExecution(ctx, runID, "")
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask Temporal about run %s: %w", runID, err)
	}
	return d.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
}

// fresh claims an empty directory and starts a run.
func (o Operator) fresh(ctx context.Context, def Definition, dir rundir.Dir) (Started, error) {
	id, err := def.runID()
	if err != nil {
		return Started{}, err
	}
	cluster, err := o.cluster(ctx)
	if err != nil {
		return Started{}, fmt.Errorf("ask Temporal for its cluster: %w", err)
	}
	claim := run.Claim{
		Version: run.ClaimVersion, RunID: id.String(), ThreadID: id.String(), CreatedAt: run.Time(time.Now()),
		Pipeline:   def.Plan.Pipeline,
		ConfigHash: def.Plan.ConfigHash, Store: o.Settings.Store, Host: o.Host, Namespace: o.Namespace,
		TaskQueue: o.Settings.TaskQueue,
		Cluster:   cluster, Embedded: o.Embedded, Address: o.address(),
	}
	for _, p := range def.Plan.Projects {
		claim.Projects = append(claim.Projects, p.Alias)
	}
	if def.Follow != nil {
		claim.ThreadID, claim.Store = def.Follow.Claim.ThreadID, def.Follow.Claim.Store
	}
	def.Warnings = append(append(def.Warnings, o.secretInputs(def)...), BudgetWarnings(def.Plan)...)
	if o.Settings.LocalStore() {
		def.Warnings = append(def.Warnings, def.SandboxWarnings(o.Settings.Sandbox, o.Environ)...)
	}
	// The store comes first: a directory that was claimed for an unwritable store would be bound to it.
	stored, err := upload(ctx, def, dir, claim.Store)
	if err != nil {
		return Started{}, err
	}
	begun, err := o.take(dir, claim)
	if err != nil {
		return Started{}, err
	}
	begun.source = repositoryOf(def)
	st, err := o.launch(ctx, def, dir, claim, stored)
	return st, begun.refused(ctx, err)
}

// upload stores the inputs of a run.
func upload(ctx context.Context, def Definition, dir rundir.Dir, url string) (Stored, error) {
	s, err := openStoreOn(ctx, dir.Disk, url)
	if err != nil {
		return Stored{}, err
	}
	stored, err := def.Upload(ctx, s)
	if err != nil {
		return Stored{}, fmt.Errorf("store the inputs in %s: %w", url, err)
	}
	return stored, nil
}

// launch creates the run's checkout, if it has one, and starts the workflow.
func (o Operator) launch(ctx context.Context, def Definition, dir rundir.Dir, claim run.Claim,
	stored Stored) (Started, error) {
	if err := index(dir.Disk, o.Settings.StateDir, claim.RunID, dir.Root); err != nil {
		return Started{}, err
	}
	kept, err := def.copyConversation(o.Settings.StateDir, claim.RunID)
	if err != nil {
		return Started{}, err
	}
	if stored.Workspace, err = o.prepareIn(ctx, &def, dir, claim); err != nil {
		return Started{}, err
	}
	if stored.Adopted, err = o.adopted(ctx, def, claim, kept, stored.Workspace); err != nil {
		return Started{}, err
	}
	in := o.input(ctx, def, dir, claim, stored)
	var begun []*beginning
	if len(def.Plan.Projects) > 0 {
		if in, begun, err = o.withProjects(ctx, &def, dir, claim, in); err != nil {
			return Started{}, removeRefused(ctx, begun, err)
		}
	}
	err = ofRequest(ctx, o.execute(ctx, in, enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY))
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	if err != nil && !errors.As(err, &already) {
		return Started{}, removeRefused(ctx, begun, fmt.Errorf("start run %s: %w", claim.RunID, err))
	}
	if err != nil { // another start was faster, or the run has ended and its files are missing
		if open, err := o.Open(ctx, claim.RunID); err != nil || !open {
			return Started{}, errors.Join(err,
				fmt.Errorf("run %s has ended, and its files are missing from %s: rebuild them with `starter rebuild "+
					"%s --output-dir %s`",
					claim.RunID, dir.Root, claim.RunID, shell.Quote(dir.Root)))
		}
	}
	return Started{RunID: claim.RunID, Dir: dir, Status: run.Pending, New: true, Warnings: def.Warnings}, nil
}

func (o Operator) input(ctx context.Context, def Definition, dir rundir.Dir, claim run.Claim,
	st Stored) contract.Input {
	start := startEvent(def, claim, st)
	start.Tenant, start.Environment, start.Host, start.Build = o.Namespace, o.Settings.Environment, o.Host, o.Build
	start.Agents = capabilities(ctx, def.Plan.Agents, o.Build)
	return o.target(dir, claim, start, def.Plan.TimeScale)
}

func startEvent(def Definition, claim run.Claim, st Stored) run.RunStart {
	p := def.Plan
	ev := run.RunStart{
		Task: taskOf(def), RunKind: "pipeline", Pipeline: p.Pipeline, Wording: run.Wording(p.Wording),
		RunID: claim.RunID, ThreadID: claim.ThreadID,
		Epoch:     1,
		CreatedAt: claim.CreatedAt, Definition: st.Definition, Plan: st.Plan, Inputs: st.Inputs, Policy: st.Policy,
		ConfigHash: p.ConfigHash,
		Warnings:   def.Warnings, Found: def.Found, Budget: contract.BudgetOf(p),
	}
	if p.Artifact != nil && st.Seed != nil {
		ev.Artifact = &run.ArtifactRef{File: p.Artifact.File, Seed: *st.Seed}
	}
	ev.Workspace, ev.Snapshots, ev.Kind, ev.Delivers = st.Workspace, p.Snapshots, p.Kind, p.Delivery.Delivers()
	ev.Project = def.Home
	if st.Workspace != nil {
		ev.Project = st.Workspace.Source
	}
	first := 0
	if def.Follow != nil && def.Follow.From != nil {
		first = def.Follow.From.Stage
	}
	ev.Adopted, ev.Forge = st.Adopted, def.forgeRef()
	ev = ev.Under(ev.PlanRef(), contract.TermsOf(p, first))
	if f := def.Follow; f != nil {
		ev.Parent, ev.From, ev.Replies = &run.Parent{RunID: f.Claim.RunID, Mode: f.Mode}, f.From, f.Replies
		ev.Brief = st.Brief
		if ev.Artifact != nil && f.Artifact != nil {
			ev.Artifact.Seed = *f.Artifact
		}
	}
	for _, n := range p.Notes {
		ev.Notes = append(ev.Notes, run.NoteRef{Name: n.Name, File: n.File})
	}
	return ev
}
