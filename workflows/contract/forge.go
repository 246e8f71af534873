package contract

import (
	"github.com/passbook-run/passbook/run"
)

// Names of the activities on the issue and the pull request of a run.
const (
	LookAtForge = "LookAtForge"
	MergeBase   = "MergeBase"
	LeaveForge  = "LeaveForge"
)

// ErrForge is the error type of a forge that refuses: a token without a permission, or none.
const ErrForge = "Forge"

// ForgeInput reads the issue and the pull request of a run, and writes what is to be read there.
type ForgeInput struct {
	Target
	PlanUse
	Forge    run.ForgeState `json:"forge"`
	Question *run.Question  `json:"question,omitempty"` // that is open
	Answer   string         `json:"answer,omitempty"`   // how the posted question ended; empty: it is open
	Pipeline string         `json:"pipeline"`
	Host     string         `json:"host"`
}

// ForgeResult is what is new there.
type ForgeResult struct {
	Read     run.Read       `json:"read"` // the last comments
	Comments []ForgeComment `json:"comments,omitempty"`
	Told     bool           `json:"told,omitempty"`
	Asked    *run.Posted    `json:"asked,omitempty"`    // the open question was posted
	Answered bool           `json:"answered,omitempty"` // the comment of the posted question has its answer
	Replied  []int64        `json:"replied,omitempty"`
	Closed   bool           `json:"closed,omitempty"` // the issue
	Seen     *run.PullSeen  `json:"seen,omitempty"`   // of the head of the pull request
	RetryAt  string         `json:"retry_at,omitempty"`
}

// ForgeComment is a comment by an account with write access.
type ForgeComment struct {
	ID    int64  `json:"id"`
	Where string `json:"where"` // issue, pull, line or review
	On    int    `json:"on"`
	By    string `json:"by"`
	Level string `json:"level"`
	At    string `json:"at,omitempty"` // file:line
	Text  string `json:"text"`
}

// MergeBaseInput merges the tip of the base into the workspace of a run.
type MergeBaseInput struct {
	SyncWorkspaceInput              // Tree is that of the run
	Forge              run.ForgeRef `json:"forge"`
}

// MergeBaseResult is the merged workspace; nothing: there is nothing to merge.
type MergeBaseResult struct {
	Changes   *run.WorkspaceUpdated `json:"changes,omitempty"`
	Conflicts []string              `json:"conflicts,omitempty"` // paths, at most 20
	Recovered []RecoveredError      `json:"troubles,omitempty"`
	RetryAt   string                `json:"retry_at,omitempty"`
}

// LeaveForgeInput ends what a run has on its forge: its branch there, if its pull request is merged or closed, and its
// workspace.
type LeaveForgeInput struct {
	Target
	PlanUse
	Workspace run.Workspace  `json:"workspace"`
	Commit    string         `json:"commit"`
	Tree      *run.Blob      `json:"tree,omitempty"`
	Forge     run.ForgeState `json:"forge"`
}

// LeaveForgeResult is what happened to the branch.
type LeaveForgeResult struct {
	Deleted bool `json:"deleted,omitempty"`
}
