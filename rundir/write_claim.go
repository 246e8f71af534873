package rundir

import (
	"fmt"
	"reflect"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// Take claims the directory for a run. The first claim wins; a later call returns a ClaimedError with the holder. A
// directory with other files is a TargetError ([MayTake]), and nothing is written. On return the claim is on disk.
func (d Dir) Take(c run.Claim) error {
	if err := MayTake(d, c.RunID); err != nil {
		return err
	}
	return d.take(c)
}

// take is Take without the check of the contents.
func (d Dir) take(c run.Claim) error {
	if err := d.inside().Mkdir(d.Root, DirPerm); err != nil {
		return err
	}
	raw, err := Seal(c)
	if err != nil {
		return err
	}
	won, err := d.inside().CreateExclusive(d.Path(ClaimFile), raw, FilePerm)
	if err != nil {
		return fmt.Errorf("claim %s: %w", d.Root, err)
	}
	if won {
		return nil
	}
	holder, err := d.Claim()
	if err != nil {
		return err
	}
	if reflect.DeepEqual(holder, c) {
		return nil
	}
	return &ClaimedError{Dir: d.Root, Holder: holder}
}

// RemoveClaim removes the claim of a run that did not start. The claim of another run stays.
func RemoveClaim(d Dir, c run.Claim) error {
	if holder, err := d.Claim(); err != nil || holder.RunID != c.RunID {
		return nil //nolint:nilerr // the run has no claim here
	}
	return disk.Disk{}.In(d.Root).Remove(d.Path(ClaimFile))
}
