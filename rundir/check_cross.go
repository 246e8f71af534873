package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

const crossFile = "cross_checkpoint.json"

// crossCheckpoint is cross_checkpoint.json of a run over several projects: what the run waits for.
type crossCheckpoint struct {
	Status      string          `json:"status"`
	Pending     bool            `json:"pending"` // a hand-off is
	Kind        string          `json:"kind"`    // plan, project or cfa
	HandoffID   string          `json:"handoff_id"`
	Alias       string          `json:"alias"`   // the project that a hand-off of kind project is about
	Aliases     []string        `json:"aliases"` // all projects
	ChildRunID  string          `json:"child_run_id"`
	PausedState json.RawMessage `json:"paused_state"`
	PendingGate json.RawMessage `json:"pending_gate"`
}

// readCross reads cross_checkpoint.json; nil: the run is not one over several projects.
func (d Dir) readCross() (*crossCheckpoint, error) {
	var c crossCheckpoint
	err := d.readJSON(crossFile, &c)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, ErrDamaged):
		return nil, fmt.Errorf("the run is one over several projects: %w", err)
	}
	return &c, err
}

func set(raw json.RawMessage) bool {
	text := strings.TrimSpace(string(raw))
	return text != "" && text != "null" && text != "{}" && text != "false"
}

// judgeCross looks at the open question of a run over several projects.
func (x *examined) judgeCross() {
	c := x.cross
	id, there := x.meta.handoff()
	switch {
	case c.Pending && !there:
		x.find(CheckpointPendingWithoutActiveHandoff, fmt.Sprintf("%s waits for hand-off %s, and %s holds none", crossFile, c.HandoffID, MetaFile))
	case !c.Pending && there:
		x.find(ActiveHandoffWithoutCheckpointPending, fmt.Sprintf("%s holds hand-off %s, and %s waits for none", MetaFile, id, crossFile))
	}
	if c.Pending && set(c.PendingGate) {
		x.find(PendingGateAndHandoffActive, crossFile+" waits for a gate and for a hand-off at the same time")
	}
	x.judgeCrossKind()
}

func (x *examined) judgeCrossKind() {
	c := x.cross
	known := map[string]bool{"plan": true, "project": true, "cfa": true}
	if known[c.Kind] && !strings.HasPrefix(c.HandoffID, c.Kind) {
		x.find(CheckpointKindIDMismatch, fmt.Sprintf("%s is of kind %s, and its hand-off is %q", crossFile, c.Kind, c.HandoffID))
	}
	if !c.Pending {
		return
	}
	if c.Kind == "project" && (c.ChildRunID == "" || !slices.Contains(c.Aliases, c.Alias)) {
		x.find(ProjectHandoffMarkerIncomplete,
			fmt.Sprintf("%s does not say which project (%q) or which run (%q) the hand-off is of", crossFile, c.Alias, c.ChildRunID))
	}
	if c.Kind == "cfa" && !set(c.PausedState) {
		x.find(CFAPendingWithoutPausedState, crossFile+" waits for a hand-off of kind cfa without the state that it was paused in")
	}
}
