package fsck

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/object"
)

// readCross reads cross_checkpoint.json; nil: the run is not one across projects. A run without the file waits for
// nothing.
func (x *examined) readCross() error {
	raw, err := x.dir.ReadFile(crossFile)
	if errors.Is(err, fs.ErrNotExist) {
		if len(x.declared()) > 0 {
			x.cross = &crossCheckpoint{cursor: &object.Object{}}
		}
		return nil
	}
	if err != nil {
		return err
	}
	o, err := object.ParseObject(raw)
	if err != nil {
		x.cross = &crossCheckpoint{cursor: &object.Object{}, err: err}
		return nil
	}
	x.cross = &crossCheckpoint{
		pending: object.Truthy(o.Values["phase_handoff_pending"]), kind: o.Text("phase_handoff_kind"),
		id:    o.Text("phase_handoff_id"),
		alias: o.Text("phase_handoff_project_alias"), child: o.Text("phase_handoff_child_id"),
		paused: object.IsObject(o.Values["cfa_paused_state"]),
		gate:   object.IsObject(o.Values["pending_gate"]), cursor: object.ObjectIn(o, "sub_status"),
	}
	return nil
}

// judgeCross compares the open question of a run across projects with its checkpoint.
func (x *examined) judgeCross() {
	c := x.cross
	if c.err != nil {
		x.findCross(CrossCheckpointUnreadable, fmt.Sprintf("%s cannot be read: %v", crossFile, c.err))
	}
	id, there := x.meta.handoff()
	switch {
	case c.pending && !there:
		x.findCross(CheckpointPendingWithoutActiveHandoff,
			fmt.Sprintf("%s waits for hand-off %s, and %s holds none", crossFile, c.id, layout.MetaFile))
	case !c.pending && there:
		x.findCross(ActiveHandoffWithoutCheckpointPending,
			fmt.Sprintf("%s holds hand-off %s, and %s waits for none", layout.MetaFile, id, crossFile))
	}
	if c.pending && c.gate {
		x.findCross(PendingGateAndHandoffActive, crossFile+" waits for a gate and for a hand-off at the same time")
	}
	x.judgeCrossKind()
	x.judgeProjects()
}

func (x *examined) judgeCrossKind() {
	c := x.cross
	if want := c.prefix(); c.id != "" && !strings.HasPrefix(c.id, want) {
		x.findCross(CheckpointKindIDMismatch, fmt.Sprintf("%s is of kind %s, and its hand-off %q does not begin with %q",
			crossFile, c.kind, c.id, want))
	}
	if _, known := c.cursor.Values[c.alias]; c.kind == "project" && (c.alias == "" || !known || c.child == "") {
		x.findCross(ProjectHandoffMarkerIncomplete,
			fmt.Sprintf("%s does not say which project (%q, in sub_status: %t) or which hand-off of it (%q) it "+
				"waits for", crossFile, c.alias, known, c.child))
	}
	if c.kind == "cfa" && c.pending && !c.paused {
		x.findCross(CFAPendingWithoutPausedState, crossFile+
			" waits for a hand-off of kind cfa without the state that it was paused in")
	}
}

// prefix is the start of a hand-off's ID; empty: the kind is unknown.
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

// findCross adds a finding about records of several files, which are written one after another.
func (x *examined) findCross(c Code, message string) { x.lags(c, "", message) }
