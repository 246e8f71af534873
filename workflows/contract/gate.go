package contract

import "github.com/passbook-run/passbook/run"

// AskInput asks the host of a run whether its calls, which wait for limits, may be made.
type AskInput struct {
	RunID  string      `json:"run_id"`
	Limits []run.Limit `json:"limits"`
}

// AskResult is the time to ask again, or why a call may be made.
type AskResult struct {
	Again string         `json:"again,omitempty"` // empty: now
	Cause run.LimitCause `json:"cause,omitempty"`
	Limit run.Limit      `json:"limit,omitzero"` // of the call that may be made
}

// Ask is the activity of [AskInput].
const Ask = "Ask"
