package operate

import (
	"context"

	"github.com/passbook-run/passbook/activities"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/store"
)

// CheckRebuild refuses a directory that is not the run's and cannot become it. Nothing is written.
func CheckRebuild(runID, dir string) error {
	d := rundir.At(dir)
	if err := d.MayTake(runID); err != nil {
		return err
	}
	return d.MayWrite()
}

// Remake writes the derived files of a rebuilt directory again that are not what the run wrote.
func (o Operator) Remake(ctx context.Context, d rundir.Dir) error {
	claim, err := d.Claim()
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, o.storeOf(claim))
	if err != nil {
		return err
	}
	defer s.Close()
	return d.Remake(ctx, activities.Blobs(s), activities.ReadTree)
}

// Rebuild writes a lost run directory again, from the newest execution's history and the segments it names.
func (o Operator) Rebuild(ctx context.Context, runID, dir string) (run.Tail, error) {
	src, err := activities.TemporalHistory{Client: o.Client, Converter: o.Converter}.Source(ctx, runID, "")
	if err != nil {
		return run.Tail{}, err
	}
	s, err := store.Open(ctx, o.storeAt(src.Store, src.Claim.Host))
	if err != nil {
		return run.Tail{}, err
	}
	defer s.Close()
	report(ctx, "Writing the directory", 0, 0)
	return rundir.At(dir).Rebuild(ctx, activities.Blobs(s), src)
}
