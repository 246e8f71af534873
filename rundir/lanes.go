package rundir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/passbook-run/passbook/run"
)

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

// StartedLane is a run of a lane that the journal of its run names.
type StartedLane struct {
	RunID string
	Name  string // of the item
	Dir   string // in that of its run
}

// StartedLanes lists the runs of lanes that the journal names, each once.
func (d Dir) StartedLanes() (all []StartedLane, err error) {
	seen := map[string]bool{}
	for line, err := range d.Lines(0) {
		if err != nil {
			return nil, err
		}
		if line.Err != nil || line.Event.Kind != run.KindChildStarted {
			continue
		}
		p := run.PayloadOf[run.ChildStart](line.Event)
		at := laneDir(line.Event, p.LanePlace)
		if !seen[at] {
			seen[at], all = true, append(all, StartedLane{p.RunID, p.Name, at})
		}
	}
	return all, nil
}

// laneDir is the directory of a lane that an event is about.
func laneDir(e run.Event, p run.LanePlace) string {
	if e.Phase == nil {
		return p.Dir("")
	}
	return p.Dir(*e.Phase)
}

// lane notes the directory of a lane whose record its run has read.
func (c *check) lane(e *run.Event) {
	if e.Kind != run.KindChildEnded {
		return
	}
	if p := run.PayloadOf[run.ChildEnd](*e); p.Status != "" {
		c.ended[laneDir(*e, p.LanePlace)] = true
	}
}

// judgeLanes checks the directories of lanes, and reports those that are missing.
func (c *check) judgeLanes(ctx context.Context) error {
	found, err := c.dir.laneDirs()
	if err != nil {
		return err
	}
	for _, name := range sortedNames(c.ended) {
		if !slices.Contains(found, name) {
			i := c.issue(FileDiffers, name, name+" is missing: it was the directory of a lane")
			i.Hint = c.commands("starter rebuild RUN-ID --output-dir RUN, from Temporal's history")
			c.found = append(c.found, i)
		}
	}
	for _, name := range found {
		child := At(c.dir.Path(name))
		child.Trust = c.dir.Trust
		r, err := Check(ctx, child, CheckOptions{Deep: c.opts.Deep, ReadTree: c.opts.ReadTree})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && (c.ended[name] || !errors.Is(err, ErrNoRun)) { // another one begins
			c.find(ClaimDamaged, path.Join(name, ClaimFile), fmt.Sprintf("%s: %v", name, err))
		}
		for _, i := range r.Issues {
			i.File, i.Message = path.Join(name, i.File), name+": "+i.Message
			c.found = append(c.found, i)
		}
	}
	return nil
}

// laneDirs lists the directories of lanes on disk. Links are none.
func (d Dir) laneDirs() (all []string, err error) {
	folders := func(name string) (names []string, err error) {
		entries, err := os.ReadDir(d.Path(name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		for _, e := range entries {
			if e.IsDir() {
				names = append(names, path.Join(name, e.Name()))
			}
		}
		return names, err
	}
	stages, err := folders(run.LanesDir)
	for _, stage := range stages {
		names, serr := folders(stage)
		all, err = append(all, names...), errors.Join(err, serr)
	}
	return all, err
}
