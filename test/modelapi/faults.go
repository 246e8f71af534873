package modelapi

import "time"

// FaultKind is what goes wrong with an answer.
type FaultKind string

// Kinds of faults. Each provider reports them in its own form.
const (
	FaultNone         FaultKind = ""
	FaultUnauthorized FaultKind = "unauthorized" // 401
	FaultRate         FaultKind = "rate"         // 429, too many requests
	FaultPlan         FaultKind = "plan"         // 429, the usage limit of a subscription
	FaultOverload     FaultKind = "overload"     // 529 or 503
	FaultCredit       FaultKind = "credit"       // no credit is left
	FaultInStream     FaultKind = "in-stream"    // an error of overload in the middle of an answer
	FaultOverlong     FaultKind = "overlong"     // the answer ends at the limit of output tokens
	FaultDropped      FaultKind = "dropped"      // the connection is dropped in the middle of an answer
	FaultSilent       FaultKind = "silent"       // nothing is sent in the middle of an answer for a time
)

// Fault is a fault of one turn.
type Fault struct {
	Kind  FaultKind
	After int           // seconds after which the provider accepts requests again, in a refusal; 0: not stated
	For   time.Duration // time of silence
}
