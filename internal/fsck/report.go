package fsck

import (
	"slices"

	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/run"
)

// Report is the result of a check.
type Report struct {
	Snapshot        run.Snapshot        `json:"snapshot"`    // state after the events in meta.json
	MetaStatus      string              `json:"meta_status"` // status in meta.json; empty if it cannot be read
	OK              bool                `json:"ok"`          // no error and no warning
	Issues          []Issue             `json:"issues"`
	EffectiveStatus run.EffectiveStatus `json:"standing"`

	CrossParent *run.CrossParent `json:"cross_parent"` // of a run across projects; nil for a single project
}

// NeedsOperator reports whether a finding requires an operator's decision.
func (r Report) NeedsOperator() bool {
	return r.Has(InterruptedWithActiveHandoff) && r.Has(ActiveHandoffWithoutDecision) ||
		r.Has(CheckpointPendingWithoutActiveHandoff)
}

// Has reports whether there is a finding with a code.
func (r Report) Has(c Code) bool {
	return slices.ContainsFunc(r.Issues, func(i Issue) bool { return i.Code == c })
}

// CheckOptions are the inputs of a check.
type CheckOptions struct {
	// EffectiveStatus is the state of the run in Temporal, read before the check. Its zero value means that Temporal
	// was not asked. Its status is not used, because a check reads that itself. A run that was resumed between the two
	// is reported as running without its workflow; in that case check again.
	EffectiveStatus run.EffectiveStatus
	// ReadTree reads the manifest of a tree, and returns an error if its lines do not match the tree that it names;
	// nil: manifests cannot be read.
	ReadTree func(manifest []byte) error
	// Deep is the run's store, which must have what events, checkpoints and segments refer to, undamaged. nil: it is
	// not checked.
	Deep projector.Blobs
}
