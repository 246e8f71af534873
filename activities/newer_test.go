package activities

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// begun is a run with its first event in a directory.
func (h *harness) begun() (contract.ProjectInput, rundir.Dir, run.Claim) {
	h.t.Helper()
	in := h.startsAs(filepath.Join(h.dir, "run"))
	d := rundir.At(in.Dir)
	claim := run.Claim{Version: 1, RunID: "run-1", Pipeline: "small", CreatedAt: "2026-01-02T03:04:05.000Z", Cluster: "here"}
	require.NoError(h.t, d.Take(claim))
	h.projected(in)
	return in, d, claim
}

func TestNextEpochOfOpenRun(t *testing.T) {
	h := newHarness(t, "")
	in, d, claim := h.begun()
	got := must(do(t, h.acts.NextEpoch, contract.NextEpochInput{Target: in.Target, Claim: claim}))(t)
	require.Equal(t, 2, got.Epoch)
	require.Equal(t, must(d.Tail())(t), got.Tail)
	require.Equal(t, run.Running, got.State.Status)
	require.Equal(t, h.plan, got.Start.Plan)
	require.Equal(t, "here", got.Cluster)
	require.NoError(t, rundir.TakeOver(t.Context(), d, rundir.Owner{Epoch: 4, RunID: "run-1", Cluster: "here"}, got.Tail))
	got = must(do(t, h.acts.NextEpoch, contract.NextEpochInput{Target: in.Target, Claim: claim}))(t)
	require.Equal(t, 5, got.Epoch, "after the one that another start has opened")
}

// TestNextEpochOfDoneRun: there is none, and what follows from the end is written: the execution that wrote the end was
// terminated before it did.
func TestNextEpochOfDoneRun(t *testing.T) {
	h := newHarness(t, "")
	in, d, claim := h.begun()
	end := h.line(2, run.KindRunEnd, run.RunEnd{Status: run.Done})
	write(d.Path(rundir.EventsFile), in.Lines[0]+"\n"+end+"\n")
	got := must(do(t, h.acts.NextEpoch, contract.NextEpochInput{Target: in.Target, Claim: claim}))(t)
	require.Equal(t, run.Done, got.State.Status)
	require.EqualValues(t, 2, must(d.Meta())(t).Events.Seq)
}

// TestNextEpochElsewhere: the directory of another cluster is not continued.
func TestNextEpochElsewhere(t *testing.T) {
	h := newHarness(t, "")
	h.acts.cfg.Client = clusterNamed("there")
	in, _, claim := h.begun()
	got := must(do(t, h.acts.NextEpoch, contract.NextEpochInput{Target: in.Target, Claim: claim}))(t)
	require.Equal(t, contract.NextEpochResult{Elsewhere: "here"}, got)
	for _, same := range []string{"here", "namespace of there"} {
		if claim.Cluster = same; same == "here" {
			h.acts.cfg.Client = clusterNamed("here")
		} else {
			h.acts.cfg.Client = clusterNamed("there")
		}
		require.Empty(t, must(do(t, h.acts.NextEpoch, contract.NextEpochInput{Target: in.Target, Claim: claim}))(t).Elsewhere)
	}
}

// TestNextEpochOfDamagedJournal is refused, and nothing is changed.
func TestNextEpochOfDamagedJournal(t *testing.T) {
	h := newHarness(t, "")
	in, d, claim := h.begun()
	write(d.Path(rundir.EventsFile), "not the event\n")
	_, err := do(t, h.acts.NextEpoch, contract.NextEpochInput{Target: in.Target, Claim: claim})
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.Equal(t, contract.ErrDamaged, app.Type())
	require.Equal(t, "not the event\n", read(t, d.Path(rundir.EventsFile)))
}

// namedClient is the client of a server with an id.
type namedClient struct {
	client.Client
	service namedService
}

func (c namedClient) WorkflowService() workflowservice.WorkflowServiceClient { return c.service }

type namedService struct {
	workflowservice.WorkflowServiceClient
	id string
}

func (s namedService) GetClusterInfo(context.Context, *workflowservice.GetClusterInfoRequest,
	...grpc.CallOption) (*workflowservice.GetClusterInfoResponse, error) {
	return &workflowservice.GetClusterInfoResponse{ClusterId: s.id}, nil
}

func (s namedService) DescribeNamespace(context.Context, *workflowservice.DescribeNamespaceRequest,
	...grpc.CallOption) (*workflowservice.DescribeNamespaceResponse, error) {
	return &workflowservice.DescribeNamespaceResponse{NamespaceInfo: &namespacepb.NamespaceInfo{Id: "namespace of " + s.id}}, nil
}

func clusterNamed(id string) client.Client { return namedClient{service: namedService{id: id}} }

// TestRequireCurrent: work for an execution that does not know the end of the directory is refused.
func TestRequireCurrent(t *testing.T) {
	var h *harness
	for name, row := range map[string]struct {
		change func(at *contract.Target, d rundir.Dir)
		want   string // type of the error
	}{
		"the last event": {func(*contract.Target, rundir.Dir) {}, ""},
		"later events":   {func(at *contract.Target, _ rundir.Dir) { at.Seq = 9 }, ""},
		"not compared":   {func(at *contract.Target, _ rundir.Dir) { at.Seq, at.Epoch = 0, 0 }, ""},
		"a later epoch": {func(_ *contract.Target, d rundir.Dir) {
			require.NoError(t, rundir.TakeOver(t.Context(), d, rundir.Owner{Epoch: 2, RunID: "run-1"}, must(d.Tail())(t)))
		}, contract.ErrNewer},
		"earlier events": {func(_ *contract.Target, d rundir.Dir) {
			tail := must(d.Tail())(t)
			_, err := d.Project(t.Context(), blobs.Of(h.s), rundir.Batch{Epoch: 1, First: 2, Prev: tail.Chain,
				Lines: []string{h.line(2, run.KindErrorNoted, run.ErrorNoted{})}})
			require.NoError(t, err)
		}, contract.ErrNewer},
		"no directory": {func(at *contract.Target, _ rundir.Dir) { at.Dir += "-none" }, contract.ErrDirectoryLost},
	} {
		t.Run(name, func(t *testing.T) {
			h = newHarness(t, "")
			in, d, _ := h.begun()
			at := in.Target
			at.Seq = 1
			row.change(&at, d)
			worked := false
			_, err := requireCurrent(h.acts, func(context.Context, contract.InspectInput) (struct{}, error) {
				worked = true
				return struct{}{}, nil
			})(t.Context(), contract.InspectInput{Target: at})
			var app *temporal.ApplicationError
			if row.want == "" {
				require.NoError(t, err)
				require.True(t, worked)
				return
			}
			require.ErrorAs(t, err, &app)
			require.Equal(t, row.want, app.Type())
			require.False(t, worked)
		})
	}
}
