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

// StartedLane is a run of a lane that the journal of its run names.
type StartedLane struct {
	RunID string
	Name  string // of the item
	Dir   string // in that of its run
}

// StartedLanes lists the runs of lanes that the journal names, each once.
func (d Dir) StartedLanes() (all []StartedLane, err error) {
	for line, err := range d.Lines(0) {
		if err != nil {
			return nil, err
		}
		if line.Err != nil || line.Event.Kind != run.KindChildStarted {
			continue
		}
		p := run.PayloadOf[run.ChildStart](line.Event)
		at := laneDir(line.Event, p.LanePlace)
		if !slices.ContainsFunc(all, func(s StartedLane) bool { return s.Dir == at }) {
			all = append(all, StartedLane{p.RunID, p.Name, at})
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
		if err != nil && c.ended[name] {
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
