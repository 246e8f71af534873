package operations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows"
	"github.com/passbook-run/passbook/workflows/contract"
)

// FindID returns the directory of a run of this host by its id or the beginning of it: one that was recorded, or one in
// the folder for runs. No text is a path.
func FindID(stateDir, runRoot, id string, trust bool) (rundir.Dir, error) {
	d, err := byID(stateDir, id)
	d.Trust = trust
	var unknown *NameError
	switch {
	case errors.As(err, &unknown) && len(unknown.Found) == 0:
		return inRoot(runRoot, id, trust, err)
	case err != nil:
		return d, err
	}
	full, err := fullID(stateDir, id)
	if err != nil {
		return d, err
	}
	if claim, err := d.Claim(); err != nil || claim.RunID != full {
		return inRoot(runRoot, full, trust, &MissingError{RunID: full, Dir: d.Root})
	}
	return d, nil
}

// FindOn returns the run that works on a folder or one above it: the only one, or the only one that has not ended. It
// returns unknown if none does.
func FindOn(stateDir, runRoot, folder string, trust bool, unknown error) (rundir.Dir, error) {
	rows, _, err := Here(stateDir, runRoot)
	if err != nil {
		return rundir.Dir{}, err
	}
	var all, open []Row
	for _, r := range rows {
		if _, inside := within(r.on, folder); r.on == "" || !inside {
			continue
		}
		if all = append(all, r); !r.EffectiveStatus.Recorded.Settled() {
			open = append(open, r)
		}
	}
	if len(open) > 0 {
		all = open
	}
	switch len(all) {
	case 0:
		return rundir.Dir{}, unknown
	case 1:
		d := rundir.At(all[0].Directory)
		d.Trust = trust
		return d, nil
	}
	several := &NameError{What: folder, On: true}
	for _, r := range all {
		several.Found = append(several.Found, fmt.Sprintf("%.8s", r.RunID))
	}
	slices.Sort(several.Found)
	return rundir.Dir{}, several
}

// inRoot finds a run in the folder for runs.
func inRoot(runRoot, id string, trust bool, unknown error) (rundir.Dir, error) {
	dirs, err := runsIn(runRoot)
	if err != nil {
		return rundir.Dir{}, err
	}
	var found []rundir.Dir
	var ids []string
	for _, dir := range dirs {
		d := rundir.At(dir)
		d.Trust = trust
		claim, err := d.Claim()
		if err == nil && strings.HasPrefix(claim.RunID, id) && !slices.Contains(ids, claim.RunID) {
			found, ids = append(found, d), append(ids, claim.RunID)
		}
	}
	switch len(found) {
	case 0:
		return rundir.Dir{}, unknown
	case 1:
		return found[0], nil
	}
	return rundir.Dir{}, &NameError{What: id, Found: ids}
}

// Far is a run whose directory is on another host, as its workflow knows it.
type Far struct {
	State     run.State
	Effective run.EffectiveStatus
	Host      string // that has the directory
}

// Elsewhere asks the workflow of a run for its state, and for the host of its directory.
func (o Operator) Elsewhere(ctx context.Context, runID string) (Far, error) {
	var far Far
	d, err := o.Client.DescribeWorkflow(ctx, runID, "")
	if err != nil {
		return far, fmt.Errorf("ask Temporal about run %s: %w", runID, err)
	}
	v, err := o.Client.QueryWorkflow(ctx, runID, "", contract.QueryStatus)
	if err == nil {
		err = v.Get(&far.State)
	}
	if err != nil {
		return far, fmt.Errorf("ask the workflow of run %s: %w", runID, err)
	}
	far.Effective = effectiveBy(far.State.Status, d.Status, workflows.StatusFromAttributes(d.TypedSearchAttributes))
	var at contract.DirectoryAnswer
	if v, err = o.Client.QueryWorkflow(ctx, runID, "", contract.QueryDirectory); err == nil {
		err = v.Get(&at)
	}
	if err != nil {
		return far, fmt.Errorf("ask the workflow of run %s for its directory: %w", runID, err)
	}
	far.Host = o.hostOf(ctx, at.Queue)
	return far, nil
}

// hostOf names the host of a queue by its worker, or by the queue if no worker polls it.
func (o Operator) hostOf(ctx context.Context, queue string) string {
	polled, err := o.Pollers(ctx, queue, enumspb.TASK_QUEUE_TYPE_ACTIVITY)
	if err != nil || len(polled.Identities) == 0 {
		return "the host of task queue " + queue
	}
	_, host, _ := strings.Cut(machineOf(polled.Identities[0]), "@")
	return host
}
