package contract

import "github.com/passbook-run/passbook/run"

// Names of the activities of lanes.
const (
	ExpandLanes = "ExpandLanes"
	MergeLane   = "MergeLane"
	StoreLanes  = "StoreLanes"
)

// LaneList is the stored list of a stage with lanes.
type LaneList struct {
	Version int        `json:"version"`
	Items   []LaneItem `json:"items"`
}

// LaneItem is one item of a list.
type LaneItem struct {
	Key  string `json:"lane"` // the start of the text's digest, with -2 and so on for equal items
	Name string `json:"name"` // for people
	Text string `json:"text,omitempty"`
}

// ItemUse names an item of a stored list.
type ItemUse struct {
	List  string `json:"list"` // digest
	Index int    `json:"index"`
}

// ExpandInput makes the list of a stage, or reads a part of a list that was made.
type ExpandInput struct {
	RunID string `json:"run_id"`
	Store string `json:"store"`
	PlanUse
	Stage int `json:"stage"`

	Reply *run.Blob `json:"reply,omitempty"` // of the step with the list
	Tree  *run.Blob `json:"tree,omitempty"`  // with the files of a glob

	Submodules []string `json:"submodules,omitempty"` // folders whose files no glob matches

	List string `json:"list,omitempty"` // digest of the list; empty: make it
	From int    `json:"from,omitempty"` // index of the first item to return
}

// ExpandResult is a list, and a part of its items without their texts.
type ExpandResult struct {
	List  string     `json:"list"`
	Count int        `json:"count"`
	Items []LaneItem `json:"items,omitempty"`
}

// MergeInput merges the changes of a lane into the run's tree, and updates the checkout to the result.
type MergeInput struct {
	SyncWorkspaceInput          // Tree is that of the run, without the changes
	Base               run.Blob `json:"base"` // tree that the lane began with
	Lane               run.Blob `json:"lane"` // tree that it left
}

// MergeResult is the merged tree, or the conflicts. Nothing is merged then.
type MergeResult struct {
	Changes   *run.WorkspaceUpdated `json:"changes,omitempty"`
	Conflicts []string              `json:"conflicts,omitempty"` // paths, at most 20
	Count     int                   `json:"count,omitempty"`     // of all conflicts

	Recovered []RecoveredError `json:"troubles,omitempty"`
}

// StoreLanesInput adds rows to the stored list of finished lanes, or reads the next ones.
type StoreLanesInput struct {
	RunID string `json:"run_id"`
	Store string `json:"store"`
	PlanUse
	List string             `json:"list,omitempty"` // digest of the list; empty: there is none
	Next int                `json:"next"`           // index of the lane that is merged next; rows before it are dropped
	Rows []run.FinishedLane `json:"rows,omitempty"` // to add; none: read
}

// StoreLanesResult is the list with the added rows, or the next rows.
type StoreLanesResult struct {
	List string             `json:"list,omitempty"`
	Rows []run.FinishedLane `json:"rows,omitempty"`
}
