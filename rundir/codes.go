package rundir

import (
	"cmp"
	"slices"

	"github.com/passbook-run/passbook/run"
)

// Severity is the severity of a finding. Only errors and warnings make a directory not ok.
type Severity string

// Severities.
const (
	SeverityError   Severity = "error"   // the records contradict each other
	SeverityWarning Severity = "warning" // an operator has to act
	SeverityInfo    Severity = "info"    // for information
)

// Code identifies a finding of a check.
type Code string

// Codes of findings.
const (
	JournalDamaged                        Code = "journal_damaged"
	ClaimDamaged                          Code = "claim_damaged"
	FileDiffers                           Code = "file_differs"
	ArtifactEdited                        Code = "artifact_edited"
	StoreDamaged                          Code = "store_damaged"
	RunningWithoutLiveWorkflow            Code = "running_without_live_workflow"
	DamageRecorded                        Code = "damage_recorded"
	InterruptedWithActiveHandoff          Code = "interrupted_with_active_handoff"
	TerminalWithStaleHandoff              Code = "terminal_with_stale_handoff"
	ActiveHandoffWithoutDecision          Code = "active_handoff_without_decision"
	HaltDecisionWithoutHaltedMeta         Code = "halt_decision_without_halted_meta"
	MetaHandoffWithoutEvent               Code = "meta_handoff_without_event"
	CrossInconsistent                     Code = "cross_inconsistent" // the message has the detail
	CrossTerminalWithStaleHandoff         Code = "cross_terminal_with_stale_handoff"
	CheckpointPendingWithoutActiveHandoff Code = "checkpoint_pending_without_active_handoff"
	ActiveHandoffWithoutCheckpointPending Code = "active_handoff_without_checkpoint_pending"
	CheckpointKindIDMismatch              Code = "checkpoint_kind_id_mismatch"
	ProjectHandoffMarkerIncomplete        Code = "project_handoff_marker_incomplete"
	CFAPendingWithoutPausedState          Code = "cfa_pending_without_paused_state"
	PendingGateAndHandoffActive           Code = "pending_gate_and_handoff_active"
)

// rule is the description of a code. RUN in a hint is replaced by the directory, and RUN-ID by the id of the run.
type rule struct {
	code     Code
	severity Severity
	hint     string
}

const (
	hintRepair = "starter repair-state RUN --apply"
	hintDecide = "starter decide RUN"
	hintResume = "starter resume RUN"
)

// rules lists every code, in the order in which findings are shown.
var rules = []rule{
	{JournalDamaged, SeverityError, hintRepair + ", where the store has the lines; else starter rebuild RUN-ID " +
		"--output-dir OTHER, from Temporal's history, and compare the two"},
	{ClaimDamaged, SeverityError, "copy the file back; without a copy: starter rebuild RUN-ID --output-dir RUN"},
	{HaltDecisionWithoutHaltedMeta, SeverityError, hintRepair},
	{MetaHandoffWithoutEvent, SeverityError, hintRepair},
	{CheckpointPendingWithoutActiveHandoff, SeverityError, hintRepair},
	{CrossInconsistent, SeverityError, "starter check on the directory of each project; then starter resume RUN"},
	{InterruptedWithActiveHandoff, SeverityWarning, hintDecide},
	{RunningWithoutLiveWorkflow, SeverityWarning, hintResume},
	{TerminalWithStaleHandoff, SeverityWarning, hintRepair},
	{CrossTerminalWithStaleHandoff, SeverityWarning, hintRepair},
	{ActiveHandoffWithoutCheckpointPending, SeverityWarning, hintRepair},
	{CheckpointKindIDMismatch, SeverityWarning, hintRepair},
	{ProjectHandoffMarkerIncomplete, SeverityWarning, hintRepair},
	{CFAPendingWithoutPausedState, SeverityWarning, hintRepair},
	{PendingGateAndHandoffActive, SeverityWarning, hintRepair},
	{FileDiffers, SeverityWarning, hintRepair},
	{ArtifactEdited, SeverityWarning, "starter resume RUN takes over an edit of a paused run; while a call runs, an edit " +
		"is replaced at its end and kept in _orchestrator/edits"},
	{StoreDamaged, SeverityWarning, "starter resume RUN stores again what the directory has; copy the rest into the store"},
	{ActiveHandoffWithoutDecision, SeverityInfo, hintDecide},
	{DamageRecorded, SeverityInfo, "starter check RUN: what has been repaired needs nothing more"},
}

// Issue is one finding.
type Issue struct {
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	File     string   `json:"file"`    // that differs; empty: the finding is about several, or about none
	Message  string   `json:"message"` // what was found
	Hint     string   `json:"hint"`    // what to do; a command begins with starter
}

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
	return r.Has(InterruptedWithActiveHandoff) && r.Has(ActiveHandoffWithoutDecision)
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
	Deep Blobs
}

func ruleOf(c Code) (rule, int) {
	i := slices.IndexFunc(rules, func(r rule) bool { return r.code == c })
	return rules[i], i
}

// sorted sorts findings in the order of the rules.
func sorted(list []Issue) []Issue {
	slices.SortStableFunc(list, func(a, b Issue) int {
		_, i := ruleOf(a.Code)
		_, j := ruleOf(b.Code)
		return cmp.Compare(i, j)
	})
	return list
}
