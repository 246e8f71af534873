// Package work says what activities are asked and what they answer: names and types, shared by the workflow that asks and the activities
// that do. It is pure. Everything big is a digest of the store; no value here may grow over 64 KiB.
package work

import (
	"strings"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// Names of the activities.
const (
	Open            = "Open"
	Project         = "Project"
	Rebuild         = "Rebuild"
	Seal            = "Seal"
	ReadRound       = "ReadRound"
	Compose         = "Compose"
	RunPass         = "RunPass"
	TakeScreenshots = "TakeScreenshots"
	Inspect         = "Inspect"
	Carry           = "Carry"
	Deliver         = "Deliver"
	Notify          = "Notify"
	FindCheckpoint  = "FindCheckpoint"
	Rehome          = "Rehome"
)

// Target says which run, where its directory is and where its blobs are.
type Target struct {
	RunID string `json:"run_id"`
	Dir   string `json:"dir"`
	Store string `json:"store"`
}

// Run is the run that an activity with this target works for.
func (t Target) Run() string { return t.RunID }

// Where is the target itself.
func (t Target) Where() Target { return t }

// Moved makes the target the one that a run has now.
func (t *Target) Moved(to Target) { *t = to }

// OpenInput asks for the directory to be looked at before an execution writes to it.
type OpenInput struct {
	Target
	Claim     run.Claim `json:"claim"`
	Epoch     int       `json:"epoch"`
	Tail      run.Tail  `json:"tail"`              // where the directory must end; zero for a new run
	Execution string    `json:"execution"`         // id of the first execution of this epoch
	Cluster   string    `json:"cluster"`           // id of the Temporal cluster that it runs on
	Embedded  bool      `json:"embedded"`          // that is the embedded server of its host
	Address   string    `json:"address,omitempty"` // of that server
}

// OpenResult says what the directory holds.
type OpenResult struct {
	Tail run.Tail `json:"tail"`
	Host string   `json:"host"`
}

// RehomeInput asks whether a directory, the target's, is the run's that was somewhere else. Nothing is written.
type RehomeInput struct {
	Target
	From      string   `json:"from,omitempty"` // where it was; empty: on another host
	Epoch     int      `json:"epoch"`
	Execution string   `json:"execution"` // id of the first execution of this epoch
	Tail      run.Tail `json:"tail"`      // where the journal ends on disk, as far as is known
	Head      string   `json:"head"`
}

// RehomeResult is the host that the directory was found on.
type RehomeResult struct {
	Host string `json:"host"`
}

// ProjectInput is a piece of the journal. These bytes, as they were scheduled, are the record.
type ProjectInput struct {
	Target
	Epoch int       `json:"epoch"`
	First int64     `json:"first"`
	Prev  run.Chain `json:"prev"`
	Lines []string  `json:"lines"`
	Head  string    `json:"head,omitempty"` // newest segment

	Verified bool `json:"verified,omitempty"` // damage to what was written earlier is known
	Look     bool `json:"look,omitempty"`     // only say whether the directory's run is done: there are no lines, and nothing is written
}

// ProjectResult says where the directory's journal ends; Outcome is written, gap, diverged, damaged, stale or final.
type ProjectResult struct {
	Outcome  string    `json:"outcome"`
	Tail     run.Tail  `json:"tail"`
	Troubles []Trouble `json:"troubles,omitempty"`

	Damage []run.JournalDamage `json:"damage,omitempty"`
	End    *End                `json:"end,omitempty"` // the outcome is final: what the run has come to
}

// End is how the journal of a run that is done ends.
type End struct {
	State run.State `json:"state"`
	Head  string    `json:"head"` // newest segment
}

// RebuildInput asks for a lost directory to be written again from segments and this workflow's history.
type RebuildInput struct {
	Target
	Claim run.Claim `json:"claim"`
	Head  string    `json:"head"`
}

// RebuildResult is where the directory ends now, and which of its lines were damaged.
type RebuildResult struct {
	run.Tail
	Damage []run.JournalDamage `json:"damage,omitempty"`
}

// SealInput asks for the lines from First to Tail to be put into the store behind Head.
type SealInput struct {
	Target
	Head  string   `json:"head"`
	First int64    `json:"first"`
	Tail  run.Tail `json:"tail"`
}

// SealResult is the newest segment, and the last line in it: before SealInput.First where the lines are damaged and nothing has them as they were.
type SealResult struct {
	Head   string              `json:"head"`
	Last   int64               `json:"last"`
	Damage []run.JournalDamage `json:"damage,omitempty"`
}

// InspectInput asks whether the artifact on disk is the one the run knows.
type InspectInput struct {
	Target
	File   string `json:"file,omitempty"`
	Digest string `json:"digest,omitempty"`
	Tree   *Tree  `json:"tree,omitempty"` // or the workspace, where the run has one
}

// Tree is a run's workspace as it stands.
type Tree struct {
	Plan      string        `json:"plan"` // says what is left out of it
	Workspace run.Workspace `json:"workspace"`
	Tree      run.Blob      `json:"tree"`
	Commit    string        `json:"commit,omitempty"`
}

// InspectResult says what was found: nothing, an edit by somebody else (stored), or a missing file (put back).
type InspectResult struct {
	Edited   *run.Blob `json:"edited,omitempty"`
	Restored bool      `json:"restored,omitempty"`

	Workspace *run.WorkspaceUpdated `json:"workspace,omitempty"` // what somebody changed in the run's own checkout
}

// CarryInput asks for the run's own checkout to be brought to a tree, and committed where it is a git checkout.
type CarryInput struct {
	Target
	Tree    Tree   `json:"tree"`    // what it is to hold; Commit is what it stands on
	Message string `json:"message"` // of the commit

	From *run.Blob `json:"from,omitempty"` // say what has changed since this tree
	Was  *run.Blob `json:"was,omitempty"`  // what it holds, as far as the run knows; a file that is not of it is an operator's, and is kept
}

// CarryResult is the commit that holds the tree; empty without git.
type CarryResult struct {
	Commit  string                `json:"commit,omitempty"`
	Changes *run.WorkspaceUpdated `json:"changes,omitempty"` // since CarryInput.From

	Troubles []Trouble `json:"troubles,omitempty"` // files that had to be moved away
}

// DeliverInput asks for a run's changes to be delivered.
type DeliverInput struct {
	Target
	Workspace run.Workspace `json:"workspace"`
	Commit    string        `json:"commit"`           // of the run's branch
	Plan      string        `json:"plan"`             // says where to
	Action    string        `json:"action,omitempty"` // what an operator decided: approve, apply or skip; empty: nobody was asked
	Message   string        `json:"message"`
	Look      bool          `json:"look,omitempty"` // only say what would be delivered
}

// DeliverResult says what was delivered, or why not. Nothing is half delivered.
type DeliverResult struct {
	Diff      *run.Blob `json:"diff,omitempty"` // the patch; nil: there is nothing to deliver
	Files     int       `json:"files"`
	Dirty     []string  `json:"dirty,omitempty"` // files of the target that were changed meanwhile, and that the delivery would change; the first 20
	Why       string    `json:"why,omitempty"`   // in words, at most 2 KiB; how many files more there are, too
	Delivered bool      `json:"delivered"`
	To        string    `json:"to,omitempty"`
	Where     string    `json:"where,omitempty"` // the branch, or the checkout's folder
	Commit    string    `json:"commit,omitempty"`
}

// Notice is a message about a run to people: this JSON is what they get.
type Notice struct {
	ID         string     `json:"id"` // of the message: the same in every delivery
	Run        string     `json:"run"`
	Pipeline   string     `json:"pipeline"`
	Task       string     `json:"task"`
	Event      string     `json:"event"` // question, pause, budget, failure or end
	Seq        int64      `json:"seq"`   // of the event in the journal
	At         string     `json:"at"`
	Status     run.Status `json:"status"`
	Reason     string     `json:"reason"`
	Detail     string     `json:"detail"`
	Question   string     `json:"question"` // in words; empty: none is open
	QuestionID string     `json:"question_id"`
	Actions    []string   `json:"actions"`
	Next       []string   `json:"next"` // what to type
	Directory  string     `json:"directory"`
	USD        float64    `json:"cost_usd"`
	Score      *float64   `json:"score"`
}

// NotifyInput asks for one receiver of the stored plan to be told.
type NotifyInput struct {
	Target
	Plan     string `json:"plan"`
	Receiver int    `json:"receiver"`
	Notice   Notice `json:"notice"`
}

// RoundInput asks for one round of a stage of the stored plan.
type RoundInput struct {
	Store string `json:"store"`
	Plan  string `json:"plan"`
	Stage int    `json:"stage"`
	Round int    `json:"round"`
}

// Round is one walk through a stage's steps, with what the workflow needs to decide.
type Round struct {
	Stages     int              `json:"stages"` // of the plan
	Stage      string           `json:"stage"`
	Title      string           `json:"title"`
	Kind       string           `json:"kind"`
	Repeat     *pipeline.Repeat `json:"repeat,omitempty"`
	Rounds     int              `json:"rounds"` // of this stage; 0 where it repeats
	Set        string           `json:"set,omitempty"`
	Dir        string           `json:"dir,omitempty"`
	Checkpoint string           `json:"checkpoint,omitempty"`
	PauseAfter bool             `json:"pause_after,omitempty"` // rest for a review when the round is through
	Gate       string           `json:"quality_gate,omitempty"`
	Threshold  *float64         `json:"threshold,omitempty"`
	Steps      []Step           `json:"steps"`
}

// Step is one step with its roles: one, or the members of a group.
type Step struct {
	pipeline.PlanStep
	Roles []Role `json:"roles,omitempty"`
}

// Role is what the workflow needs to know of a role.
type Role struct {
	Name  string `json:"name"`
	Gives string `json:"gives"`
	Agent string `json:"agent"` // for people: claude -p

	Program string `json:"program,omitempty"` // what a host must have to make its calls; empty: in rounds read by an earlier version

	Notes  []string `json:"notes,omitempty"`  // names of the notes it adds to
	Score  string   `json:"score,omitempty"`  // name of the score it gives
	Judges bool     `json:"judges,omitempty"` // it gives a verdict

	Approval string `json:"approval,omitempty"` // the condition that a verdict must meet to approve the work; see pipeline.Plan.Approval

	Limits pipeline.Limits `json:"limits"`
}

// StepRef names one call in the stored plan.
type StepRef struct {
	Plan   string `json:"plan"`
	Inputs string `json:"inputs,omitempty"` // manifest of the run's inputs: for whoever composes
	Stage  int    `json:"stage"`
	Round  int    `json:"round"`
	Step   int    `json:"step"`
	Member string `json:"member,omitempty"`
}

// ComposeInput asks for a prompt.
type ComposeInput struct {
	Store string  `json:"store"`
	At    StepRef `json:"at"`
	Given Given   `json:"given"`
}

// Given is what a step is given of the run's state.
type Given struct {
	Artifact *run.Blob    `json:"artifact,omitempty"`
	Notes    []run.Notes  `json:"notes,omitempty"`
	Replies  []run.Reply  `json:"replies,omitempty"`
	Pictures *run.Blob    `json:"pictures,omitempty"`
	Feedback string       `json:"feedback,omitempty"` // the operator's words for a round that is done again
	Waiver   *run.Waiver  `json:"waiver,omitempty"`   // what an operator let pass; later reviews are told
	Waivers  []run.Waiver `json:"waivers,omitempty"`  // and before that
	Task     string       `json:"task,omitempty"`     // the run's own
	Base     string       `json:"base,omitempty"`     // commit that the workspace began with
}

// ComposeResult is the stored prompt and what went into it.
type ComposeResult struct {
	Prompt     run.Blob `json:"prompt"`
	Files      []string `json:"files,omitempty"`
	References []string `json:"references,omitempty"`
}

// PassInput asks for one call.
type PassInput struct {
	Store       string      `json:"store"`
	Call        string      `json:"call"`
	Attempt     int         `json:"attempt"`
	At          StepRef     `json:"at"`
	Again       string      `json:"again,omitempty"` // the decision that wants the step done once more: another question, even in the same words
	Heading     string      `json:"heading"`         // of what it adds to notes
	Prompt      run.Blob    `json:"prompt"`
	Given       *Given      `json:"given,omitempty"` // what the prompt was made of, where secrets are hidden in the stored one: it is made again
	Artifact    *run.Blob   `json:"artifact,omitempty"`
	Notes       []run.Notes `json:"notes,omitempty"`
	Pictures    *run.Blob   `json:"pictures,omitempty"`
	Tree        *Tree       `json:"tree,omitempty"` // the workspace that it works on a copy of
	TimeoutMS   int64       `json:"timeout_ms"`
	HeartbeatMS int64       `json:"heartbeat_ms"`

	Late int `json:"late,omitempty"` // how many late answers are accounted for

	Recorded    string `json:"recorded,omitempty"`    // run whose answers are taken where the question is the same
	Generations int    `json:"generations,omitempty"` // its newest
	Only        bool   `json:"only,omitempty"`        // make no call: only look
}

// Late is an answer that came after the one that counts. It was paid for too.
type Late struct {
	Number int       `json:"number"` // among those of the run, from 1
	Call   string    `json:"call"`
	Spend  run.Spend `json:"spend"`

	Prompt   *run.Blob `json:"prompt,omitempty"`
	Output   *run.Blob `json:"output,omitempty"` // what came back
	Envelope *run.Blob `json:"envelope,omitempty"`
}

// PassResult is a call that was judged.
type PassResult struct {
	Outcome     string                `json:"outcome"` // ok or one of the categories
	Message     string                `json:"message,omitempty"`
	Structural  bool                  `json:"structural,omitempty"`   // the reply cannot be used; the agent is well
	Unjudged    bool                  `json:"unjudged,omitempty"`     // likewise, of a role that was to give a verdict
	RateLimited bool                  `json:"rate_limited,omitempty"` // the provider is overloaded
	Permanent   bool                  `json:"permanent,omitempty"`    // another attempt cannot help
	ExitCode    int                   `json:"exit_code,omitempty"`
	Diagnostics string                `json:"diagnostics,omitempty"`
	Reply       *run.Blob             `json:"reply,omitempty"`
	Output      *run.Blob             `json:"output,omitempty"`   // what came back from a failed call
	Envelope    *run.Blob             `json:"envelope,omitempty"` // what the agent reported beside its reply, of any call
	Artifact    *run.Blob             `json:"artifact,omitempty"`
	Modified    bool                  `json:"modified,omitempty"`
	Validation  run.Validation        `json:"validation"`
	Notes       []run.NoteAppended    `json:"notes,omitempty"`
	Tally       []run.Count           `json:"tally,omitempty"`
	Score       *float64              `json:"score,omitempty"`
	ScoreWhy    string                `json:"score_why,omitempty"`
	Verdict     string                `json:"verdict,omitempty"`
	Value       string                `json:"value,omitempty"`   // of a command: ok or failed
	Changes     *run.WorkspaceUpdated `json:"changes,omitempty"` // of a pass that gives changes and made some
	Spend       run.Spend             `json:"spend"`
	StartedAt   string                `json:"started_at"`
	DurationMS  int64                 `json:"duration_ms"`
	Reused      bool                  `json:"reused,omitempty"`
	Joined      bool                  `json:"joined,omitempty"`
	Late        []Late                `json:"late,omitempty"`       // answers that came after the ones that count, of this call or an earlier one
	Source      string                `json:"source,omitempty"`     // call of another run that the answer was taken from
	SourceUSD   float64               `json:"source_usd,omitempty"` // what it had cost there
	Unrecorded  bool                  `json:"unrecorded,omitempty"` // there is no record of it, and no call was wanted

	HandedOver string     `json:"handed_over,omitempty"` // host whose worker stopped while the call continues: its next worker joins it
	Elsewhere  *Elsewhere `json:"elsewhere,omitempty"`   // another host may be making the call
}

// Elsewhere names the host that has claimed a call, and until when its claim holds.
type Elsewhere struct {
	Host  string `json:"host"`
	Until string `json:"until"`
}

// Suffix ends the id of an activity that waits for that host. [WaitsFor] reads it.
func (e Elsewhere) Suffix() string { return elsewhereMark + e.Host + "/" + e.Until }

const elsewhereMark = "@"

// WaitsFor reads from the id of an activity which host's claim it waits for; false: for none.
func WaitsFor(activityID string) (Elsewhere, bool) {
	_, claimed, ok := strings.Cut(activityID, elsewhereMark)
	host, until, both := strings.Cut(claimed, "/")
	return Elsewhere{Host: host, Until: until}, ok && both
}

// Trouble is what an activity met and got over: it is journaled as an error that was recovered from.
type Trouble struct {
	Category    string `json:"category"` // one of the fifteen
	Message     string `json:"message"`
	Diagnostics string `json:"diagnostics,omitempty"`
	Attempt     int    `json:"attempt,omitempty"` // of the activity, that got over it; 0: not by trying again
}

// Heartbeat is what a running pass reports.
type Heartbeat struct {
	Host  string `json:"host"`
	Call  string `json:"call"`
	Bytes int64  `json:"bytes"` // of the reply so far

	Trouble *Trouble `json:"trouble,omitempty"` // what the last attempt at directory work failed with
}

// Types of errors that activities fail with, beside those of Temporal.
const (
	ErrWorkerStopping = "WorkerStopping" // redeliver: the call has no result
	ErrUnstored       = "Unstored"       // redeliver on the host in the details, a Heartbeat: the agent has answered, and the store did not take it
	ErrForced         = "Forced"         // reset or cancelled by a person
	ErrPaused         = "Paused"         // its activity was paused by a person
	ErrBadInput       = "BadInput"       // no worker can do what was asked
	ErrShorter        = "Shorter"        // Seal: the directory was lost, rebuild it first
	ErrClaimed        = "Claimed"        // the directory belongs to another run
	ErrStale          = "Stale"          // a later start of the run owns the directory
	ErrFinal          = "Final"          // the directory's run is done: nothing of it is changed any more
	ErrOtherEvents    = "OtherEvents"    // the directory holds other events than history
	ErrDamaged        = "Damaged"        // a file is not what it should be, and no later try reads it
	ErrNoStore        = "NoStore"        // the store is not reachable from this host
	ErrNoProgram      = "NoProgram"      // the host does not have the agent's program, and another one may
	ErrNoSlot         = "NoSlot"         // it had to wait too long for other work of its kind, and has not begun
	ErrNotThere       = "NotThere"       // the directory of a run is not where a message says
	ErrDiskFull       = "DiskFull"       // a disk has no room, or the user's share of it is used up
)

// ShotsInput asks for pictures of the artifact.
type ShotsInput struct {
	RunID       string               `json:"run_id"`
	Store       string               `json:"store"`
	Artifact    run.Blob             `json:"artifact"`
	Name        string               `json:"name"`
	Shots       pipeline.Screenshots `json:"shots"`
	HeartbeatMS int64                `json:"heartbeat_ms"`

	Call        string `json:"call"`                  // id, without the question
	Last        bool   `json:"last,omitempty"`        // no attempt follows: what it comes to is the result
	Recorded    string `json:"recorded,omitempty"`    // run whose pictures are taken where the page is the same
	Generations int    `json:"generations,omitempty"` // its newest
}

// CheckpointInput asks for a checkpoint of a run.
type CheckpointInput struct {
	Store string `json:"store"`
	RunID string `json:"run_id"`
	ID    string `json:"id"`
}

// ShotsResult is the stored manifest of the pictures, or why there are none.
type ShotsResult struct {
	Manifest   run.Blob  `json:"manifest"`
	Count      int       `json:"count"`
	DurationMS int64     `json:"duration_ms"`
	Message    string    `json:"message,omitempty"` // empty: it worked
	Permanent  bool      `json:"permanent,omitempty"`
	Troubles   []Trouble `json:"troubles,omitempty"`
	Source     string    `json:"source,omitempty"` // run that they were taken from
}
