package contract

import "github.com/passbook-run/passbook/run"

// Names of the activities about runs below a run.
const (
	ReadChild      = "ReadChild"
	JoinTrees      = "JoinTrees"
	DeliverProject = "DeliverProject"
)

// ChildChanged is the signal of a child to its run: it asks, is paused, continues or ends. It authorizes nothing: the
// receiver reads the record of the child.
const ChildChanged = "child_changed"

// ChildMessage is the payload of [ChildChanged].
type ChildMessage struct {
	RunID string `json:"child_run_id"`
}

// ReadChildInput reads the record of a child below the target's directory.
type ReadChildInput struct {
	Target
	Path  string `json:"path"` // of its directory, in that of the run
	Child string `json:"child_run_id"`
}

// ChildFound is what was found of a child.
type ChildFound struct {
	Found    run.Observation `json:"found"`
	Status   run.Status      `json:"status,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Detail   string          `json:"detail,omitempty"` // of its pause
	Closed   bool            `json:"closed"`           // Temporal has no open workflow of its run
	Question *run.Question   `json:"question,omitempty"`
	Decided  string          `json:"decided,omitempty"` // the last decision: its action
	Tree     *run.Blob       `json:"tree,omitempty"`
	Commit   string          `json:"commit,omitempty"`
	USD      float64         `json:"usd"`
	Unknown  int             `json:"unknown_calls,omitempty"`
	Budget   run.Budget      `json:"budget,omitzero"`
	Need     *run.Need       `json:"need,omitempty"` // of the call that the budget does not cover
	Cost     *run.ChildCost  `json:"cost,omitempty"` // of a lane
}

// JoinTreesInput stores a tree with the trees of all projects, each in a folder with its alias.
type JoinTreesInput struct {
	Target
	Trees []ProjectTree `json:"trees"`
}

// ProjectTree is the tree of a project.
type ProjectTree struct {
	Alias string   `json:"project_alias"`
	Tree  run.Blob `json:"tree"`
}

// DeliverProjectInput delivers the changes of a project, for the target's run. Prepare only checks that they can be
// delivered, and changes nothing.
type DeliverProjectInput struct {
	Target
	Alias   string       `json:"project_alias"`
	Prepare bool         `json:"prepare,omitempty"`
	Project DeliverInput `json:"project"` // of the project's run
}

// Dirs includes the directory of the project's run.
func (in DeliverProjectInput) Dirs() []string { return []string{in.Dir, in.Project.Dir} }
