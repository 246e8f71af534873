package operations

import (
	"context"
	"errors"
	"fmt"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/history"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// CheckRebuild refuses a directory that is not the run's and cannot become it. Nothing is written.
func CheckRebuild(runID, dir string) error {
	d := rundir.At(dir)
	if err := rundir.MayContinue(d, runID); err != nil {
		return err
	}
	return rundir.MayWrite(d)
}

// Rebuild rebuilds a lost run directory, and those of the run's lanes, from the histories of the newest executions and
// the segments that they name. left are the lanes that could not be rebuilt.
func (o Operator) Rebuild(ctx context.Context, runID, dir string) (tail run.Tail, left []string, err error) {
	d := rundir.At(dir)
	if tail, err = o.rebuild(ctx, runID, d); err != nil {
		return tail, nil, err
	}
	lanes, err := d.StartedLanes()
	for _, l := range lanes {
		if _, err := o.rebuild(ctx, l.RunID, rundir.At(d.Path(l.Dir))); err != nil {
			left = append(left, fmt.Sprintf("lane %s, run %s: %v", l.Name, l.RunID, err))
		}
	}
	return tail, left, errors.Join(err, hideRebuilt(d))
}

func (o Operator) rebuild(ctx context.Context, runID string, d rundir.Dir) (run.Tail, error) {
	src, err := history.Reader{Client: o.Client, Converter: o.Converter}.Source(ctx, runID, "")
	if err != nil {
		return run.Tail{}, err
	}
	s, err := OpenStore(ctx, o.storeAt(src.Store, src.Claim.Host))
	if err != nil {
		return run.Tail{}, err
	}
	return d.Rebuild(ctx, blobs.Of(s), src)
}

// hideRebuilt keeps git from seeing a directory in the checkout that its run works on.
func hideRebuilt(d rundir.Dir) error {
	meta, err := d.Meta()
	if err != nil || meta.Workspace == nil || meta.Workspace.Kind != run.WorkspaceGit {
		return err
	}
	return hide(d, meta.Workspace.Source)
}
