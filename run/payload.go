package run

import (
	"fmt"
	"slices"
	"strings"
)

// Blob is a reference into the store, with what people want to know about the text.
type Blob struct {
	Digest string `json:"digest"`
	Size   int64  `json:"size"`            // bytes
	Chars  int    `json:"chars,omitempty"` // characters, of texts
	// digest of the bytes as they were sent or received, where secrets were hidden in them
	Raw string `json:"raw,omitempty"`
}

// Original is the digest of the bytes as they were, whatever was hidden in them.
func (b Blob) Original() string {
	if b.Raw != "" {
		return b.Raw
	}
	return b.Digest
}

// DigestOf is a reference's digest; empty: there is none.
func DigestOf(b *Blob) string {
	if b == nil {
		return ""
	}
	return b.Digest
}

// Place is the position of a run in its plan: what it does next.
type Place struct {
	Stage int `json:"stage"` // index into the plan's stages; their number when the run is complete
	Round int `json:"round"` // 1-based
	Step  int `json:"step"`  // index into the round's steps; their number when the round is complete
}

// ArtifactRef is where a run's artifact is and what it was seeded from.
type ArtifactRef struct {
	File string `json:"file"`
	Seed Blob   `json:"seed"`
}

// NoteRef names one append-only notes file.
type NoteRef struct {
	Name string `json:"name"`
	File string `json:"file"`
}

// Budget is what a run may use; zero means no limit.
type Budget struct {
	CapUSD  float64 `json:"cap_usd"`
	WarnUSD float64 `json:"warn_usd"`

	Tokens   int64   `json:"tokens,omitempty"` // of all kinds
	Calls    int     `json:"calls,omitempty"`
	Hours    float64 `json:"hours,omitempty"`    // of work, without pauses and questions
	Deadline string  `json:"deadline,omitempty"` // RFC 3339

	PerPassUSD    float64 `json:"per_pass_usd,omitempty"` // of one call
	PerPassTokens int64   `json:"per_pass_tokens,omitempty"`
}

// MaxBudgetUSD is the largest budget of a run; that of a definition too.
const MaxBudgetUSD = 1e9

// ValidBudget reports whether an amount can be a budget: a number from 0 to [MaxBudgetUSD]. NaN is none.
func ValidBudget(usd float64) bool { return usd >= 0 && usd <= MaxBudgetUSD }

