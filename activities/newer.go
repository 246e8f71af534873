package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/history"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// requireCurrent refuses work for an execution that does not know the end of the directory's journal: a reset, or a
// restored database, can repeat an activity before the execution has compared itself. It also refuses work in a directory
// that was lost: what the work would write there would be in the way of a rebuild.
func requireCurrent[I interface{ GetTarget() contract.Target }, O any](a *Activities,
	do func(context.Context, I) (O, error)) func(context.Context, I) (O, error) {
	return func(ctx context.Context, in I) (O, error) {
		var none O
		at := in.GetTarget()
		d := a.open(at.Dir)
		meta, err := d.Meta()
		if err != nil && !disk.Missing(err) {
			return none, err
		}
		owner, err := d.Owner()
		if err != nil {
			return none, err
		}
		if at.Seq > 0 && (meta.Events.Seq > at.Seq || owner.Epoch > at.Epoch) {
			err := fmt.Errorf("%s is at event %d of epoch %d, and this work is of event %d of epoch %d: nothing was changed",
				at.Dir, meta.Events.Seq, max(meta.State.Epoch, owner.Epoch), at.Seq, at.Epoch)
			return none, temporal.NewNonRetryableApplicationError(err.Error(), contract.ErrNewer, err)
		}
		if _, err := d.Claim(); errors.Is(err, rundir.ErrNoRun) {
			return none, temporal.NewNonRetryableApplicationError(err.Error(), contract.ErrDirectoryLost, err)
		}
		return do(ctx, in)
	}
}

// NextEpoch returns what the next epoch of the run continues, from the directory alone. Lines that the directory lacks,
// and what the store has lost, are restored first. A directory of another cluster is not read.
func (a *Activities) NextEpoch(ctx context.Context, in contract.NextEpochInput) (contract.NextEpochResult, error) {
	defer a.keepAlive(ctx)()
	var res contract.NextEpochResult
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return res, err
	}
	d, b := a.open(in.Dir), blobs.Of(s)
	if err := rundir.MayContinue(d, in.RunID); err != nil {
		return res, nonRetryable(err)
	}
	at := d.CurrentClaim(in.Claim)
	if there, err := a.elsewhere(ctx, at); err != nil || there {
		res.Elsewhere = cmp.Or(at.Address, at.Cluster)
		return res, err
	}
	c, err := rundir.Continue(ctx, d, b, nil)
	if err == nil {
		err = rundir.Refill(ctx, d, b, c)
	}
	if err != nil {
		return res, nonRetryable(err)
	}
	res = contract.NextEpochResult{Epoch: c.Epoch, State: c.State, Tail: c.Tail, Start: c.Start, Ended: c.Ended,
		Host: a.cfg.Host, Cluster: at.Cluster, Embedded: at.Embedded, Address: at.Address, Repaired: c.Broken}
	if last, err := rundir.SegmentEnd(ctx, b, c.Meta.SegmentHead); err == nil { // else the whole journal is stored again
		res.Head, res.Archived = c.Meta.SegmentHead, last
	}
	if c.State.Status.Closed() {
		return res, nil
	}
	if _, err := rundir.Import(ctx, d, b, c.Start, c.State); err != nil {
		return res, err
	}
	ref := c.State.PlanInForce(c.Start)
	plan, err := a.plan(ctx, s, ref.Plan)
	if err != nil {
		return res, err
	}
	if res.TimeScale = plan.TimeScale; ref != c.Start.PlanRef() {
		first := 0
		if c.Start.From != nil {
			first = c.Start.From.Stage
		}
		res.Start = c.Start.Under(ref, contract.TermsOf(plan, first))
	}
	return res, nil
}

// elsewhere reports whether another Temporal cluster executes a run. A client with fewer permissions knows only its
// namespace.
func (a *Activities) elsewhere(ctx context.Context, at run.Claim) (bool, error) {
	if a.cfg.Client == nil || at.Cluster == "" {
		return false, nil
	}
	namespace := activity.GetInfo(ctx).Namespace
	id, err := history.Cluster(ctx, a.cfg.Client, namespace)
	if err == nil && id != at.Cluster {
		id, err = history.NamespaceID(ctx, a.cfg.Client, namespace)
	}
	if err != nil {
		return false, fmt.Errorf("ask Temporal for its cluster: %w", err)
	}
	return id != at.Cluster, nil
}
