package run

// StageExpanded records the list that a stage works through in lanes.
type StageExpanded struct {
	Stage  string `json:"stage"`
	Count  int    `json:"count"`
	Digest string `json:"digest"` // of the list in the store
}

// LaneStarted records that the work on an item begins.
type LaneStarted struct {
	Index int    `json:"index"` // in the list, from 0
	Name  string `json:"name"`
	Item  string `json:"item"` // digest of the item's text in the store
}

// LaneWaiting records that a lane waits for an operator.
type LaneWaiting struct {
	Index int    `json:"index"`
	Name  string `json:"name"`
	LaneWait
}

// LaneContinued records that a lane continues as an operator decided.
type LaneContinued struct {
	Index  int    `json:"index"`
	Name   string `json:"name"`
	Action string `json:"action"`
	Step   int    `json:"step"` // next one
	Redo   bool   `json:"redo,omitempty"`
	Tree   *Blob  `json:"tree,omitempty"` // that it begins again with; nil: it keeps its own
}

// LaneEnded records the end of the work on an item.
type LaneEnded struct {
	Index   int    `json:"index"`
	Name    string `json:"name"`
	Outcome string `json:"outcome"`          // done or failed
	Reason  string `json:"reason,omitempty"` // why it failed
	Tree    *Blob  `json:"tree,omitempty"`   // nil: nothing to merge
}

// LanesStored records that finished lanes moved to the stored list: the state keeps those that are merged next.
type LanesStored struct {
	Lanes  []int  `json:"lanes"`  // their indexes
	Digest string `json:"digest"` // of the list, a [LaneRows]
}

// LanesLoaded returns the lanes that are merged next from the stored list to the state.
type LanesLoaded struct {
	Rows []FinishedLane `json:"rows"`
}

// Outcomes of a lane.
const (
	LaneOutcomeDone   = "done"
	LaneOutcomeFailed = "failed"
)

// LaneMerged records that the changes of a lane are part of the tree of the run.
type LaneMerged struct {
	Index   int          `json:"index"`
	Name    string       `json:"name"`
	Tree    Blob         `json:"tree"`             // with the changes
	Commit  string       `json:"commit,omitempty"` // on the run's branch
	Changed int          `json:"changed"`          // files
	Files   []FileChange `json:"files,omitempty"`  // the first of them
	List    *Blob        `json:"list,omitempty"`   // all of them, when they are more
}