// RunStart opens a run: all that the directory's header needs. Digests name blobs of the store.
type RunStart struct {
	Task       string       `json:"task"`
	RunKind    string       `json:"run_kind"` // "pipeline"
	Pipeline   string       `json:"pipeline"`
	Wording    Wording      `json:"wording,omitempty"`
	RunID      string       `json:"run_id"`
	ThreadID   string       `json:"thread_id"` // root run of the lineage
	Epoch      int          `json:"epoch"`
	CreatedAt  string       `json:"created_at"` // when the directory was claimed
	Definition string       `json:"definition"` // the YAML as it was
	Plan       string       `json:"plan"`
	Inputs     string       `json:"inputs"` // manifest of every file the run was given
	Policy     string       `json:"policy"` // what was allowed at the start: agents, budget, definition
	ConfigHash string       `json:"config_hash"`
	Artifact   *ArtifactRef `json:"artifact,omitempty"`
	Workspace  *Workspace   `json:"workspace,omitempty"`
	// folder that the run is about: the source of its workspace, or that of its definition
	Project string `json:"project,omitempty"`
	// of the workspace at the end of each turn: full, or empty for manifests only
	Snapshots string `json:"snapshots,omitempty"`
	Kind      string `json:"kind,omitempty"` // planning or research: an operator reviews the result
	Delivers  bool   `json:"delivers,omitempty"`
	// a role returns a verdict on the work; also false where an earlier version started the run
	Judged    bool       `json:"judged,omitempty"`
	Waits     Waits      `json:"waits,omitzero"`
	Receivers []Receiver `json:"receivers,omitempty"` // who is notified
	Parent    *Parent    `json:"parent,omitempty"`    // the run that this one follows up
	Source    *Source    `json:"source,omitempty"`    // the run that this one replays, or was forked from
	// of a run across projects, in the order of their starts
	Projects []ProjectRef `json:"projects,omitempty"`
	MemberOf *Membership  `json:"member_of,omitempty"` // of a project's run
	Lane     *LaneOf      `json:"lane,omitempty"`      // of a lane
	State    *State       `json:"state,omitempty"`     // what it begins with, where it has a source
	From     *Place       `json:"from,omitempty"`      // where it begins; nil: with the first stage
	Brief    *Blob        `json:"brief,omitempty"`     // of the parent, for prompts
	Adopted  *Adopted     `json:"adopted,omitempty"`   // the conversation that its first call continues
	Forge    *ForgeRef    `json:"forge,omitempty"`     // where its issue and its pull request are
	// of the source of a replay, which repeats them at the same places
	Amendments []Amendment `json:"amendments,omitempty"`
	// of the source of a replay: the instructions that its prompts contained
	Instructions *Blob      `json:"instructions,omitempty"`
	Replies      []Reply    `json:"replies,omitempty"` // of the parent, for steps that see its stages
	Notes        []NoteRef  `json:"notes,omitempty"`
	Stages       []StageRef `json:"stages"`
	TotalPasses  int        `json:"total_passes"`
	MaxRounds    int        `json:"max_rounds"`
	Threshold    *float64   `json:"threshold,omitempty"` // the score that ends the last repeated stage
	Budget       Budget     `json:"budget"`
	Tenant       string     `json:"tenant"` // Temporal namespace
	Environment  string     `json:"environment"`
	Host         string     `json:"host"`
	Build        string     `json:"build"`
	// what answers, with versions where they are known: claude 2.1.3
	Agents   []string     `json:"agents,omitempty"`
	Warnings []string     `json:"warnings,omitempty"` // what was found before the start
	Found    []ErrorNoted `json:"found,omitempty"`    // the same as errors, where it is one
}

// SnapshotsFull stores the tree of each turn beside its manifest.
const SnapshotsFull = "full"

// Receiver is who is notified of a run. The plan has how, in the same order.
type Receiver struct {
	Name      string   `json:"name"` // for people; no secret
	On        []string `json:"on"`   // question, pause, budget, failure, end
	TimeoutMS int64    `json:"timeout_ms"`
	GiveUpMS  int64    `json:"give_up_ms"` // retries end after this time
}

// WorkspaceKind is what a workspace was made from.
type WorkspaceKind string

// Kinds of workspaces.
const (
	WorkspaceGit WorkspaceKind = "git" // a checkout of a repository
	WorkspaceDir WorkspaceKind = "dir" // a folder
	// the trees of all projects, each in a folder; there is no checkout of them
	WorkspaceProjects WorkspaceKind = "projects"
)

// Workspace is the tree that a run works on.
type Workspace struct {
	Kind WorkspaceKind `json:"kind"`
	// the repository's checkout, or the folder, on the host that started the run
	Source string `json:"source"`
	Base   string `json:"base,omitempty"`   // commit that the run's changes are counted from
	Commit string `json:"commit,omitempty"` // that the run's branch begins with, where it is not the base
	Branch string `json:"branch,omitempty"` // of the run's own checkout
	Tree   Blob   `json:"tree"`             // manifest of the tree at the start
	// paths in the tree that the start read: the definition, its prompts, schemas and references, the definitions of its
	// projects and .worktreeinclude
	Definition []string `json:"definition,omitempty"`
	Submodules []string `json:"submodules,omitempty"` // their folders in the tree: no call may change what is in them
}

// InSubmodule reports whether a path is the folder of a submodule, or below one.
func (w Workspace) InSubmodule(path string) bool {
	return slices.ContainsFunc(w.Submodules, func(folder string) bool {
		return path == folder || strings.HasPrefix(path, folder+"/")
	})
}

