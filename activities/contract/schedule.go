package contract

// Names of the activities of schedules.
const (
	StartScheduled = "StartScheduled"
	AwaitRun       = "AwaitRun"
)

// Schedule is what a schedule starts. Paths are absolute on its host.
type Schedule struct {
	Name   string `json:"name"`
	Host   string `json:"host"`   // id
	Config string `json:"config"` // the definition; read at every start
	Root   string `json:"root"`   // parent folder of run directories
	Store  string `json:"store"`
	Task   string `json:"task,omitempty"`
	Source string `json:"source,omitempty"` // repository or folder to work on, if not that of the definition
	Dirty  string `json:"dirty,omitempty"`  // as of starter run
	By     string `json:"by"`               // creator
	Grant  string `json:"grant,omitempty"`  // to start this
}

// Occurrence is one occurrence of a schedule.
type Occurrence struct {
	Schedule
	At        string `json:"at"`        // when it was due, in run.TimeFormat
	Execution string `json:"execution"` // of the starting workflow: the same in every attempt
}

// ScheduledRun is the run of an occurrence.
type ScheduledRun struct {
	RunID     string `json:"run_id"`
	Directory string `json:"directory"`
	Grant     string `json:"grant,omitempty"` // to read the directory
}

// RunEnd is how a run ended; Status is empty if its workflow ended without a result.
type RunEnd struct {
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

// ErrNotStarted is the error type of a refused start: an operator must fix the cause, and the next occurrence
// retries.
const ErrNotStarted = "NotStarted"
