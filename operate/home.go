package operate

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// CopyError says that a directory is a copy of a run's, which is elsewhere. Nothing was changed.
type CopyError struct{ Dir, RunID, Home string }

func (e *CopyError) Error() string {
	return fmt.Sprintf("%s is a copy: run %s has its directory in %s, and a run has one. Go on there (starter resume %s), or move that away first, if this is the one to go on with",
		e.Dir, e.RunID, e.Home, shell.Quote(e.Home))
}

// AtHome says whether a directory is the one that this machine remembers of its run. One that was moved is; a copy is not, with a CopyError.
func AtHome(stateDir string, claim run.Claim, dir rundir.Dir) error {
	all, err := indexed(stateDir)
	if err != nil {
		return err
	}
	home := all[claim.RunID]
	if home == "" || filepath.Clean(home) == filepath.Clean(dir.Root) {
		return nil
	}
	here, err := os.Stat(dir.Root)
	if err != nil {
		return err
	}
	if there, err := os.Stat(home); err != nil || os.SameFile(here, there) {
		return nil //nolint:nilerr // it is not there any more: it was moved here
	}
	if other, err := rundir.At(home).Claim(); err != nil || other.RunID != claim.RunID {
		return nil //nolint:nilerr // another run's by now, or free
	}
	return &CopyError{Dir: dir.Root, RunID: claim.RunID, Home: home}
}
