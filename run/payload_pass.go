package run

import (
	"cmp"
	"fmt"
	"strings"
)

// Pass identifies the pass of an event. It is equal in all events of one pass.
type Pass struct {
	Step        string `json:"step"`             // key in the plan
	Number      int    `json:"number,omitempty"` // 0 in a repeated stage
	InRound     int    `json:"in_round"`
	OfRound     int    `json:"of_round"` // number of steps in the round
	Set         string `json:"set,omitempty"`
	Round       int    `json:"round"`
	Member      string `json:"member,omitempty"` // of a group
	Fresh       string `json:"fresh,omitempty"`  // in a fresh folder: key of the step whose command it repeats
	Item        string `json:"item,omitempty"`   // name of the lane's item
	Role        string `json:"role"`
	Gives       string `json:"gives"`
	Order       string `json:"order,omitempty"`
	Title       string `json:"title"`       // short, for logs
	Description string `json:"description"` // long
	Dir         string `json:"dir,omitempty"`
	// number of times that a decision sent the run back to it: its evidence is in a separate folder
	Redo       int      `json:"redo,omitempty"`
	Files      []string `json:"files,omitempty"`
	References []string `json:"references,omitempty"`
}

// Who names who makes the call: the role, the member of a group, and the item of a lane.
func (p Pass) Who() string {
	if p.Fresh != "" {
		return p.Role + " in fresh folder"
	}
	return strings.TrimSpace(cmp.Or(p.Member, p.Role) + " " + p.Item)
}

// CountsAsTurn reports whether the pass is numbered as a turn when it settles: it outputs what the run makes, the
// artifact or, in a run on a tree, changes of it. s is the state of that run.
func (p Pass) CountsAsTurn(s *State) bool {
	return p.Gives == "changes" || p.Gives == "artifact" && s.Tree == nil
}

// NoteHeading returns the heading of the entries of a numbered pass in notes.
func (p Pass) NoteHeading() string {
	return fmt.Sprintf("## Pass %d (%s, Rotation %s, %s)", p.Number, p.Set, p.Order, p.Role)
}

// PassStart is on disk before anything else of the pass happens.
type PassStart struct {
	Pass
	Call     string `json:"call"`
	Agent    string `json:"agent"`    // for display: claude -p
	Attempt  int    `json:"attempt"`  // 1-based
	Attempts int    `json:"attempts"` // maximum number
	Prompt   Blob   `json:"prompt"`
	Effect   string `json:"effect,omitempty"` // class that its step declares; empty: see [Pass.EffectClass]
	Before   string `json:"before,omitempty"` // the artifact's digest, backed up if the role outputs an artifact
}

// Spend is the cost of one call.
type Spend struct {
	Tokens    Tokens  `json:"tokens"`
	USD       float64 `json:"usd"`
	Estimated bool    `json:"estimated,omitempty"`
	// a subscription or a gateway pays: USD is at list price
	ListPrice bool   `json:"list_price,omitempty"`
	Model     string `json:"model,omitempty"`
	// whether USD is all that the call cost; empty: of an earlier version, or no agent was asked
	Known CostKnown `json:"cost_known,omitempty"`
	// that USD was computed with, by model; none: the agent reported USD
	Prices []ModelPrice `json:"prices,omitempty"`
	// earlier calls that were counted as unknown, and whose cost is part of USD
	Covers int `json:"covers_calls,omitempty"`
}

// ModelPrice is what tokens of a model cost, in USD per million.
type ModelPrice struct {
	Model      string  `json:"model,omitempty"`
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cache_read"`
	CacheWrite float64 `json:"cache_write"`
}

