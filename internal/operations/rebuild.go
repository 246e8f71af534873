package operations

import (
	"context"

	"github.com/passbook-run/passbook/internal/projector"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/history"
	"github.com/passbook-run/passbook/run"
)

// CheckRebuild refuses a directory that is not the run's and cannot become it. Nothing is written.
func CheckRebuild(runID, dir string) error {
	d := projector.At(dir)
	if err := projector.MayContinue(d.Dir, runID); err != nil {
		return err
	}
	return projector.MayWrite(d.Dir)
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
	d := projector.At(dir)
	tail, err := d.Rebuild(ctx, blobs.Of(s), src)
	if err != nil {
		return tail, err
	}
	return tail, hideRebuilt(d)
}

// hideRebuilt keeps git from seeing a directory in the checkout that its run works on.
func hideRebuilt(d projector.Dir) error {
	meta, err := d.Meta()
	if err != nil || meta.Workspace == nil || meta.Workspace.Kind != run.WorkspaceGit {
		return err
	}
	return hide(d, meta.Workspace.Source)
}
