package rundir

import "github.com/passbook-run/passbook/run"

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
