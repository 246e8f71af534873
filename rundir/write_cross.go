package rundir

import (
	"encoding/json"
	"fmt"
	"strings"
)

// crossFile is cross_checkpoint.json of a run across projects: what the run waits for. The kind determines the subject of a
// hand-off; the ID repeats it.
type crossFile struct {
	pending bool
	kind    string // plan, project or cfa
	id      string // of the hand-off: cross_plan:…, project:ALIAS:…, cfa:…
	alias   string // of the project, if the hand-off is about one
	child   string // the hand-off in that project's run
	paused  bool   // has the state in which a final acceptance was paused
	gate    bool   // a gate is pending
	cursor  object
}

// readCross reads cross_checkpoint.json; nil: the run is not one across projects. A run without the file waits for
// nothing.
func (c *check) readCross() error {
	raw, err := c.dir.ReadRaw(CrossFile)
	if err != nil {
		return err
	}
	if raw == nil && len(c.declared()) == 0 {
		return nil
	}
	o, err := objectOf(raw)
	if err != nil { // it differs from what follows from the events
		c.cross = &crossFile{}
		return nil //nolint:nilerr
	}
	var pending bool
	if json.Unmarshal(o["phase_handoff_pending"], &pending) != nil {
		pending = false
	}
	c.cross = &crossFile{
		pending: pending, kind: o.text("phase_handoff_kind"), id: o.text("phase_handoff_id"),
		alias: o.text("phase_handoff_project_alias"), child: o.text("phase_handoff_child_id"),
		paused: o.in("cfa_paused_state") != nil, gate: o.in("pending_gate") != nil, cursor: o.in("sub_status"),
	}
	return nil
}

// judgeCross compares the open question of a run across projects with its checkpoint.
func (c *check) judgeCross() {
	f := c.cross
	id, there := c.handoff()
	switch {
	case f.pending && !there:
		c.findCross(CheckpointPendingWithoutActiveHandoff,
			fmt.Sprintf("%s waits for hand-off %s, and %s holds none", CrossFile, f.id, MetaFile))
	case !f.pending && there:
		c.findCross(ActiveHandoffWithoutCheckpointPending,
			fmt.Sprintf("%s holds hand-off %s, and %s waits for none", MetaFile, id, CrossFile))
	}
	if f.pending && f.gate {
		c.findCross(PendingGateAndHandoffActive, CrossFile+" waits for a gate and for a hand-off at the same time")
	}
	c.judgeCrossKind()
	c.judgeProjects()
}

func (c *check) judgeCrossKind() {
	f := c.cross
	if want := f.prefix(); f.id != "" && !strings.HasPrefix(f.id, want) {
		c.findCross(CheckpointKindIDMismatch, fmt.Sprintf("%s is of kind %s, and its hand-off %q does not begin with %q",
			CrossFile, f.kind, f.id, want))
	}
	if _, known := f.cursor[f.alias]; f.kind == "project" && (f.alias == "" || !known || f.child == "") {
		c.findCross(ProjectHandoffMarkerIncomplete,
			fmt.Sprintf("%s does not say which project (%q, in sub_status: %t) or which hand-off of it (%q) it "+
				"waits for", CrossFile, f.alias, known, f.child))
	}
	if f.kind == "cfa" && f.pending && !f.paused {
		c.findCross(CFAPendingWithoutPausedState, CrossFile+
			" waits for a hand-off of kind cfa without the state that it was paused in")
	}
}

// prefix is the start of a hand-off's ID; empty: the kind is unknown.
func (f *crossFile) prefix() string {
	switch {
	case f.kind == "plan":
		return "cross_plan:"
	case f.kind == "project" && f.alias != "":
		return "project:" + f.alias + ":"
	case f.kind == "project" || f.kind == "cfa":
		return f.kind + ":"
	}
	return ""
}

// findCross adds a finding about records of several files, which are written one after another.
func (c *check) findCross(code Code, message string) {
	c.lag = append(c.lag, c.issue(code, "", message))
}
