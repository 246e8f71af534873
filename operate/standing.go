package operate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc/codes"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// Standing says where a run stands: what its directory recorded, beside what Temporal says of its workflow (requirement 001). It changes
// nothing. A server that does not answer leaves the liveness unknown, which is no error.
func (o Operator) Standing(ctx context.Context, claim run.Claim, recorded run.Status) run.Standing {
	if claim.Namespace != "" && o.Namespace != "" && claim.Namespace != o.Namespace {
		return run.Stands(recorded, run.LiveUnknown, fmt.Sprintf("it belongs to namespace %s, and %s was asked (TEMPORAL_NAMESPACE)", claim.Namespace, o.Namespace))
	}
	d, err := o.Client.DescribeWorkflow(ctx, claim.RunID, "")
	var missing *serviceerror.NotFound
	switch {
	case errors.As(err, &missing):
		live, detail := o.unknownThere(ctx, claim)
		return run.Stands(recorded, live, detail)
	case err != nil:
		return run.Stands(recorded, run.LiveUnknown, "Temporal does not answer: "+err.Error())
	}
	return standsBy(recorded, d.Status, workflows.StatusOf(d.TypedSearchAttributes))
}

// standsBy says where a run stands whose execution Temporal shows with this status, and with that one of ours.
func standsBy(recorded run.Status, status enumspb.WorkflowExecutionStatus, live run.Status) run.Standing {
	if status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return run.Stands(recorded, run.LiveClosed, "its workflow has "+closedWords(status))
	}
	s := run.Stands(recorded, run.LiveOpen, "its workflow is open")
	s.Live = live
	return s
}

const goneThere = "Temporal does not know its workflow any more"

// unknownThere tells a workflow that is gone from one that another server has.
func (o Operator) unknownThere(ctx context.Context, claim run.Claim) (run.Liveness, string) {
	id, err := o.cluster(ctx)
	if err != nil {
		return run.LiveUnknown, "Temporal does not answer: " + err.Error()
	}
	sameHouse := claim.Embedded && o.Embedded && claim.Host == o.Host
	if claim.Cluster != "" && claim.Cluster != id && !sameHouse {
		if claim.Address != "" && claim.Address == o.address() {
			return run.LiveGone, fmt.Sprintf("the Temporal database was lost: the server at %s is another one now (cluster %.8s) and does not know its workflow", claim.Address, id)
		}
		if ns, err := o.namespaceID(ctx); err == nil && claim.Cluster == ns { // it was started by a client that is told less
			return run.LiveGone, goneThere
		}
		return run.LiveUnknown, fmt.Sprintf("this Temporal server (cluster %.8s) does not know it; it was started on another one (cluster %.8s)", id, claim.Cluster)
	}
	return run.LiveGone, goneThere
}

// address is where the server is that a run is bound to, as a later operator is told it too. The embedded one has another at each start.
func (o Operator) address() string {
	if o.Embedded {
		return ""
	}
	return o.Address
}

// cluster is the id that a claim records of the server: its cluster's, or the namespace's where the server does not disclose the first, as hosted
// Temporal. Both are unique.
func (o Operator) cluster(ctx context.Context) (string, error) {
	info, err := o.Client.WorkflowService().GetClusterInfo(ctx, &workflowservice.GetClusterInfoRequest{})
	if Denied(err) {
		return o.namespaceID(ctx)
	}
	return info.GetClusterId(), err
}

func (o Operator) namespaceID(ctx context.Context) (string, error) {
	d, err := o.Client.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: o.Namespace})
	return d.GetNamespaceInfo().GetId(), err
}

// Denied says that a server does not offer a call, or not to this client, as hosted Temporal does with calls about clusters.
func Denied(err error) bool {
	switch serviceerror.ToStatus(err).Code() {
	case codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented:
		return true
	}
	return false
}

func closedWords(s enumspb.WorkflowExecutionStatus) string {
	switch s {
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return "been terminated"
	case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return "timed out"
	case enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		return "been cancelled"
	}
	return strings.ToLower(s.String())
}
