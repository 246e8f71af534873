package operations

import (
	"context"
	"errors"
	"fmt"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/passbook-run/passbook/internal/history"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows"
)

// EffectiveStatus combines the status that a directory recorded with what Temporal knows about its workflow
// (requirement 001). It changes nothing. If the server does not answer, the liveness is unknown; that is not an error.
func (o Operator) EffectiveStatus(ctx context.Context, claim run.Claim, recorded run.Status) run.EffectiveStatus {
	if claim.Namespace != "" && o.Namespace != "" && claim.Namespace != o.Namespace {
		return run.NewEffectiveStatus(recorded, run.LiveUnknown,
			fmt.Sprintf("it belongs to namespace %s, and %s was asked (TEMPORAL_NAMESPACE)", claim.Namespace,
				o.Namespace))
	}
	d, err := o.Client.DescribeWorkflow(ctx, claim.RunID, "")
	var missing *serviceerror.NotFound
	switch {
	case errors.As(err, &missing):
		live, detail := o.unknownThere(ctx, claim)
		return run.NewEffectiveStatus(recorded, live, detail)
	case err != nil:
		return run.NewEffectiveStatus(recorded, run.LiveUnknown, "Temporal does not answer: "+err.Error())
	}
	return effectiveBy(recorded, d.Status, workflows.StatusFromAttributes(d.TypedSearchAttributes))
}

// Observe reads the journal of a run, and asks Temporal about its workflow.
func (o Operator) Observe(ctx context.Context, d rundir.Dir,
	claim run.Claim) (rundir.Now, run.EffectiveStatus, error) {
	return Observe(d.Now, func(recorded run.Status) run.EffectiveStatus {
		return o.EffectiveStatus(ctx, d.CurrentClaim(claim), recorded)
	})
}

// Observe combines the journal of a run with the answer of Temporal. A run that ends between both reads would look
// interrupted: its journal was read before the end, its workflow is closed. Such a run is read again until its journal
// is the same: a workflow closes after its end is in the journal.
func Observe(read func() (rundir.Now, error),
	ask func(recorded run.Status) run.EffectiveStatus) (rundir.Now, run.EffectiveStatus, error) {
	last := int64(-1)
	for {
		now, err := read()
		if err != nil {
			return now, run.EffectiveStatus{}, err
		}
		s := ask(now.State.Status)
		if s.Status != run.Interrupted || now.Tail.Seq == last {
			return now, s, nil
		}
		last = now.Tail.Seq
	}
}

// effectiveBy returns the effective status of a run from the status of its execution and the status that it shows.
func effectiveBy(recorded run.Status, status enumspb.WorkflowExecutionStatus, live run.Status) run.EffectiveStatus {
	if status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return run.NewEffectiveStatus(recorded, run.LiveClosed, "its workflow has "+closedWords(status))
	}
	s := run.NewEffectiveStatus(recorded, run.LiveOpen, "its workflow is open")
	s.Live = live
	return s
}

const goneThere = "Temporal no longer has its workflow"

// unknownThere distinguishes a workflow that no longer exists from one on another server.
func (o Operator) unknownThere(ctx context.Context, claim run.Claim) (run.Liveness, string) {
	id, err := o.cluster(ctx)
	if err != nil {
		return run.LiveUnknown, "Temporal does not answer: " + err.Error()
	}
	sameServer := claim.Embedded && o.Embedded && claim.Host == o.Host
	if claim.Cluster != "" && claim.Cluster != id && !sameServer {
		if claim.Address != "" && claim.Address == o.address() {
			return run.LiveGone,
				fmt.Sprintf("the Temporal database was lost: the server at %s is another one now (cluster %.8s) and "+
					"does not know its workflow", claim.Address, id)
		}
		// a client with fewer permissions started it
		if ns, err := history.NamespaceID(ctx, o.Client, o.Namespace); err == nil && claim.Cluster == ns {
			return run.LiveGone, goneThere
		}
		return run.LiveUnknown,
			fmt.Sprintf("this Temporal server (cluster %.8s) does not know it; it was started on another one "+
				"(cluster %.8s)", id, claim.Cluster)
	}
	return run.LiveGone, goneThere
}

// address returns the address of the server that a run is bound to. The embedded server has another address at each
// start.
func (o Operator) address() string {
	if o.Embedded {
		return ""
	}
	return o.Address
}

// cluster returns the id of the server for a claim.
func (o Operator) cluster(ctx context.Context) (string, error) {
	return history.Cluster(ctx, o.Client, o.Namespace)
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
