package contract

import "github.com/passbook-run/passbook/run"

// Names of the activities of lanes.
const (
	ExpandLanes = "ExpandLanes"
	MergeLane   = "MergeLane"
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

	Reply *run.Blob `json:"reply,omitempty"` // what the step with the list printed, or the JSON of its reply
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
	SyncWorkspaceInput        // Tree is that of the run, without the changes
	Stage              string `json:"stage"`
	StageIndex         int    `json:"stage_index"`
	List               string `json:"list"` // digest
	run.LaneName
	Given string `json:"given,omitempty"` // digest of a [LaneTrees] with lanes that ended in another run
}

// MergeResult is the merged tree, or the conflicts. Nothing is merged then.
type MergeResult struct {
	Lane      run.LanePlace         `json:"lane"`
	RunID     string                `json:"run_id"`
	Verdict   string                `json:"verdict,omitempty"`
	Approved  *bool                 `json:"approved,omitempty"`
	Changes   *run.WorkspaceUpdated `json:"changes,omitempty"`
	Conflicts []string              `json:"conflicts,omitempty"` // paths, at most 20
	Count     int                   `json:"count,omitempty"`     // of all conflicts

	Recovered []RecoveredError `json:"troubles,omitempty"`
}

// LaneTrees are the trees of lanes that have ended and are not merged, by the number of the item. A copy of a run has
// those of its source.
type LaneTrees struct {
	Version int              `json:"version"`
	Lanes   map[int]LaneTree `json:"lanes"`
}

// LaneTree is what a lane began with and left.
type LaneTree struct {
	RunID    string        `json:"run_id"`
	Lane     run.LanePlace `json:"lane"`
	Base     run.Blob      `json:"base"`
	Tree     run.Blob      `json:"tree"`
	Verdict  string        `json:"verdict,omitempty"`
	Approved *bool         `json:"approved,omitempty"`
}

// LaneTreeOf is what a lane that is done began with and left.
func LaneTreeOf(start run.RunStart, s run.State) LaneTree {
	l := LaneTree{RunID: s.RunID, Lane: start.Lane.LanePlace, Base: start.Workspace.Tree, Tree: *s.Tree}
	if v := s.Judgement(); v.Approved != nil {
		l.Verdict, l.Approved = v.Word, v.Approved
	}
	return l
}
