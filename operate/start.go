package operate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/durable"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/redact"
	"github.com/passbook-run/passbook/repo"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/store"
	"github.com/passbook-run/passbook/workflows"
)

// Operator speaks to Temporal for people on this host.
type Operator struct {
	Client    client.Client
	Address   string // of the server, for people
	Namespace string
	Settings  config.Settings
	Host      string
	Build     string
	By        string   // who is at work, for the journal
	Environ   []string // NAME=value: what of it is allowed is handed over to the calls of the runs that are started or resumed; nil: nothing is

	Converter  converter.DataConverter // the client's; nil: nothing is encrypted
	Redact     *redact.Redactor        // what is hidden in words before they leave; nil: nothing
	Embedded   bool                    // the server is the embedded one of this host
	Attributes bool                    // the namespace knows the search attributes

	WorkerStarts bool // a worker of this machine was started just now and may not poll yet, so queues without pollers mean nothing
}

// Started says what a start found or made.
type Started struct {
	RunID    string
	Dir      rundir.Dir
	Status   run.Status
	New      bool
	Reopened *Reopened // it had been interrupted
	Warnings []string
}

// LiveError says that a directory's run is open, so something cannot be done to it.
type LiveError struct{ Dir, RunID, What string }

func (e *LiveError) Error() string {
	return fmt.Sprintf("%s: run %s in %s is live; nothing was changed. Pause or end it first (starter pause %s), or take another --output-dir", e.What, e.RunID, e.Dir, shell.Quote(e.Dir))
}

