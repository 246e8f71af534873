package operations

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

const (
	seqWait  = time.Second     // for the answer of a workflow
	lookWait = 2 * time.Second // for the next execution
)

// Refresh lets the open workflow of a run continue from the directory, if the directory has more events. A workflow has
// each event first, so Temporal's database was restored from a backup, or the workflow was reset; one that waits then does
// not notice. Without a worker nothing happens.
func (o Operator) Refresh(ctx context.Context, dir rundir.Dir) error {
	claim, err := dir.Claim()
	if err != nil {
		return err
	}
	m, err := dir.Meta()
	if err != nil {
		return err
	}
	claim = dir.CurrentClaim(claim)
	s := o.EffectiveStatus(ctx, claim, m.State.Status)
	if s.Liveness != run.LiveOpen || o.NoWorker(ctx, claim, s) != nil {
		return nil
	}
	asked, cancel := context.WithTimeout(ctx, seqWait)
	defer cancel()
	var live contract.StatusAnswer
	v, err := o.Client.QueryWorkflow(asked, claim.RunID, "", contract.QueryStatus)
	if err == nil {
		err = v.Get(&live)
	}
	if err != nil {
		return fmt.Errorf("ask the workflow of run %s for its status: %w", claim.RunID, err)
	}
	if live.Seq >= m.State.Seq {
		return nil
	}
	ctx, end := context.WithTimeout(ctx, lookWait)
	defer end()
	_, err = o.Send(ctx, claim.RunID, contract.VerbLook, contract.Message{})
	return err
}

// RefreshAll refreshes the runs that this host has recorded and that have not ended, one after another.
func (o Operator) RefreshAll(ctx context.Context) error {
	all, err := o.openRuns()
	for _, r := range all {
		if ctx.Err() != nil {
			break
		}
		if one := o.Refresh(ctx, r.dir); !errors.Is(one, rundir.ErrNoRun) {
			err = errors.Join(err, one)
		}
	}
	return err
}

// recordedRun is a run that has not ended, as its directory records it.
type recordedRun struct {
	dir    rundir.Dir
	id     string
	status run.Status
}

// openRuns lists the runs that this host has recorded and that have not ended, with their lanes.
func (o Operator) openRuns() (open []recordedRun, err error) {
	all, err := indexed(o.Settings.StateDir)
	for _, id := range slices.Sorted(maps.Keys(all)) {
		d := rundir.At(all[id])
		m, unread := d.Meta()
		if unread != nil || m.State.Status.Closed() {
			continue
		}
		open = append(open, recordedRun{d, id, m.State.Status})
		for _, l := range d.Lanes(m.State) {
			if l.Live != nil && !l.Live.Status.Closed() {
				open = append(open, recordedRun{rundir.At(l.Directory), l.Live.RunID, l.Live.Status})
			}
		}
	}
	return open, err
}
