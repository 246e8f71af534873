package rundir

import (
	"fmt"
	"slices"

	"github.com/passbook-run/passbook/run"
)

// Project is a project of a run: as the run recorded it last, and its own record.
type Project struct {
	run.ProjectState
	Directory string
	Live      *run.State // nil: it was not started, or its record cannot be read
}

// Projects reads the projects of a run.
func (d Dir) Projects(s run.State) (all []Project) {
	for _, p := range s.Projects {
		one := Project{ProjectState: p, Directory: d.Path(p.Alias)}
		if meta, err := At(one.Directory).Meta(); err == nil {
			one.Live = &meta.State
		}
		all = append(all, one)
	}
	return all
}

// Line describes the project, and the question that it asks.
func (p Project) Line() string {
	text := p.ProjectState.Line(p.Live)
	if p.Live == nil || p.Outcome.Rule().Ends {
		return text
	}
	if q, open := p.Live.Asks(); open {
		text += ": " + run.OneLine(q.Words())
	}
	return text
}

// Paused reports whether the project is paused. The run across projects records that it works.
func (p Project) Paused() bool {
	return p.Live != nil && p.Live.Status == run.Paused && !p.Outcome.Rule().Ends
}

// Lane is a lane of a run that has not ended, or about which an operator is asked, and its own record.
type Lane struct {
	run.Lane
	Directory string
	Live      *run.State // nil: it has not started yet, or its record cannot be read
}

// Lanes reads the lanes of the current stage of a run that have not ended, or about which an operator is asked, in the
// order of the list.
func (d Dir) Lanes(s run.State) (all []Lane) {
	if s.Lanes == nil || s.Lanes.Stage < 0 || s.Lanes.Stage >= len(s.Stages) {
		return nil
	}
	for _, l := range slices.Concat(s.Lanes.Active, s.Lanes.Asked) {
		one := Lane{Lane: l, Directory: d.Path(l.Dir(s.Stages[s.Lanes.Stage].Name))}
		child := At(one.Directory)
		child.Trust = d.Trust
		if meta, err := child.Meta(); err == nil {
			one.Live = &meta.State
		}
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b Lane) int { return a.Index - b.Index })
	return all
}

// EndedLane reads the start and the state of a lane that is done and has a tree.
func (d Dir) EndedLane() (start run.RunStart, s run.State, err error) {
	if start, err = d.First(); err != nil {
		return start, s, err
	}
	meta, err := d.Meta()
	if err != nil {
		return start, s, err
	}
	if s = meta.State; start.Lane == nil || start.Workspace == nil || s.Tree == nil || s.Status != run.Done {
		err = fmt.Errorf("%s is not the directory of a lane that is done: its status is %s", d.Root, s.Status)
	}
	return start, s, err
}
