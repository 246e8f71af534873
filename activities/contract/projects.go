package contract

import "github.com/passbook-run/passbook/run"

// Names of the activities of a run across projects.
const (
	ReadProject    = "ReadProject"
	JoinTrees      = "JoinTrees"
	DeliverProject = "DeliverProject"
)

// ProjectChanged is the signal of a project's run to the run across projects that it belongs to: it asks, was
// answered, was resumed or ends. It authorizes nothing: the receiver reads the project's record.
const ProjectChanged = "project_changed"

// ProjectMessage is the payload of [ProjectChanged].
type ProjectMessage struct {
	Alias string `json:"project_alias"`
}

// ReadProjectInput reads the record of a project below the target's directory.
type ReadProjectInput struct {
	Target
	Alias string `json:"project_alias"`
	Child string `json:"child_run_id"`
}

// ProjectFound is what was found of a project.
type ProjectFound struct {
	Found    run.Observation `json:"found"`
	Status   run.Status      `json:"status,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Closed   bool            `json:"closed"` // Temporal has no open workflow of its run
	Question *run.Question   `json:"question,omitempty"`
	Decided  string          `json:"decided,omitempty"` // the last decision: its action
	Tree     *run.Blob       `json:"tree,omitempty"`
	Commit   string          `json:"commit,omitempty"`
	USD      float64         `json:"usd"`
	Unknown  int             `json:"unknown_calls,omitempty"`
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
