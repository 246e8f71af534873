package operations

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// CopyError reports that a directory is a copy of a run's directory. Nothing was changed.
type CopyError struct{ Dir, RunID, Home string }

func (e *CopyError) Error() string {
	return fmt.Sprintf("%s is a copy: run %s has its directory in %s, and a run has only one. Continue there "+
		"(starter resume %s), or first move that directory away to continue with this one",
		e.Dir, e.RunID, e.Home, shell.Quote(e.Home))
}

// AtHome checks that a directory is the recorded one of its run. A moved directory is accepted. The error for a copy
// is a *CopyError.
func AtHome(stateDir string, claim run.Claim, dir rundir.Dir) error {
	if err := dir.Known(); err != nil {
		return err
	}
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
		return nil //nolint:nilerr // it no longer exists: it was moved here
	}
	if other, err := rundir.At(home).Claim(); err != nil || other.RunID != claim.RunID {
		return nil //nolint:nilerr // it belongs to another run, or is free
	}
	return &CopyError{Dir: dir.Root, RunID: claim.RunID, Home: home}
}
