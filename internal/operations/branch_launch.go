package operations

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// branchClaim claims the new run's directory. If the same request has claimed it already, begun is nil and the start
// continues.
func (o Operator) branchClaim(ctx context.Context, from Origin, b Branching, src run.Source,
	start *run.RunStart) (claim run.Claim, dir rundir.Dir, begun *beginning, err error) {
	id := uuid.New()
	if b.Request != "" {
		id = uuid.NewSHA1(uuid.NameSpaceOID, []byte(strings.Join([]string{from.RunID, b.Mode, b.Request}, "\n")))
	}
	folder := b.Dir
	if folder == "" {
		source := ""
		if w := start.Workspace; w != nil {
			source = w.Source
		}
		folder = runDir(o.Settings.RunRoot, source, start.Pipeline,
			fmt.Sprintf("%s-%s-of-%.8s-%.8s", start.Pipeline, b.Mode, from.RunID, id))
	}
	abs, err := filepath.Abs(folder)
	if err != nil {
		return claim, dir, nil, err
	}
	dir = rundir.At(abs)
	if known, err := byID(o.Settings.StateDir,
		id.String()); err == nil { // an earlier call of the same request, in its directory
		if claim, err := known.Claim(); err == nil && claim.RunID == id.String() {
			dir = known
		}
	}
	cluster, err := o.cluster(ctx)
	if err != nil {
		return claim, dir, nil, fmt.Errorf("ask Temporal for its cluster: %w", err)
	}
	claim = run.Claim{
		Version: run.ClaimVersion, RunID: id.String(), ThreadID: from.Start.ThreadID, CreatedAt: run.Time(time.Now()),
		Pipeline:   start.Pipeline,
		ConfigHash: start.ConfigHash, Store: from.Store, Host: o.Host, Namespace: o.Namespace,
		TaskQueue: o.Settings.TaskQueue, Cluster: cluster,
		Embedded: o.Embedded, Address: o.address(), SourceRun: from.RunID, SourceCheckpoint: src.Checkpoint,
		Mode: b.Mode,
	}
	for _, ref := range start.Projects {
		claim.Projects = append(claim.Projects, ref.Alias)
	}
	there, err := dir.Claim()
	switch {
	case err == nil && there.MemberOf == claim.MemberOf && there.SourceRun == claim.SourceRun &&
		there.SourceCheckpoint == claim.SourceCheckpoint && there.Mode == claim.Mode:
		return there, dir, nil, nil
	case err == nil && there.RunID == claim.RunID:
		return claim, dir, nil, &RefusedError{Verb: b.Mode, Why: fmt.Sprintf("request %s has started run %s from "+
			"checkpoint %s; nothing was started. Name another --request, or watch that run: starter watch %s",
			b.Request, there.RunID, there.SourceCheckpoint, there.RunID)}
	case err == nil:
		return claim, dir, nil, &rundir.ClaimedError{Dir: dir.Root, Holder: there}
	case !errors.Is(err, rundir.ErrNoRun):
		return claim, dir, nil, err
	}
	if begun, err = o.take(dir, claim); err != nil {
		return claim, dir, nil, err
	}
	if w := start.Workspace; w != nil && w.Kind == run.WorkspaceGit {
		begun.source = w.Source
	}
	return claim, dir, begun, nil
}

// identify adds the run's ids and host to its start.
func (o Operator) identify(ctx context.Context, claim run.Claim, agents []pipeline.Agent, start *run.RunStart) {
	start.RunID, start.ThreadID, start.Epoch, start.CreatedAt = claim.RunID, claim.ThreadID, 1, claim.CreatedAt
	start.Tenant, start.Environment, start.Host, start.Build = o.Namespace, o.Settings.Environment, o.Host, o.Build
	start.Agents = capabilities(ctx, agents, o.Build)
}

// branched is a new run that is ready to be started.
type branched struct {
	claim run.Claim
	start run.RunStart
	plan  *pipeline.Plan
	at    run.Checkpoint // of the other run
	from  Origin         // the other run
}

// launchBranch writes the workspace, if the run has one, copies the runs of its projects, and starts the workflow.
func (o Operator) launchBranch(ctx context.Context, s *store.Store, dir rundir.Dir, b Branching,
	r branched) (Started, error) {
	if err := Index(o.Settings.StateDir, r.claim.RunID, dir.Root); err != nil {
		return Started{}, err
	}
	st := Started{RunID: r.claim.RunID, Dir: dir, Status: run.Pending, New: true}
	if tail, err := dir.Tail(); err == nil && tail.Seq > 0 { // created by an earlier call of the same request
		now, err := dir.Now()
		st.New, st.Status = false, now.State.Status
		return st, err
	}
	if r.start.Workspace != nil && r.at.State.Tree != nil {
		w, err := o.branchWorkspace(ctx, dir, r.claim, r.plan.Pipeline, *r.start.Workspace, r.at.State)
		if err != nil {
			return st, err
		}
		r.start.Workspace = w
	}
	in, begun, err := o.withCopies(ctx, s, dir, b, r)
	if err != nil {
		return st, removeRefused(ctx, begun, err)
	}
	err = ofRequest(ctx, o.execute(ctx, in, enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY))
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &already) {
		st.New, err = false, nil
	}
	if err != nil {
		return st, removeRefused(ctx, begun, fmt.Errorf("start run %s: %w", r.claim.RunID, err))
	}
	return st, nil
}
