package rundir

import (
	"encoding/json"
	"fmt"
	"strings"
)

// readCross reads cross_checkpoint.json; nil: the run is not one across projects. A run without the file, or with another
// one than follows from the events, waits for nothing.
func (c *check) readCross() error {
	raw, err := c.dir.ReadRaw(CrossFile)
	if err != nil || raw == nil && (!c.good() || len(c.meta.Projects) == 0) {
		return err
	}
	c.cross = &CrossCheckpoint{}
	if json.Unmarshal(raw, c.cross) != nil {
		c.cross = &CrossCheckpoint{}
	}
	return nil
}

// judgeCross compares the open question of a run across projects with its checkpoint.
func (c *check) judgeCross() {
	f := c.cross
	id, there := c.handoff()
	switch {
	case f.Pending && !there:
		c.findCross(CheckpointPendingWithoutActiveHandoff,
			fmt.Sprintf("%s waits for hand-off %s, and %s holds none", CrossFile, f.ID, MetaFile))
	case !f.Pending && there:
		c.findCross(ActiveHandoffWithoutCheckpointPending,
			fmt.Sprintf("%s holds hand-off %s, and %s waits for none", MetaFile, id, CrossFile))
	}
	if f.Pending && f.PendingGate != nil {
		c.findCross(PendingGateAndHandoffActive, CrossFile+" waits for a gate and for a hand-off at the same time")
	}
	c.judgeCrossKind()
	c.judgeProjects()
}

func (c *check) judgeCrossKind() {
	f := c.cross
	if want := f.prefix(); f.ID != "" && !strings.HasPrefix(f.ID, want) {
		c.findCross(CheckpointKindIDMismatch, fmt.Sprintf("%s is of kind %s, and its hand-off %q does not begin with %q",
			CrossFile, f.Kind, f.ID, want))
	}
	if _, known := f.SubStatus[f.Alias]; f.Kind == "project" && (f.Alias == "" || !known || f.Child == "") {
		c.findCross(ProjectHandoffMarkerIncomplete,
			fmt.Sprintf("%s does not say which project (%q, in sub_status: %t) or which hand-off of it (%q) it "+
				"waits for", CrossFile, f.Alias, known, f.Child))
	}
	if f.Kind == "cfa" && f.Pending && f.CFAPaused == nil {
		c.findCross(CFAPendingWithoutPausedState, CrossFile+
			" waits for a hand-off of kind cfa without the state that it was paused in")
	}
}

// prefix is the start of a hand-off's ID; empty: the kind is unknown.
func (f *CrossCheckpoint) prefix() string {
	switch {
	case f.Kind == "plan":
		return "cross_plan:"
	case f.Kind == "project" && f.Alias != "":
		return "project:" + f.Alias + ":"
	case f.Kind == "project" || f.Kind == "cfa":
		return f.Kind + ":"
	}
	return ""
}

// findCross adds a finding about records of several files, which are written one after another.
func (c *check) findCross(code Code, message string) {
	c.lag = append(c.lag, c.issue(code, "", message))
}