// PassAttempt is an attempt that did not settle its pass.
type PassAttempt struct {
	Pass
	Call        string    `json:"call"`
	Attempt     int       `json:"attempt"`
	Category    Category  `json:"category"`
	Message     string    `json:"message"`
	ExitCode    int       `json:"exit_code,omitempty"`
	Diagnostics string    `json:"diagnostics,omitempty"` // at most 2000 characters
	Output      *Blob     `json:"output,omitempty"`      // the output, kept as evidence
	Prompt      *Blob     `json:"prompt,omitempty"`      // the prompt, if there is an output
	Envelope    *Blob     `json:"envelope,omitempty"`    // metadata that the agent reported with its reply
	StartedAt   string    `json:"started_at,omitempty"`
	DurationMS  int64     `json:"duration_ms"`
	Attempts    int       `json:"attempts,omitempty"`    // that its limits allow; 0: of an earlier version
	RetryInMS   int64     `json:"retry_in_ms,omitempty"` // before scaling; 0: no further attempt
	Judged      bool      `json:"judged,omitempty"`      // the call has a result: the next attempt is another call
	Spend       *Spend    `json:"spend,omitempty"`
	ResumedFrom string    `json:"resumed_from,omitempty"` // id of the session that the agent continued
	Tools       *ToolUses `json:"tools,omitempty"`        // nil: none was reported
	// number of a superseded answer, one that arrived after the accepted answer, among those of the run
	Late int `json:"late,omitempty"`
	// why the provider did not answer, for a time; the attempt is not counted
	Limit *Limit `json:"limit,omitempty"`
	// of the agent that is asked next because of the limit; empty: none
	Fallback string `json:"fallback,omitempty"`
}

// PassEnd settles a pass. It contains the whole record: state.json needs nothing else.
type PassEnd struct {
	Pass
	Call        string    `json:"call"`
	Outcome     Category  `json:"outcome"` // CategoryOK, or the error with which the pass failed
	StartedAt   string    `json:"started_at"`
	CompletedAt string    `json:"completed_at"`
	DurationMS  int64     `json:"duration_ms"`
	Attempts    int       `json:"attempts"`
	Reply       *Blob     `json:"reply,omitempty"`
	Envelope    *Blob     `json:"envelope,omitempty"`     // metadata that the agent reported with it
	ResumedFrom string    `json:"resumed_from,omitempty"` // id of the session that the agent continued
	Tools       *ToolUses `json:"tools,omitempty"`        // nil: none was reported
	// that later calls of the role in the stage continue; nil: the role continues none, or it was not kept
	Session *KeptSession `json:"session,omitempty"`
	// failed: the evidence of its last call is that of the attempt
	Attempted  bool       `json:"attempted,omitempty"`
	Artifact   *Blob      `json:"artifact,omitempty"` // nil: unchanged
	Before     string     `json:"before,omitempty"`
	Modified   bool       `json:"modified,omitempty"`
	Validation Validation `json:"validation"`
	Notes      []Added    `json:"notes,omitempty"` // additions to notes files
	Lacks      []string   `json:"lacks,omitempty"` // names of notes of its role without an addition
	Tally      []Count    `json:"tally,omitempty"`
	Score      *float64   `json:"score,omitempty"`
	Verdict    string     `json:"verdict,omitempty"`
	// for a role with a verdict: whether it approves the work; nil: also in events of earlier versions
	Approved *bool `json:"approved,omitempty"`
	// of a structured verdict
	Findings *Findings `json:"findings,omitempty"`
	// of a pass that outputs changes: what was found out about them
	Found *Found `json:"found,omitempty"`
	// that its reply declares
	Scope *Scope `json:"scope,omitempty"`
	// of a command: protected files that the last pass had changed, and that were restored before the command
	Tampered *Tampered `json:"tampered,omitempty"`
	ID       string    `json:"id,omitempty"`        // of the step's output
	Keep     bool      `json:"keep,omitempty"`      // later steps or conditions use the output
	Data     *Blob     `json:"data,omitempty"`      // JSON of the reply
	Value    string    `json:"value,omitempty"`     // of a command: ok or failed
	ExitCode int       `json:"exit_code,omitempty"` // of a command
	// for a pass that outputs changes: the resulting tree; nil: unchanged
	Tree        *Blob `json:"tree,omitempty"`
	Spend       Spend `json:"spend"`
	Reused      bool  `json:"reused,omitempty"` // reuses an existing answer
	Joined      bool  `json:"joined,omitempty"` // joined a running call
	LastInRound bool  `json:"last_in_round,omitempty"`
	// the review that the set requires, if the run could not wait for it because of a continue-as-new
	Review string `json:"review,omitempty"`
	// numbers of the operator's instructions that the prompt contained
	Instructions []int64 `json:"instructions,omitempty"`
	Next         *Place  `json:"next,omitempty"` // nil while other members of the group are in progress
}

