package contract

import (
	"github.com/passbook-run/passbook/run"
)

// PipelineWorkflow is the type of the workflow of a run.
const PipelineWorkflow = "Pipeline"

// Input starts one execution of a run.
type Input struct {
	Target   Target       `json:"target"`
	Claim    run.Claim    `json:"claim"`
	Start    run.RunStart `json:"start"`
	DirQueue string       `json:"dir_queue"` // writes the directory
	Calls    string       `json:"calls"`     // runs passes
	Options  Options      `json:"options"`

	Projects []ChildInput `json:"projects,omitempty"` // of a run across projects

	Snapshot *Snapshot `json:"carry,omitempty"` // state to continue from, after continue-as-new or a close
	// opens a new epoch of a closed run from the Snapshot of its directory
	Reopen *Reopen `json:"reopen,omitempty"`
}

// Reopen opens the next epoch of a run that closed or whose workflow was lost.
type Reopen struct {
	Epoch int        `json:"epoch"`
	From  run.Status `json:"from"` // as shown: interrupted if the events are open and the workflow is not
	// why the workflow ended, if the events left the run open; journaled as an interruption first
	Interruption string `json:"torn,omitempty"`
	// the decision that halted the run was journaled, and its workflow ended before it wrote run.end
	Unended bool   `json:"unended,omitempty"`
	By      string `json:"by,omitempty"`
	Note    string `json:"note,omitempty"`
	Force   bool   `json:"force,omitempty"`
	Reason  string `json:"reason,omitempty"` // for force
	Host    string `json:"host"`
	Build   string `json:"build"`

	Cluster  string `json:"cluster,omitempty"`  // id of the Temporal cluster of the epoch
	Embedded bool   `json:"embedded,omitempty"` // the cluster is the embedded server of that host
	Address  string `json:"address,omitempty"`  // of that cluster; empty: embedded

	Overruled []string            `json:"overruled,omitempty"` // differences in policy that force overrules
	Repaired  []run.JournalDamage `json:"repaired,omitempty"`  // lines of the directory that were rebuilt

	Decision *Message       `json:"decision,omitempty"` // for the hand-off that the last epoch left undecided
	Revert   *PendingRevert `json:"revert,omitempty"`   // revert first
	Cancel   bool           `json:"cancel,omitempty"`   // the epoch only closes the run as cancelled
	Amend    *Message       `json:"amend,omitempty"`    // amend the definition first
	Now      bool           `json:"now,omitempty"`      // do not wait for a limit that the last epoch met

	Waits   bool                  `json:"waits,omitempty"`   // the run continues to wait; Interruption is why the epoch begins
	Refused []run.DecisionRefused `json:"refused,omitempty"` // messages that do not count: the directory was newer
}

// Options tune an execution. Zero values are replaced by defaults.
type Options struct {
	HeartbeatMS   int64   `json:"heartbeat_ms"`         // a worker is lost after this time without a heartbeat; default 10 s
	ContinueAfter int     `json:"continue_after"`       // steps in one execution; 0: when the server suggests it
	TimeScale     float64 `json:"time_scale"`           // multiplies waits before another attempt; default 1
	Attributes    bool    `json:"attributes"`           // the namespace has the search attributes
	RFCStatus     bool    `json:"rfc_status,omitempty"` // also the one of RFC-0002; earlier starters did not need it
	Turns         bool    `json:"turns,omitempty"`      // events are written by the activity of the call that follows them
}

// Snapshot is the state that an execution starts from after continue-as-new or a reopen.
type Snapshot struct {
	State    run.State `json:"state"`
	Tail     run.Tail  `json:"tail"`
	Head     string    `json:"head"`   // newest segment
	Archived int64     `json:"sealed"` // last line in it
	Control  Control   `json:"control"`

	Refusals RefusedSignals    `json:"refusals,omitzero"`
	Pending  *PendingWait      `json:"waiting,omitempty"` // for an answer
	Permits  map[string]string `json:"permits,omitempty"` // permissions of a replay's calls

	Reminded string `json:"reminded,omitempty"` // time of the last reminder of a lane's question
	Applied  string `json:"applied,omitempty"`  // the last decision about a lane that was acted on
}

// PendingWait is a wait for an answer that continues in the next execution.
type PendingWait struct {
	ID           string    `json:"id"` // of the question
	At           run.Place `json:"at"`
	LastReminded string    `json:"spoken"` // time of the question or the last reminder
	Permit       string    `json:"permit,omitempty"`
}

// Result is how a run ended.
type Result struct {
	RunID    string     `json:"run_id"`
	Status   run.Status `json:"status"`
	Reason   string     `json:"reason,omitempty"`
	Artifact string     `json:"artifact,omitempty"` // digest
	USD      float64    `json:"usd"`
	Score    *float64   `json:"score,omitempty"`
	Tail     run.Tail   `json:"tail"`
	Head     string     `json:"head"`
}

// Complete returns the options with defaults for zero values.
func (o Options) Complete() Options {
	if o.HeartbeatMS <= 0 {
		o.HeartbeatMS = 10_000
	}
	if o.TimeScale <= 0 {
		o.TimeScale = 1
	}
	return o
}

// ChildInput starts a child run: that of a project, whose directory is claimed and whose checkout exists, or a lane.
type ChildInput struct {
	Alias   string         `json:"project_alias"`
	Queue   string         `json:"queue"` // of its workflow tasks
	Summary string         `json:"summary"`
	Details string         `json:"details"`
	Memo    map[string]any `json:"memo"`
	Input   *Input         `json:"input"`
}

// NotifyWorkflow is the type of the workflow that sends the notices of one event of a run. It is an abandoned child:
// it keeps trying after the run has ended.
const NotifyWorkflow = "Notify"

// NoticeInput is one notice and its receivers.
type NoticeInput struct {
	Target Target `json:"target"`
	PlanUse
	DirQueue  string     `json:"dir_queue"`
	Notice    Notice     `json:"notice"`
	Receivers []Receiver `json:"receivers"`
}

// Receiver is one of the plan's receivers.
type Receiver struct {
	Index int `json:"index"`
	run.Receiver
}

// RefusedSignals counts the refused signals of a run.
type RefusedSignals struct {
	Journaled int                 `json:"noted,omitempty"`   // with an event each
	Counted   int                 `json:"counted,omitempty"` // since the last event
	Last      run.DecisionRefused `json:"last,omitzero"`     // of those
}
