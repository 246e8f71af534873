// Package contract defines names, inputs and results of the workflows and their activities, for those that call them and
// those that implement them. It does no IO. Large values are digests of blobs in the store; no value may exceed 64 KiB.
package contract

import (
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// Names of the activities. Recorded histories contain them.
const (
	Open            = "Open"
	Project         = "Project"
	Rebuild         = "Rebuild"
	ArchiveSegment  = "Seal"
	ReadRound       = "ReadRound"
	Evaluate        = "Evaluate"
	Compose         = "Compose"
	RunPass         = "RunPass"
	Turn            = "Turn"
	TakeScreenshots = "TakeScreenshots"
	Inspect         = "Inspect"
	SyncWorkspace   = "Carry"
	Deliver         = "Deliver"
	Notify          = "Notify"
	FindCheckpoint  = "FindCheckpoint"
	NextEpoch       = "NextEpoch"
	Amend           = "Amend"
)

// Target locates a run: its directory and its blobs. An activity refuses a directory with a later epoch or later events,
// with ErrNewer.
type Target struct {
	RunID string `json:"run_id"`
	Dir   string `json:"dir"`
	Store string `json:"store"`
	Epoch int    `json:"epoch,omitempty"`
	Seq   int64  `json:"seq,omitempty"` // the last event that the execution has written; 0: not compared
}

// Run returns the run id.
func (t Target) Run() string { return t.RunID }

func (t Target) GetTarget() Target { return t }

// Dirs returns the run directories that an activity uses.
func (t Target) Dirs() []string { return []string{t.Dir} }

// SetTarget replaces the target by the run's current one.
func (t *Target) SetTarget(to Target) { *t = to }

// PlanUse names a stored plan and the manifest of its inputs.
type PlanUse struct {
	Plan   string `json:"plan"`
	Inputs string `json:"inputs,omitempty"`
}

// OpenInput opens the directory before an execution writes to it.
type OpenInput struct {
	Target
	Claim     run.Claim `json:"claim"`
	Epoch     int       `json:"epoch"`             // that begins
	Tail      run.Tail  `json:"tail"`              // where the directory must end; zero for a new run
	Execution string    `json:"execution"`         // id of the first execution of this epoch
	Cluster   string    `json:"cluster"`           // id of the Temporal cluster
	Embedded  bool      `json:"embedded"`          // the cluster is the embedded server of its host
	Address   string    `json:"address,omitempty"` // of that server
	Task      string    `json:"task,omitempty"`    // task of a new run
}

// OpenResult describes the directory.
type OpenResult struct {
	Tail run.Tail `json:"tail"`
	Host string   `json:"host"`
	Task string   `json:"task,omitempty"` // of the input, without the secrets that the worker knows
}

// NextEpochInput asks for the epoch that continues a directory with lines or an epoch that the execution does not know.
type NextEpochInput struct {
	Target
	Claim run.Claim `json:"claim"`
}

// NextEpochResult is what the next epoch continues.
type NextEpochResult struct {
	Elsewhere string `json:"elsewhere,omitempty"` // the Temporal cluster that executes the run now; the rest is empty

	Epoch     int          `json:"epoch,omitempty"`
	State     run.State    `json:"state,omitzero"` // a closed one: there is nothing to continue
	Tail      run.Tail     `json:"tail,omitzero"`
	Head      string       `json:"head,omitempty"`   // newest segment
	Archived  int64        `json:"sealed,omitempty"` // last line in it
	Start     run.RunStart `json:"start,omitzero"`   // under the plan in force
	TimeScale float64      `json:"time_scale,omitempty"`
	Ended     bool         `json:"ended,omitempty"` // the last epoch has journaled its end

	Host     string `json:"host,omitempty"`
	Cluster  string `json:"cluster,omitempty"`
	Embedded bool   `json:"embedded,omitempty"`
	Address  string `json:"address,omitempty"`

	Repaired []run.JournalDamage `json:"repaired,omitempty"` // lines of the directory that were restored
}

// ProjectInput is a batch of the journal. These bytes, as scheduled, are the record. Without lines, the directory is only
// compared with the journal before First.
type ProjectInput struct {
	Target
	First int64     `json:"first,omitempty"`
	Prev  run.Chain `json:"prev"`
	Lines Lines     `json:"lines"`
	Head  string    `json:"head,omitempty"` // newest segment

	Verified bool `json:"verified,omitempty"` // damage to earlier lines is already known
}

// ProjectResult reports where the directory's journal ends.
type ProjectResult struct {
	Outcome   run.Projection   `json:"outcome"`
	Tail      run.Tail         `json:"tail,omitzero"`
	Recovered []RecoveredError `json:"troubles,omitempty"`

	Damage []run.JournalDamage `json:"damage,omitempty"`
}

// RebuildInput rebuilds a lost directory from segments and the workflow's history.
type RebuildInput struct {
	Target
	Claim run.Claim `json:"claim"`
	Head  string    `json:"head"`
}

// RebuildResult is where the directory ends, and which lines were damaged.
type RebuildResult struct {
	run.Tail
	Damage []run.JournalDamage `json:"damage,omitempty"`
}

// ArchiveSegmentInput archives the lines from First to Tail after Head.
type ArchiveSegmentInput struct {
	Target
	Head  string   `json:"head"`
	First int64    `json:"first"`
	Tail  run.Tail `json:"tail"`
}

// ArchiveSegmentResult is the newest segment and its last line: before ArchiveSegmentInput.First if the lines are
// damaged and no intact copy exists.
type ArchiveSegmentResult struct {
	Head   string              `json:"head"`
	Last   int64               `json:"last"`
	Damage []run.JournalDamage `json:"damage,omitempty"`
}

// InspectInput compares the artifact on disk with the one in the journal.
type InspectInput struct {
	Target
	File   string `json:"file,omitempty"`
	Digest string `json:"digest,omitempty"`
	Tree   *Tree  `json:"tree,omitempty"` // or the workspace, if the run has one
	Back   bool   `json:"back,omitempty"` // the run goes back: what a call has left there counts for nothing
}

// Tree is the current workspace of a run.
type Tree struct {
	PlanUse                 // defines what is excluded
	Workspace run.Workspace `json:"workspace"`
	Tree      run.Blob      `json:"tree"`
	Commit    string        `json:"commit,omitempty"`
}

// InspectResult is what was found: nothing, an edit (stored), or a missing file (restored).
type InspectResult struct {
	Edited   *run.Blob `json:"edited,omitempty"`
	Restored bool      `json:"restored,omitempty"`

	Workspace *run.WorkspaceUpdated `json:"workspace,omitempty"` // edits of the workspace
	Recovered []RecoveredError      `json:"recovered,omitempty"` // what a lost call left there, and that was kept
}

// SyncWorkspaceInput updates the run's checkout to a tree, and commits it in a git checkout.
type SyncWorkspaceInput struct {
	Target
	Tree    Tree   `json:"tree"`    // what it is to contain; Commit is its parent
	Message string `json:"message"` // of the commit

	DiffFrom *run.Blob `json:"from,omitempty"` // report changes since this tree
	Previous *run.Blob `json:"was,omitempty"`  // the tree of Tree.Commit
}

// SyncWorkspaceResult is the commit of the tree; empty without git.
type SyncWorkspaceResult struct {
	Commit  string                `json:"commit,omitempty"`
	Changes *run.WorkspaceUpdated `json:"changes,omitempty"` // since SyncWorkspaceInput.DiffFrom

	Recovered []RecoveredError `json:"troubles,omitempty"` // files that had to be moved
}

// DeliverInput delivers a run's changes.
type DeliverInput struct {
	Target
	Workspace run.Workspace `json:"workspace"`
	Commit    string        `json:"commit"`         // of the run's branch
	Tree      *run.Blob     `json:"tree,omitempty"` // that was judged; nil: the first one
	PlanUse                 // defines the destination
	Action    string        `json:"action,omitempty"` // the decision: approve, apply or skip; empty: none
	Message   string        `json:"message"`
	DryRun    bool          `json:"look,omitempty"` // only report what would be delivered

	Forge *run.ForgeRef `json:"forge,omitempty"` // of a pull request
	Pull  int           `json:"pull,omitempty"`  // number of the run's pull request, which was open when it was read last
}

// DeliverResult is what was delivered, or why not. A delivery is never partial.
type DeliverResult struct {
	Diff  *run.Blob `json:"diff,omitempty"` // the patch; nil: nothing to deliver
	Files int       `json:"files"`
	// changed files of the target that the delivery would change; the first 20
	Dirty []string `json:"dirty,omitempty"`
	// changed files that a start of the pipeline reads; the first 20
	Definition []string `json:"definition,omitempty"`
	Reason     string   `json:"why,omitempty"` // at most 2 KiB, with the number of further files
	Delivered  bool     `json:"delivered"`
	To         string   `json:"to,omitempty"`
	Location   string   `json:"where,omitempty"` // the branch, the checkout's folder, or the address of the pull request
	Commit     string   `json:"commit,omitempty"`

	Pull    int    `json:"pull,omitempty"`     // number of the pull request
	Branch  string `json:"branch,omitempty"`   // of the pull request
	RetryAt string `json:"retry_at,omitempty"` // the forge takes no requests before this time
}

// Notice is the message to a receiver, as JSON.
type Notice struct {
	ID         string     `json:"id"` // of the notice: the same in every delivery
	Run        string     `json:"run"`
	Pipeline   string     `json:"pipeline"`
	Task       string     `json:"task"`
	Event      string     `json:"event"` // question, pause, budget, limit, failure or end
	Seq        int64      `json:"seq"`   // of the event in the journal
	At         string     `json:"at"`
	Status     run.Status `json:"status"`
	Reason     string     `json:"reason"`
	Detail     string     `json:"detail"`
	Question   string     `json:"question"` // text; empty: none is open
	QuestionID string     `json:"question_id"`
	ExpiresAt  string     `json:"expires_at"` // when the question expires; empty: never
	Actions    []string   `json:"actions"`
	Next       []string   `json:"next"` // commands to run
	Directory  string     `json:"directory"`
	USD        float64    `json:"cost_usd"`
	Score      *float64   `json:"score"`
}

// NotifyInput notifies one receiver of the stored plan.
type NotifyInput struct {
	Target
	PlanUse
	Receiver int    `json:"receiver"`
	Notice   Notice `json:"notice"`
}

// RoundInput reads one round of a stage of the stored plan.
type RoundInput struct {
	RunID string `json:"run_id"`
	Store string `json:"store"`
	PlanUse
	Stage int `json:"stage"`
	Round int `json:"round"`
}

// Round is one round of a stage's steps, as the workflow needs it.
type Round struct {
	Stages     int                `json:"stages"` // of the plan
	Stage      string             `json:"stage"`
	Title      string             `json:"title"`
	Kind       pipeline.StageKind `json:"kind"`
	Repeat     *pipeline.Repeat   `json:"repeat,omitempty"`
	Rounds     int                `json:"rounds"` // of this stage; 0 if it repeats
	Set        string             `json:"set,omitempty"`
	Dir        string             `json:"dir,omitempty"`
	Checkpoint string             `json:"checkpoint,omitempty"`
	PauseAfter bool               `json:"pause_after,omitempty"` // pause for a review after the round
	When       string             `json:"when,omitempty"`
	Needs      []string           `json:"needs,omitempty"` // of the condition of the loop
	Gate       string             `json:"quality_gate,omitempty"`
	GateNeeds  []string           `json:"gate_needs,omitempty"`
	Threshold  *float64           `json:"threshold,omitempty"`
	Lanes      *pipeline.Lanes    `json:"lanes,omitempty"`
	Steps      []Step             `json:"steps"`
	Fresh      []Step             `json:"fresh,omitempty"` // commands that run once more in a fresh folder
}

// At returns a step of the round: those that run in a fresh folder follow the others.
func (r Round) At(step int) (Step, bool) {
	switch n := step - len(r.Steps); {
	case step < 0 || n >= len(r.Fresh):
		return Step{}, false
	case n >= 0:
		return r.Fresh[n], true
	}
	return r.Steps[step], true
}

// FreshSlot names the folder that is made anew for each call in it.
const FreshSlot = "fresh"

// EvaluateInput evaluates a condition.
type EvaluateInput struct {
	RunID string `json:"run_id"`
	Store string `json:"store"`
	PlanUse
	Text     string           `json:"text"`
	Outputs  []run.StepOutput `json:"outputs,omitempty"` // that it names
	Approved bool             `json:"approved"`
	Verdict  string           `json:"verdict"`
	Score    *float64         `json:"score"`
	Scores   []float64        `json:"scores,omitempty"`
	Round    int              `json:"round"`
	Task     string           `json:"task"`
}

// EvaluateResult is the value of a condition.
type EvaluateResult struct {
	Holds bool        `json:"holds"`
	Read  []run.Value `json:"read,omitempty"` // what it names
}

// Step is one step with its role, or the members of a group.
type Step struct {
	pipeline.PlanStep
	Roles []Role `json:"roles,omitempty"`
}

// Role is what the workflow needs of a role.
type Role struct {
	Name  string `json:"name"`
	Gives string `json:"gives"`
	Agent string `json:"agent"` // display name: claude -p

	// what a host needs for its calls
	Program string `json:"program,omitempty"`

	Fallback []FallbackAgent `json:"fallback,omitempty"` // asked in this order at a usage limit

	Notes      []string `json:"notes,omitempty"`    // names of the notes it adds to
	Score      string   `json:"score,omitempty"`    // name of the score it returns
	HasVerdict bool     `json:"judges,omitempty"`   // it returns a verdict
	Approval   []string `json:"approval,omitempty"` // verdicts that approve the work
	Schema     string   `json:"schema,omitempty"`   // of the JSON that its replies end with
	Lists      bool     `json:"lists,omitempty"`    // a later stage has a lane for each item of a list in its output
	ID         string   `json:"id,omitempty"`       // of its output
	Keep       bool     `json:"keep,omitempty"`     // later steps or conditions use the output
	Uses       []string `json:"uses,omitempty"`     // ids of the outputs that its prompt has

	Limits pipeline.Limits `json:"limits"`
}

// FallbackAgent is an agent that is asked at the usage limit of another one.
type FallbackAgent struct {
	Name    string `json:"name"`  // in the plan
	Agent   string `json:"agent"` // display name
	Program string `json:"program,omitempty"`
}

// StepRef identifies one call in the stored plan.
type StepRef struct {
	PlanUse
	Stage  int    `json:"stage"`
	Round  int    `json:"round"`
	Step   int    `json:"step"`
	Member string `json:"member,omitempty"`
	Agent  string `json:"agent,omitempty"` // instead of that of the role; empty: that of the role
}

// ComposeInput composes a prompt.
type ComposeInput struct {
	RunID   string      `json:"run_id"`
	Store   string      `json:"store"`
	At      StepRef     `json:"at"`
	Context StepContext `json:"given"`
}

// PassInput makes one call.
type PassInput struct {
	RunID   string `json:"run_id,omitempty"`
	Store   string `json:"store,omitempty"`
	Call    string `json:"call,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	// instructions of operators for which an earlier delivery of the call was interrupted
	Steering   []string     `json:"steering,omitempty"`
	At         StepRef      `json:"at"`
	DecisionID string       `json:"again,omitempty"`   // decision to repeat the step: it makes the question a new one
	Heading    string       `json:"heading,omitempty"` // of its entries in notes
	Prompt     run.Blob     `json:"prompt,omitzero"`
	Context    *StepContext `json:"given,omitempty"` // parts of a redacted prompt, to compose it again
	Artifact   *run.Blob    `json:"artifact,omitempty"`
	Notes      []run.Notes  `json:"notes,omitempty"`
	Pictures   *run.Blob    `json:"pictures,omitempty"`
	Tree       *Tree        `json:"tree,omitempty"`   // the workspace as it is accepted
	Slot       string       `json:"slot,omitempty"`   // of the folder to work in; empty: that of the run
	Before     *run.Blob    `json:"before,omitempty"` // output of the command in the workspace, if it runs in a fresh folder
	Scope      *run.Scope   `json:"scope,omitempty"`  // that the changes are compared with
	Item       *ItemUse     `json:"item,omitempty"`   // of a lane
	// of the role's previous call in the stage, if it continues its session
	Session     *run.KeptSession `json:"session,omitempty"`
	TimeoutMS   int64            `json:"timeout_ms"`
	HeartbeatMS int64            `json:"heartbeat_ms,omitempty"`
	BudgetUSD   float64          `json:"budget_usd,omitempty"` // what the call may spend; 0: no limit

	Now bool `json:"now,omitempty"` // an operator asks for it: it waits for no limit of its account or host

	SupersededSeen int `json:"late,omitempty"` // number of superseded results already counted

	RecordedRun  string `json:"recorded,omitempty"`    // run whose answers to the same question are reused
	Generations  int    `json:"generations,omitempty"` // the newest generation of RecordedRun
	RecordedOnly bool   `json:"only,omitempty"`        // make no call
}

// TurnInput is a call with the events that must be on disk before it begins.
type TurnInput struct {
	Project ProjectInput `json:"project"`
	Call    PassInput    `json:"call"`
}

// Run returns the run id.
func (in TurnInput) Run() string { return in.Project.RunID }

// Dirs returns the run directory.
func (in TurnInput) Dirs() []string { return in.Project.Dirs() }

// TurnResult is the result of both parts. Without a call, the events were not written.
type TurnResult struct {
	Project ProjectResult `json:"project,omitzero"`
	Pass    *PassResult   `json:"pass,omitempty"`
}

// PassResult is the evaluated result of a call.
type PassResult struct {
	run.Reading
	Structural bool `json:"structural,omitempty"` // the reply is unusable; the agent works
	Unjudged   bool `json:"unjudged,omitempty"`   // likewise, for a role that returns a verdict or JSON
	// why the provider did not answer; nil: it did, or for an unknown reason
	Limit       *run.Limit            `json:"limit,omitempty"`
	Uncalled    bool                  `json:"uncalled,omitempty"`    // with Limit, which was known: no call was made
	Permanent   bool                  `json:"permanent,omitempty"`   // a retry cannot succeed
	OverBudget  bool                  `json:"over_budget,omitempty"` // the agent stopped at PassInput.BudgetUSD
	ExitCode    int                   `json:"exit_code,omitempty"`
	Diagnostics string                `json:"diagnostics,omitempty"`
	Reply       *run.Blob             `json:"reply,omitempty"`
	Output      *run.Blob             `json:"output,omitempty"`   // output of a failed call
	Envelope    *run.Blob             `json:"envelope,omitempty"` // what the agent reported besides its reply
	Artifact    *run.Blob             `json:"artifact,omitempty"`
	Notes       []run.NoteAppended    `json:"notes,omitempty"`
	Findings    *run.Findings         `json:"findings,omitempty"` // of a structured verdict
	Found       *run.Found            `json:"found,omitempty"`    // about the changes
	Setup       *run.WorkspaceSetup   `json:"setup,omitempty"`    // of the workspace, before the call
	Tampered    *run.Tampered         `json:"tampered,omitempty"` // protected files that were restored
	Scope       *run.Scope            `json:"scope,omitempty"`    // that the reply declares
	Data        *run.Blob             `json:"data,omitempty"`     // JSON of the reply
	Value       string                `json:"value,omitempty"`    // of a command: ok or failed
	Changes     *run.WorkspaceUpdated `json:"changes,omitempty"`  // of a pass that returns changes
	Spend       run.Spend             `json:"spend"`
	StartedAt   string                `json:"started_at"`
	DurationMS  int64                 `json:"duration_ms"`
	ResumedFrom string                `json:"resumed_from,omitempty"` // session that the agent continued
	Tools       *run.ToolUses         `json:"tools,omitempty"`
	Session     *run.KeptSession      `json:"session,omitempty"` // of an accepted answer, that the next call continues
	Reused      bool                  `json:"reused,omitempty"`
	Joined      bool                  `json:"joined,omitempty"`
	Superseded  []SupersededResult    `json:"late,omitempty"` // of this call or earlier ones
	// call of another run that the answer was copied from
	Source     string  `json:"source,omitempty"`
	SourceUSD  float64 `json:"source_usd,omitempty"` // cost at the source
	Unrecorded bool    `json:"unrecorded,omitempty"` // no record exists, and no call was allowed

	// host whose worker stopped during the call: its next worker joins it
	HandedOver string     `json:"handed_over,omitempty"`
	ClaimedBy  *HostClaim `json:"elsewhere,omitempty"` // another host may be making the call
}

// RecoveredError is an error that an activity recovered from; it is journaled.
type RecoveredError struct {
	Category    run.Category `json:"category"`
	Message     string       `json:"message"`
	Diagnostics string       `json:"diagnostics,omitempty"`
	Attempt     int          `json:"attempt,omitempty"` // of the activity, that succeeded; 0: no retry was needed
	Kept        string       `json:"kept,omitempty"`    // as in run.ErrorNoted
}

// Heartbeat is reported by running activities.
type Heartbeat struct {
	Host  string `json:"host"`
	Call  string `json:"call"`
	Bytes int64  `json:"bytes"` // of the reply so far

	LastError *RecoveredError `json:"trouble,omitempty"` // error of the last attempt at work on the directory
}

// Error types of activities, in addition to Temporal's.
const (
	ErrWorkerStopping = "WorkerStopping" // redeliver: the call has no result
	ErrWorkerLost     = "WorkerLost"     // the worker is dead, as the next one of its host found; the details are a Heartbeat
	// redeliver to the host in the details (a Heartbeat): it has an answer that the store did not take
	ErrUnstored      = "Unstored"
	ErrNoAnswer      = "NoAnswer"  // the agent ended without an answer; the details have its cost
	ErrForced        = "Forced"    // reset or cancelled by an operator
	ErrPaused        = "Paused"    // the activity was paused by an operator
	ErrBadInput      = "BadInput"  // no worker can do it
	ErrDirectoryLost = "Shorter"   // rebuild the lost directory first
	ErrClaimed       = "Claimed"   // the directory belongs to another run
	ErrNewer         = "Newer"     // the directory has lines or an epoch that the execution does not know
	ErrDamaged       = "Damaged"   // a file is damaged, and no retry can read it
	ErrNoStore       = "NoStore"   // this host cannot reach the store, or its settings do not list it
	ErrNoProgram     = "NoProgram" // this host lacks the agent's program
	ErrNoSlot        = "NoSlot"    // no slot in time; the work has not begun
	ErrSetup         = "Setup"     // the commands that set up the workspace failed
	ErrDiskFull      = "DiskFull"  // a disk is full or its quota is used up
)

// ShotsInput takes screenshots of the artifact.
type ShotsInput struct {
	PlanUse
	RunID       string               `json:"run_id"`
	Store       string               `json:"store"`
	Artifact    run.Blob             `json:"artifact"`
	Name        string               `json:"name"`
	Shots       pipeline.Screenshots `json:"shots"`
	HeartbeatMS int64                `json:"heartbeat_ms"`

	Call        string `json:"call"`                  // without the question
	Last        bool   `json:"last,omitempty"`        // no attempt follows: this result is final
	RecordedRun string `json:"recorded,omitempty"`    // run whose screenshots of the same page are reused
	Generations int    `json:"generations,omitempty"` // the newest generation of RecordedRun
}

// CheckpointInput reads a checkpoint of a run.
type CheckpointInput struct {
	PlanUse
	Store string `json:"store"`
	RunID string `json:"run_id"`
	ID    string `json:"id"`
}

// ShotsResult is the stored manifest of the screenshots, or why there are none.
type ShotsResult struct {
	Manifest   run.Blob         `json:"manifest"`
	Count      int              `json:"count"`
	DurationMS int64            `json:"duration_ms"`
	Message    string           `json:"message,omitempty"` // empty on success
	Permanent  bool             `json:"permanent,omitempty"`
	Recovered  []RecoveredError `json:"troubles,omitempty"`
	Source     string           `json:"source,omitempty"` // run that they were taken from
}
