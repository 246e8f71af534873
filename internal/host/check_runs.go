package host

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/rundir"
)

// runs checks the named run, or every open one: whether it can be read, and the environment of its calls.
func (e *examiner) runs() {
	dirs, err := e.dirs()
	if err != nil {
		e.add(Problem, "runs", "runs", "", "%v", err)
		return
	}
	if len(dirs) == 0 {
		e.ok("runs", "runs", "no run of this machine is open")
	}
	for _, d := range dirs {
		e.run(d)
	}
}

// dirs returns the directories of the runs to check.
func (e *examiner) dirs() ([]rundir.Dir, error) {
	if e.Run != nil {
		return []rundir.Dir{*e.Run}, nil
	}
	rows, _, err := operations.Here(e.Settings.StateDir, e.Settings.RunRoot)
	if err != nil {
		return nil, err
	}
	var dirs []rundir.Dir
	for _, r := range rows {
		if !r.EffectiveStatus.Recorded.Closed() {
			dirs = append(dirs, rundir.At(r.Directory))
		}
	}
	slices.SortFunc(dirs, func(x, y rundir.Dir) int { return strings.Compare(x.Root, y.Root) })
	return dirs, nil
}

func (e *examiner) run(d rundir.Dir) {
	claim, err := d.Claim()
	var now rundir.Now
	if err == nil {
		now, err = d.Now()
	}
	if err == nil && !errors.Is(now.Why, fs.ErrNotExist) { // a run that has just begun has no meta.json
		err = now.Why
	}
	if err != nil {
		e.add(Problem, "runs", "run "+filepath.Base(d.Root), e.typed("check %s", d.Root), "%v", err)
		return
	}
	e.ok("runs", "run "+filepath.Base(d.Root), "%s can be read", d.Root)
	if !now.State.Status.Closed() {
		e.calls(claim, d, now.State.Status)
	}
}