// KeptSession is the session of an accepted answer.
type KeptSession struct {
	ID     string `json:"id"`     // that the agent reported
	Host   string `json:"host"`   // that has its file
	Call   string `json:"call"`   // with the digest of what was asked
	Digest string `json:"digest"` // of session and answer: a part of the next question

	// of the session that the run adopted, which is of no call
	Program string `json:"program,omitempty"`
	File    string `json:"file,omitempty"` // below the folder of kept sessions of the host
}

// Adopted reports whether it is the session that the run adopted.
func (k KeptSession) Adopted() bool { return k.File != "" }

// Turn reports whether the pass is a turn: one settled call that may change the workspace, whatever its outcome. Turns
// are counted from 1 over the life of a run, and no number is reused.
func (p PassEnd) Turn() bool { return p.Gives == "changes" }

// Added is one addition to a notes file.
type Added struct {
	Name  string `json:"name"`
	File  string `json:"file"`
	Chars int    `json:"chars"`
}

// Validation is requirement 002's ValidationResult.
type Validation struct {
	Passed   bool     `json:"passed"`
	Checks   []Check  `json:"checks"`
	Warnings []string `json:"warnings"`
}

// Count counts the checks that passed, and all.
func (v Validation) Count() (passed, all int) {
	for _, c := range v.Checks {
		if c.Passed {
			passed++
		}
	}
	return passed, len(v.Checks)
}

// CheckExitCode is the check of a command.
const CheckExitCode = "exit-code"

// CommandFailure describes how a command failed, such as exit code 1; empty: it did not fail, or is no command.
func (p PassEnd) CommandFailure() string {
	for _, c := range p.Validation.Checks {
		if c.Name == CheckExitCode && !c.Passed {
			return c.Detail
		}
	}
	return ""
}

// Check is one named check.
type Check struct {
	Name   string `json:"name"`
	Passed bool   `json:"passed"`
	Detail string `json:"detail,omitempty"`
}

// Count is one tallied heading; nil if the heading is missing.
type Count struct {
	Name  string `json:"name"`
	Count *int   `json:"count"`
}

// ToolUses are the tool calls of an agent in one call.
type ToolUses struct {
	Count int       `json:"count"` // of all
	First []ToolUse `json:"first"` // the first of them, at most [MaxToolUses]
}

// MaxToolUses is how many tool calls an event lists; the report of the call has all.
const MaxToolUses = 50

// ToolUse is one tool call of an agent.
type ToolUse struct {
	Name   string `json:"name"`
	Input  string `json:"input,omitempty"` // its command, file or pattern, shortened
	Digest string `json:"digest"`          // SHA-256 of its whole input
	State  string `json:"state"`           // ok, failed, or started if its end was not reported
}

// StepSkipped records a skipped step.
type StepSkipped struct {
	Step string   `json:"step"`
	Why  string   `json:"why"`
	IDs  []string `json:"ids,omitempty"` // of outputs that the step would have left
	Next *Place   `json:"next"`
}

// WorkspaceSetup records that the workspace of a call was set up before it.
type WorkspaceSetup struct {
	Step       string   `json:"step,omitempty"`
	Call       string   `json:"call,omitempty"`
	Commands   []string `json:"commands"`
	DurationMS int64    `json:"duration_ms"`
	Output     *Blob    `json:"output,omitempty"` // what the commands printed
	Undone     []string `json:"undone,omitempty"` // files of the tree that they changed, and that were restored; the first 20
	Count      int      `json:"undone_count,omitempty"`
}
