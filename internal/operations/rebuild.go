package operations

import (
	"context"

	"github.com/passbook-run/passbook/internal/fsck"
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

// RewriteDerived rebuilds the derived files of a rebuilt directory that differ from what the run wrote. In a checkout,
// git does not see the directory.
func (o Operator) RewriteDerived(ctx context.Context, d projector.Dir) error {
	claim, err := d.Claim()
	if err != nil {
		return err
	}
	s, err := OpenStore(ctx, o.storeOf(claim))
	if err != nil {
		return err
	}
	if err := fsck.RewriteDerived(ctx, d, blobs.Of(s), blobs.ReadTree); err != nil {
		return err
	}
	meta, err := d.Meta()
	if err != nil || meta.Workspace == nil || meta.Workspace.Kind != run.WorkspaceGit {
		return err
	}
	return hide(d, meta.Workspace.Source)
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
	return projector.At(dir).Rebuild(ctx, blobs.Of(s), src)
}
