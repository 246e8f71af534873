package work

// Names of the activities that start what is due, on the host of the schedule.
const (
	StartScheduled = "StartScheduled"
	AwaitRun       = "AwaitRun"
)

// Schedule says what a schedule starts. Paths are absolute, on its host.
type Schedule struct {
	Name   string `json:"name"`
	Host   string `json:"host"`   // id
	Config string `json:"config"` // the definition; it is read at every start
	Root   string `json:"root"`   // each run has a directory in it
	Store  string `json:"store"`
	Task   string `json:"task,omitempty"`
	Source string `json:"source,omitempty"` // the repository or folder to work on, where it is not beside the definition
	Dirty  string `json:"dirty,omitempty"`  // as of starter run
	By     string `json:"by"`               // who created it
}

// Due is one occurrence of a schedule.
type Due struct {
	Schedule
	At        string `json:"at"`        // when it was due, in the form of run.Time
	Execution string `json:"execution"` // of the workflow that starts it: the same in every attempt
}

// ScheduledRun is the run of an occurrence.
type ScheduledRun struct {
	RunID     string `json:"run_id"`
	Directory string `json:"directory"`
}

// RunEnd is how a run ended; Status is empty where its workflow ended without a result.
type RunEnd struct {
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

// ErrNotStarted is the type of error of a start that is refused: what is wrong is for the operator to fix, and the next occurrence tries again.
const ErrNotStarted = "NotStarted"
