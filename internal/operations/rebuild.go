package operations

import (
	"context"

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

// Rebuild rebuilds a lost run directory from the newest execution's history and the segments that it names.
func (o Operator) Rebuild(ctx context.Context, runID, dir string) (run.Tail, error) {
	src, err := history.Reader{Client: o.Client, Converter: o.Converter}.Source(ctx, runID, "")
	if err != nil {
		return run.Tail{}, err
	}
	s, err := OpenStore(ctx, o.storeAt(src.Store, src.Claim.Host))
	if err != nil {
		return run.Tail{}, err
	}
	d := rundir.At(dir)
	tail, err := d.Rebuild(ctx, blobs.Of(s), src)
	if err != nil {
		return tail, err
	}
	return tail, hideRebuilt(d)
}

// hideRebuilt keeps git from seeing a directory in the checkout that its run works on.
func hideRebuilt(d rundir.Dir) error {
	meta, err := d.Meta()
	if err != nil || meta.Workspace == nil || meta.Workspace.Kind != run.WorkspaceGit {
		return err
	}
	return hide(d, meta.Workspace.Source)
}
