package rundir

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

const crossFile = "cross_checkpoint.json"

// crossCheckpoint is cross_checkpoint.json of a run across projects: what the run waits for. The kind decides what a hand-off is about; the id only says
// it too.
type crossCheckpoint struct {
	pending bool
	kind    string // plan, project or cfa
	id      string // of the hand-off: cross_plan:…, project:ALIAS:…, cfa:…
	alias   string // of the project, where a hand-off is about one
	child   string // the hand-off of that project's own run
	paused  bool   // there is a state that a final acceptance was paused in
	gate    bool   // a gate is pending
	cursor  *object
	err     error // the file is no JSON object
}

// readCross reads cross_checkpoint.json; nil: the run is not one across projects. One without the file waits for nothing.
func (x *examined) readCross() error {
	raw, err := os.ReadFile(x.dir.Path(crossFile))
	if errors.Is(err, fs.ErrNotExist) {
		if len(x.declared()) > 0 {
			x.cross = &crossCheckpoint{cursor: &object{}}
		}
		return nil
	}
	if err != nil {
		return err
	}
	o, err := parseObject(raw)
	if err != nil {
		x.cross = &crossCheckpoint{cursor: &object{}, err: err}
		return nil
	}
	x.cross = &crossCheckpoint{
		pending: truthy(o.values["phase_handoff_pending"]), kind: o.text("phase_handoff_kind"), id: o.text("phase_handoff_id"),
		alias: o.text("phase_handoff_project_alias"), child: o.text("phase_handoff_child_id"), paused: isObject(o.values["cfa_paused_state"]),
		gate: isObject(o.values["pending_gate"]), cursor: objectIn(o, "sub_status"),
	}
	return nil
}

func truthy(raw []byte) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", "false", "0", `""`, "{}", "[]":
		return false
	}
	return true
}

func isObject(raw []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) }

// objectIn is a value that is an object; empty, where it is none. A nil object holds nothing.
func objectIn(o *object, key string) *object {
	if o != nil && isObject(o.values[key]) {
		if inner, err := parseObject(o.values[key]); err == nil {
			return inner
		}
	}
	return &object{}
}

// judgeCross compares the open question of a run across projects with its checkpoint.
func (x *examined) judgeCross() {
	c := x.cross
	if c.err != nil {
		x.find(CrossCheckpointUnreadable, fmt.Sprintf("%s cannot be read: %v", crossFile, c.err))
	}
	id, there := x.meta.handoff()
	switch {
	case c.pending && !there:
		x.find(CheckpointPendingWithoutActiveHandoff, fmt.Sprintf("%s waits for hand-off %s, and %s holds none", crossFile, c.id, MetaFile))
	case !c.pending && there:
		x.find(ActiveHandoffWithoutCheckpointPending, fmt.Sprintf("%s holds hand-off %s, and %s waits for none", MetaFile, id, crossFile))
	}
	if c.pending && c.gate {
		x.find(PendingGateAndHandoffActive, crossFile+" waits for a gate and for a hand-off at the same time")
	}
	x.judgeCrossKind()
	x.judgeProjects()
}

func (x *examined) judgeCrossKind() {
	c := x.cross
	if want := c.prefix(); c.id != "" && !strings.HasPrefix(c.id, want) {
		x.find(CheckpointKindIDMismatch, fmt.Sprintf("%s is of kind %s, and its hand-off %q does not begin with %q", crossFile, c.kind, c.id, want))
	}
	if _, known := c.cursor.values[c.alias]; c.kind == "project" && (c.alias == "" || !known || c.child == "") {
		x.find(ProjectHandoffMarkerIncomplete,
			fmt.Sprintf("%s does not say which project (%q, in sub_status: %t) or which hand-off of it (%q) it waits for", crossFile, c.alias, known, c.child))
	}
	if c.kind == "cfa" && c.pending && !c.paused {
		x.find(CFAPendingWithoutPausedState, crossFile+" waits for a hand-off of kind cfa without the state that it was paused in")
	}
}

// prefix is what the id of a hand-off begins with; empty: the kind is not known.
func (c *crossCheckpoint) prefix() string {
	switch {
	case c.kind == "plan":
		return "cross_plan:"
	case c.kind == "project" && c.alias != "":
		return "project:" + c.alias + ":"
	case c.kind == "project" || c.kind == "cfa":
		return c.kind + ":"
	}
	return ""
}
