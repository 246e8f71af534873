package calls

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/rundir"
)

// ForgetEnvironment removes the environment of a closed run, its copies in scratch directories first. If the definition
// sends notices of its end, the environment stays until they are given up; the copies do not.
func ForgetEnvironment(stateDir, scratch, runID string, d rundir.Dir, now time.Time) error {
	plan, err := d.Plan()
	if err != nil {
		return RemoveEnvironment(stateDir, scratch, runID)
	}
	var wait time.Duration
	for _, n := range plan.Notify {
		if slices.Contains(n.On, pipeline.OnEnd) || slices.Contains(n.On, pipeline.OnFailure) {
			wait = max(wait, n.GiveUp)
		}
	}
	if wait == 0 {
		return RemoveEnvironment(stateDir, scratch, runID)
	}
	if err := forgetCopies(scratch, runID); err != nil {
		return err
	}
	return environ.Expire(stateDir, runID, now.Add(wait))
}

// RemoveEnvironment removes the environment of a run and its copies in scratch directories. The environment is
// last: while it exists, the next worker tries again.
func RemoveEnvironment(stateDir, scratch, runID string) error {
	if err := forgetCopies(scratch, runID); err != nil {
		return err
	}
	return environ.Remove(stateDir, runID)
}

// forgetCopies removes the environments in the scratch directories of a run. A call whose worker was killed keeps its
// directory.
func forgetCopies(scratch, runID string) error {
	dirs, err := Folders(scratch, runID)
	if err != nil {
		return fmt.Errorf("remove the copies of the environment of run %s: %w", runID, err)
	}
	var all error
	for _, dir := range dirs {
		copies, err := filepath.Glob(filepath.Join(dir, "*", supervisor.EnvironFile))
		all = errors.Join(all, err)
		for _, path := range copies {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				all = errors.Join(all, fmt.Errorf("remove a copy of the environment of run %s: %w", runID, err))
			}
		}
	}
	return all
}
