package contract

import (
	"encoding/json"
	"errors"

	"github.com/passbook-run/passbook/run"
)

// Names of the queries.
const (
	QueryStatus    = "status"
	QueryHandoff   = "handoff"
	QueryHeld      = "held"
	QueryDirectory = "directory"
)

// StatusAnswer answers the query `status`: the folded state, and the operations that the status allows.
type StatusAnswer struct {
	run.State
	AvailableActions []run.Operation `json:"available_actions"`

	// Pausing describes a pause that was requested and has not begun
	Pausing string `json:"pausing,omitempty"`
}

// UnmarshalJSON reads both parts: the state has its own reader, which ignores other keys.
func (a *StatusAnswer) UnmarshalJSON(raw []byte) error {
	var beside struct {
		AvailableActions []run.Operation `json:"available_actions"`
		Pausing          string          `json:"pausing"`
	}
	err := errors.Join(json.Unmarshal(raw, &a.State), json.Unmarshal(raw, &beside))
	a.AvailableActions, a.Pausing = beside.AvailableActions, beside.Pausing
	return err
}

// HandoffAnswer answers the query `handoff`: the open question and its actions.
type HandoffAnswer struct {
	Open     bool          `json:"open"`
	Question *run.Question `json:"question,omitempty"`
	Verdict  string        `json:"verdict,omitempty"`
	Type     string        `json:"handoff_type,omitempty"`
	Last     *run.Decided  `json:"last_decided,omitempty"`
	Commands []string      `json:"commands,omitempty"` // ways to answer
}

// HeldAnswer answers the query `held`: the full disk, or the missing store or program, that the run waits for.
type HeldAnswer struct {
	Held bool `json:"held"` // by a full disk; the run is paused
	// for a host with the store and program of the call; the run is not paused
	Waiting bool   `json:"waits,omitempty"`
	Message string `json:"message,omitempty"`  // operation, path, error, file system
	RetryAt string `json:"retry_at,omitempty"` // next automatic retry; a resume retries at once
}

// DirectoryAnswer answers the query `directory`: where the run writes.
type DirectoryAnswer struct {
	Dir   string `json:"dir"`
	Queue string `json:"queue"` // task queue of its host
}