// Parent is where a follow-up comes from.
type Parent struct {
	RunID string `json:"run_id"`
	Mode  string `json:"mode"` // follow_up or from_run_plan
}

// Ways to make a new run of an old one.
const (
	ModeReplay = "replay" // the same work once more
	ModeFork   = "fork"   // with possible changes after the checkpoint
)

// What a replay does where its source had an outside effect.
const (
	UseRecorded  = "use_recorded_result"
	Reexecute    = "reexecute"
	RequireHuman = "require_human"
)

// Source is where a replay or a fork comes from. Nothing is ever written into it.
type Source struct {
	RunID      string     `json:"source_run_id"`
	Checkpoint string     `json:"source_checkpoint_id"`
	Seq        int64      `json:"source_seq"` // of the checkpoint
	Chain      Chain      `json:"source_chain"`
	Mode       string     `json:"mode"`                  // replay or fork
	Replay     string     `json:"replay_mode,omitempty"` // policy of a replay for side effects
	Generation int        `json:"generation"`            // the newest of the source, when the run was made
	Delivered  *Delivered `json:"delivered,omitempty"`   // what the source delivered: a replay does not do it again
}

// Origin is the run that this one was made from, and how; empty: none.
func (s RunStart) Origin() (runID, mode string) {
	switch {
	case s.Source != nil:
		return s.Source.RunID, s.Source.Mode
	case s.Parent != nil:
		return s.Parent.RunID, s.Parent.Mode
	}
	return "", ""
}

// StageRef names a stage for the projections that have no plan at hand.
type StageRef struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // each, once or repeat
	// maximum of a repeated stage; 0 where an earlier version started the run
	Rounds int      `json:"rounds,omitempty"`
	Roles  []string `json:"roles,omitempty"` // of its passes; none where an earlier version started the run
	Sets   []string `json:"sets,omitempty"`  // of its rounds, likewise
	Acts   bool     `json:"acts,omitempty"`  // from its beginning, an external action comes before a question
}

// RunEnd closes a run.
type RunEnd struct {
	Status  Status  `json:"status"`
	Reason  string  `json:"reason,omitempty"`
	By      string  `json:"by,omitempty"`
	Type    string  `json:"type,omitempty"`    // of the error that a failed run ended with
	Outcome Outcome `json:"outcome,omitempty"` // what became of the work, where done or halted does not say it
}

// RunPaused is why a run is paused.
type RunPaused struct {
	Reason string      `json:"reason"`
	Detail string      `json:"detail,omitempty"`
	By     string      `json:"by,omitempty"`
	Failed *FailedPass `json:"failed,omitempty"` // the pass that the pause is about
}

// FailedPass is the pass that failed, and its error.
type FailedPass struct {
	Step     string   `json:"step"`
	Member   string   `json:"member,omitempty"`
	Category Category `json:"category"`
}

// RunResumed continues after a pause, or opens an epoch after a close; then it carries the state that holds from there.
type RunResumed struct {
	Epoch int    `json:"epoch"`
	From  Status `json:"from"`
	By    string `json:"by,omitempty"`
	Note  string `json:"note,omitempty"`
	Force bool   `json:"force,omitempty"`  // failures counted so far are forgiven
	Why   string `json:"reason,omitempty"` // of a forced resume
	Host  string `json:"host,omitempty"`   // that opened the epoch
	Build string `json:"build,omitempty"`
	State *State `json:"state,omitempty"`
	// the epoch continues a run that waits, as it is: its workflow did not know the end of the journal
	Waits bool `json:"waits,omitempty"`

	// differences between the run's policy and the settings that force overruled
	Overruled []string `json:"overruled,omitempty"`
}

// RunInterrupted reports that the run's workflow ended without an end of the run. It is journaled by the next epoch.
type RunInterrupted struct {
	Reason string `json:"reason"`
	At     string `json:"interrupted_at"`
}