// Start starts a run of a definition on a directory, or finds the one that is there. A claim without a workflow is adopted; a finished run is
// left as it is. Starts of this host on one directory come one after another: between its claim and its workflow a run looks as if nothing had
// come of it.
func (o Operator) Start(ctx context.Context, def Definition, dir rundir.Dir) (Started, error) {
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

// turn waits until no other start of this host is at work on a directory. Nothing is written there.
func (o Operator) turn(ctx context.Context, dir rundir.Dir) (*durable.Lock, error) {
	path, err := resolved(dir.Root)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(o.Settings.StateDir, "starts")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	name := string(store.DigestOf([]byte(path)))[:16] + ".lock"
	return durable.WaitLock(ctx, filepath.Join(folder, name), durable.Self("start on "+path, time.Now()))
}

func (o Operator) start(ctx context.Context, def Definition, dir rundir.Dir) (Started, error) {
	claim, err := dir.Claim()
	switch {
	case errors.Is(err, rundir.ErrNoRun):
		if err := dir.Usable(); err != nil {
			return Started{}, err
		}
		if err := policyOf(def.Plan, "", run.Budget{CapUSD: def.Plan.Budget.USD}).Allowed(o.Settings, def.Plan.Budget.USD); err != nil {
			return Started{}, err
		}
		if err := CheckSource(ctx, def, dir); err != nil {
			return Started{}, err
		}
		return o.fresh(ctx, def, dir)
	case err != nil:
		return Started{}, err
	case def.Follow != nil && claim.ThreadID != def.Follow.Claim.ThreadID:
		return Started{}, &LiveError{Dir: dir.Root, RunID: claim.RunID, What: "a follow-up wants a directory of its own"}
	case def.Schedule != (run.Scheduled{}) && claim.Schedule != def.Schedule:
		return Started{}, &LiveError{Dir: dir.Root, RunID: claim.RunID, What: "a run of a schedule wants a directory of its own"}
	case claim.ConfigHash != def.Plan.ConfigHash:
		return o.changed(ctx, def, dir, claim)
	}
	return o.found(ctx, def, dir, claim)
}

// changed archives the run of another definition, unless it is live, and starts afresh (requirement 002 §3.1).
func (o Operator) changed(ctx context.Context, def Definition, dir rundir.Dir, claim run.Claim) (Started, error) {
	now, err := dir.Now()
	if err != nil {
		return Started{}, err
	}
	stands := o.Standing(ctx, dir.Seat(claim), now.State.Status)
	if stands.Liveness == run.LiveOpen || stands.Liveness == run.LiveUnknown && !stands.Recorded.Closed() {
		return Started{}, &LiveError{Dir: dir.Root, RunID: claim.RunID, What: fmt.Sprintf("the definition has changed (configuration %s, now %s)", claim.ConfigHash, def.Plan.ConfigHash)}
	}
	if err := CheckSource(ctx, def, dir); err != nil {
		return Started{}, err
	}
	to, err := dir.Archive(ctx)
	if err != nil {
		return Started{}, fmt.Errorf("archive the run in %s: %w", dir.Root, err)
	}
	if err := movedCheckout(ctx, filepath.Join(dir.Path(to), rundir.WorkspaceDir)); err != nil {
		return Started{}, err
	}
	changed := fmt.Sprintf("Config changed (old: %s, new: %s). Archived old state. Starting fresh.", claim.ConfigHash, def.Plan.ConfigHash)
	where := "The old run is in " + to
	def.Warnings = append(def.Warnings, changed, where)
	def.Found = append(def.Found, run.ErrorNoted{Context: "start", Category: "config-mismatch", Message: changed, Diagnostics: where, Recovered: true})
	return o.fresh(ctx, def, dir)
}

// movedCheckout tells git where the checkout of an archived run is now; else the next run's would take its place in git's records.
func movedCheckout(ctx context.Context, path string) error {
	if _, err := os.Lstat(filepath.Join(path, ".git")); err != nil {
		return nil //nolint:nilerr // no workspace, or one that is no checkout of git
	}
	_, err := repo.OpenWorktree(ctx, path)
	if errors.Is(err, repo.ErrNotOurs) || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// found goes on with what a directory holds. A run whose workflow was lost goes on in a new epoch.
func (o Operator) found(ctx context.Context, def Definition, dir rundir.Dir, claim run.Claim) (Started, error) {
	st := Started{RunID: claim.RunID, Dir: dir, Status: run.Pending}
	if err := AtHome(o.Settings.StateDir, claim, dir); err != nil {
		return st, err
	}
	now, err := dir.Now()
	if err != nil {
		return st, err
	}
	stands := o.Standing(ctx, dir.Seat(claim), now.State.Status)
	st.Status = stands.Status
	lost := dir.Lost(now.State)
	switch {
	case lost == nil && now.Tail.Seq == 0 && (stands.Liveness == run.LiveGone || stands.Liveness == run.LiveClosed):
		// Claimed, and nothing came of it: the starter died, or the workflow was ended before its first event.
		if err := CheckSource(ctx, def, dir); err != nil {
			return st, err
		}
		stored, err := upload(ctx, def, dir, claim.Store)
		if err != nil {
			return st, err
		}
		return o.launch(ctx, def, dir, claim, stored)
	case stands.Liveness == run.LiveOpen && causeGone(now.State):
		_, err := o.Send(ctx, claim.RunID, workflows.VerbResume, workflows.Message{Note: "run"})
		return st, err
	case stands.Recorded.Closed() || stands.Liveness == run.LiveOpen:
		return st, nil
	}
	re, err := o.Reopen(ctx, dir, Reopening{Note: "run"})
	if err == nil {
		st.Reopened = &re
	}
	return st, err
}

// causeGone says that a run rests for something that is over: its budget was raised, or its disk took the pause. A pause that a person wanted, or
// is to look at, stays.
func causeGone(s run.State) bool {
	if s.Status != run.Paused {
		return false
	}
	return s.Reason == run.DiskFull || s.Reason == run.BudgetThreshold && (s.Budget.CapUSD <= 0 || s.Total() < s.Budget.CapUSD)
}

// Open says whether Temporal has an open workflow of a run.
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

// fresh claims an empty directory and starts.
func (o Operator) fresh(ctx context.Context, def Definition, dir rundir.Dir) (Started, error) {
	id, err := uuid.NewRandom()
	if err != nil {
		return Started{}, err
	}
	cluster, err := o.cluster(ctx)
	if err != nil {
		return Started{}, fmt.Errorf("ask Temporal for its cluster: %w", err)
	}
	claim := run.Claim{
		Version: run.ClaimVersion, RunID: id.String(), ThreadID: id.String(), CreatedAt: run.Time(time.Now()), Pipeline: def.Plan.Pipeline,
		ConfigHash: def.Plan.ConfigHash, Store: o.Settings.Store, Host: o.Host, Namespace: o.Namespace, TaskQueue: o.Settings.TaskQueue,
		Cluster: cluster, Embedded: o.Embedded, Address: o.address(),
	}
	claim.Schedule = def.Schedule
	if def.Follow != nil {
		claim.ThreadID, claim.Store = def.Follow.Claim.ThreadID, def.Follow.Claim.Store
	}
	def.Warnings = append(def.Warnings, o.secretInputs(def)...)
	// First of all the store: a directory that was claimed for one that cannot be written would be bound to it.
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

// upload puts all that a run is given into its store.
func upload(ctx context.Context, def Definition, dir rundir.Dir, url string) (Stored, error) {
	s, err := store.OpenOn(ctx, dir.Disk, url)
	if err != nil {
		return Stored{}, err
	}
	defer s.Close()
	stored, err := def.Upload(ctx, s)
	if err != nil {
		return Stored{}, fmt.Errorf("store the inputs in %s: %w", url, err)
	}
	return stored, nil
}

// launch makes the run's own checkout, where it has one, and starts the workflow.
func (o Operator) launch(ctx context.Context, def Definition, dir rundir.Dir, claim run.Claim, stored Stored) (Started, error) {
	if err := index(dir.Disk, o.Settings.StateDir, claim.RunID, dir.Root); err != nil {
		return Started{}, err
	}
	var err error
	if stored.Workspace, err = prepareIn(ctx, &def, dir, claim); err != nil {
		return Started{}, err
	}
	err = ofRequest(ctx, o.execute(ctx, o.input(ctx, def, dir, claim, stored), enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY))
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	if err != nil && !errors.As(err, &already) {
		return Started{}, fmt.Errorf("start run %s: %w", claim.RunID, err)
	}
	if err != nil { // somebody was faster, or it is over and its files are gone
		if open, err := o.Open(ctx, claim.RunID); err != nil || !open {
			return Started{}, errors.Join(err, fmt.Errorf("run %s is over, and its files are missing from %s: write them again with `starter rebuild %s --output-dir %s`",
				claim.RunID, dir.Root, claim.RunID, shell.Quote(dir.Root)))
		}
	}
	return Started{RunID: claim.RunID, Dir: dir, Status: run.Pending, New: true, Warnings: def.Warnings}, nil
}

func (o Operator) input(ctx context.Context, def Definition, dir rundir.Dir, claim run.Claim, st Stored) workflows.Input {
	start := startEvent(def, claim, st)
	start.Tenant, start.Environment, start.Host, start.Build = o.Namespace, o.Settings.Environment, o.Host, o.Build
	start.Agents = capabilities(ctx, def.Plan.Agents, o.Build)
	return o.target(dir, claim, start, def.Plan.TimeScale)
}

func startEvent(def Definition, claim run.Claim, st Stored) run.RunStart {
	p := def.Plan
	ev := run.RunStart{
		Task: taskOf(def), RunKind: "pipeline", Pipeline: p.Pipeline, RunID: claim.RunID, ThreadID: claim.ThreadID, Epoch: 1,
		CreatedAt: claim.CreatedAt, Definition: st.Definition, Plan: st.Plan, Inputs: st.Inputs, Policy: st.Policy, ConfigHash: p.ConfigHash,
		TotalPasses: p.Total, MaxRounds: p.MaxRounds, Warnings: def.Warnings, Found: def.Found,
		Budget: run.Budget{CapUSD: p.Budget.USD, WarnUSD: run.Cents(p.Budget.USD * p.Budget.WarnAt)},
	}
	if p.Artifact != nil && st.Seed != nil {
		ev.Artifact = &run.ArtifactRef{File: p.Artifact.File, Seed: *st.Seed}
	}
	ev.Workspace, ev.Snapshots, ev.Kind, ev.Delivers = st.Workspace, p.Snapshots, p.Kind, p.Delivery != nil
	ev.Waits = run.Waits{RemindMS: p.Questions.Remind.Milliseconds(), ExpiresMS: p.Questions.Expires.Milliseconds(), OnExpiry: p.Questions.OnExpiry}
	ev.Receivers = receivers(p.Notify)
	first := 0
	if def.Follow != nil && def.Follow.From != nil {
		first = def.Follow.From.Stage
	}
	ev.Judged = p.JudgedFrom(first)
	if f := def.Follow; f != nil {
		ev.Parent, ev.From, ev.Replies = &run.Parent{RunID: f.Claim.RunID, Mode: f.Mode}, f.From, f.Replies
		if ev.Artifact != nil && f.Artifact != nil {
			ev.Artifact.Seed = *f.Artifact
		}
	}
	for _, n := range p.Notes {
		ev.Notes = append(ev.Notes, run.NoteRef{Name: n.Name, File: n.File})
	}
	for _, stage := range p.Stages {
		ev.Stages = append(ev.Stages, run.StageRef{Name: stage.Name, Kind: stage.Kind})
		if stage.Repeat != nil {
			ev.Threshold = stage.Repeat.Threshold()
		}
	}
	return ev
}

// receivers says of each who is told, when and for how long. Where to, which may be a secret, stays in the plan.
func receivers(all []pipeline.Notify) []run.Receiver {
	var out []run.Receiver
	for _, n := range all {
		out = append(out, run.Receiver{Name: n.Who(), On: n.On, TimeoutMS: n.Timeout.Milliseconds(), GiveUpMS: n.GiveUp.Milliseconds()})
	}
	return out
}