// RunReverted goes back to an earlier state. The lines between stay where they are and are abandoned.
type RunReverted struct {
	To        int64  `json:"to"`    // the last sequence number that still holds
	Cause     string `json:"cause"` // "revert"
	Abandoned Range  `json:"abandoned"`
	State     *State `json:"state"`

	Checkpoint string  `json:"checkpoint,omitempty"` // of a revert: what it goes back to
	By         string  `json:"by,omitempty"`
	Note       string  `json:"note,omitempty"`
	WasUSD     float64 `json:"was_usd,omitempty"` // what had been spent until then
}

// Range is a closed range of sequence numbers.
type Range struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
}

// PhaseStart opens one round of a stage.
type PhaseStart struct {
	Key   string `json:"phase_key"`
	Title string `json:"title"`
	Round int    `json:"round"`
	Dir   string `json:"dir,omitempty"` // where a repeated stage keeps the evidence of this round
}

// PhaseEnd closes one round of a stage. A phase has completed only if its outcome is ok or begins with skipped.
type PhaseEnd struct {
	Key     string `json:"phase_key"`
	Title   string `json:"title"`
	Outcome string `json:"outcome"`
	Round   int    `json:"round"`
	Repeats bool   `json:"repeats,omitempty"` // a round of a repeated stage
	Unmet   string `json:"unmet,omitempty"`   // the loop ends with its last round, and its condition does not hold
	// of a round of a loop: what it left
	Progress *LoopProgress `json:"progress,omitempty"`
	Next     *Place        `json:"next,omitempty"`
}

// ArtifactUpdated is the artifact that is current now.
type ArtifactUpdated struct {
	Step     string `json:"step"`
	Call     string `json:"call,omitempty"`
	Cause    string `json:"cause,omitempty"` // edited, restored, reverted: not by a call
	Artifact Blob   `json:"artifact"`
}

// WorkspaceUpdated is the tree that is current now, and what has changed in it.
type WorkspaceUpdated struct {
	Step    string       `json:"step,omitempty"`
	Call    string       `json:"call,omitempty"`
	Cause   string       `json:"cause,omitempty"` // edited, reverted, projects, base: not by a call
	Base    string       `json:"base,omitempty"`  // commit that was merged into it
	Tree    Blob         `json:"tree"`
	Commit  string       `json:"commit,omitempty"` // on the run's branch
	Changed int          `json:"changed"`          // files
	Files   []FileChange `json:"files,omitempty"`  // the first of them
	List    *Blob        `json:"list,omitempty"`   // all of them, when they are more

	// files of the folder that are not in the tree: the first ones
	Skipped      []LeftOut `json:"skipped,omitempty"`
	SkippedCount int       `json:"skipped_count,omitempty"` // all of it
}

// LeftOut is a file or folder that was left out of a tree. The path of a folder ends with a slash, and what is in it is
// not named.
type LeftOut struct {
	Path   string `json:"path"`
	Reason string `json:"reason"` // secret, outside, special or ignored
}

// FileChange is one changed file of a tree. Path is relative to the workspace, with slashes.
type FileChange struct {
	Path   string `json:"path"`
	Old    string `json:"old_path,omitempty"` // of a file that was renamed
	Kind   string `json:"kind"`               // added, removed, changed, renamed or mode
	Before string `json:"hash_before,omitempty"`
	After  string `json:"hash_after,omitempty"`
}

// NoteAppended adds one entry to a notes file. Whole is the file with the entry in it.
type NoteAppended struct {
	Note    string `json:"note"`
	File    string `json:"file"`
	Step    string `json:"step"`
	Heading string `json:"heading"`
	Entry   Blob   `json:"entry"`
	Whole   Blob   `json:"whole"`
}

// Screenshots are the pictures that were taken. The manifest in the store lists them.
type Screenshots struct {
	Step       string `json:"step"`
	Round      int    `json:"round"`
	Dir        string `json:"dir"`
	Redo       int    `json:"redo,omitempty"` // as of a pass
	Manifest   Blob   `json:"manifest"`
	Count      int    `json:"count"`
	Attempts   int    `json:"attempts"`
	DurationMS int64  `json:"duration_ms"`
	Degraded   bool   `json:"degraded,omitempty"`
	Message    string `json:"message,omitempty"`
	Next       *Place `json:"next,omitempty"`
}

// ShotsAttempt is an attempt at pictures that gave none.
type ShotsAttempt struct {
	Step       string `json:"step"`
	Round      int    `json:"round"`
	Dir        string `json:"dir,omitempty"`
	Attempt    int    `json:"attempt"`
	Message    string `json:"message"`
	DurationMS int64  `json:"duration_ms"`
	RetryInMS  int64  `json:"retry_in_ms,omitempty"` // before scaling; 0: no further attempt
}

// Shot is one picture of a manifest.
type Shot struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
}

// ScoreRecorded is one reading of the score that a loop waits for.
type ScoreRecorded struct {
	Name      string   `json:"name"`
	Step      string   `json:"step"`
	Round     int      `json:"round"`
	Score     *float64 `json:"score"`
	Why       string   `json:"why,omitempty"` // when there is none
	Threshold *float64 `json:"threshold,omitempty"`
	Met       bool     `json:"met"`
	Auditors  int      `json:"auditors"`
}

// CheckpointCreated names the state before this event. Everything else about it follows from there.
type CheckpointCreated struct {
	ID      string   `json:"id"`
	AtPass  int      `json:"at_pass"`
	AtRound int      `json:"at_round"` // completed rounds of the last repeated stage
	USD     float64  `json:"usd"`
	Score   *float64 `json:"score"`
}

// BudgetEvent is payload of budget.warning, budget.exceeded and budget.raised.
type BudgetEvent struct {
	Budget
	TotalUSD float64 `json:"total_usd"`
	Unknown  int     `json:"unknown_calls,omitempty"` // calls whose cost TotalUSD lacks
	Need     *Need   `json:"need,omitempty"`          // exceeded: of the next call; nil: the budget is spent
	Rest     int64   `json:"rest_tokens,omitempty"`   // of the budget in tokens, if Need is of tokens
	Spent    string  `json:"spent,omitempty"`         // exceeded: the budget that is spent, if it is not that in USD
	By       string  `json:"by,omitempty"`
	Note     string  `json:"note,omitempty"`
}

// Exceeded is the subject of a budget.exceeded.
func (b BudgetEvent) Exceeded() string {
	if b.Spent != "" {
		return b.Spent
	}
	if b.Need != nil && b.Need.OfTokens {
		return fmt.Sprintf("%d of %d tokens remain; %s", b.Rest, b.Tokens, b.Need.Text())
	}
	if b.Need != nil {
		most := ""
		if b.Unknown > 0 {
			most = "at most "
		}
		return fmt.Sprintf("%s$%.2f of $%.2f remain; %s", most, max(0, b.CapUSD-b.TotalUSD), b.CapUSD, b.Need.Text())
	}
	return fmt.Sprintf("%.2f USD are spent, the budget is %.2f", b.TotalUSD, b.CapUSD)
}

// DecisionRefused is a message that could not be acted on, or several: after the first of a run they are only counted.
type DecisionRefused struct {
	Verb   string `json:"verb"` // of the last one
	Reason string `json:"reason"`
	By     string `json:"by,omitempty"`
	Count  int    `json:"count,omitempty"` // number since the last such event; 0: one
}

// ErrorNoted is an error outside of an attempt: the run recovered from it, or ended because of it.
type ErrorNoted struct {
	Context     string   `json:"context,omitempty"` // empty: the stage, or the run
	Category    Category `json:"category"`
	Message     string   `json:"message"`
	Diagnostics string   `json:"diagnostics,omitempty"` // at most 2000 characters
	Recovered   bool     `json:"recovered"`
	Attempt     int      `json:"attempt,omitempty"` // that recovered it; 0: not by trying again
	Kept        string   `json:"kept,omitempty"`    // an operator's version of the artifact, in the run directory
}
