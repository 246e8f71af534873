package fsck

import (
	"cmp"
	"slices"

	"github.com/passbook-run/passbook/internal/layout"
)

// Severity is the severity of a finding. Only errors and warnings make a directory not ok.
type Severity string

// Severities.
const (
	SeverityError   Severity = "error"   // the records contradict each other
	SeverityWarning Severity = "warning" // an operator has to act
	SeverityInfo    Severity = "info"    // for information
)

// Code identifies a finding of a check. Codes are stable across releases.
type Code string

// Codes about questions, and about runs across projects.
const (
	InterruptedWithActiveHandoff          Code = "interrupted_with_active_handoff"
	TerminalWithStaleHandoff              Code = "terminal_with_stale_handoff"
	ActiveHandoffWithoutDecision          Code = "active_handoff_without_decision"
	HaltDecisionWithoutHaltedMeta         Code = "halt_decision_without_halted_meta"
	MetaHandoffWithoutEvent               Code = "meta_handoff_without_event"
	CrossTerminalWithStaleHandoff         Code = "cross_terminal_with_stale_handoff"
	CheckpointPendingWithoutActiveHandoff Code = "checkpoint_pending_without_active_handoff"
	ActiveHandoffWithoutCheckpointPending Code = "active_handoff_without_checkpoint_pending"
	CheckpointKindIDMismatch              Code = "checkpoint_kind_id_mismatch"
	ProjectHandoffMarkerIncomplete        Code = "project_handoff_marker_incomplete"
	CFAPendingWithoutPausedState          Code = "cfa_pending_without_paused_state"
	PendingGateAndHandoffActive           Code = "pending_gate_and_handoff_active"
)

// Codes about files and statuses.
const (
	StatusMismatch                         Code = "status_mismatch"
	TerminalEventWithoutTerminalMeta       Code = "terminal_event_without_terminal_meta"
	TerminalMetaWithoutTerminalEvent       Code = "terminal_meta_without_terminal_event"
	HandoffEventWithoutMetaHandoff         Code = "handoff_event_without_meta_handoff"
	AwaitingWithoutActiveHandoff           Code = "awaiting_without_active_handoff"
	InterruptedEventWithoutInterruptedMeta Code = "interrupted_event_without_interrupted_meta"
	MetaUnreadable                         Code = "meta_unreadable"
	MetaMissing                            Code = "meta_missing"
	StreamTornTail                         Code = "stream_torn_tail"
	StreamLineUnreadable                   Code = "stream_line_unreadable"
	StreamSeqGap                           Code = "stream_seq_gap"
	StreamSeqDuplicate                     Code = "stream_seq_duplicate"
	ChainMismatch                          Code = "chain_mismatch"
	DerivedFileBehind                      Code = "derived_file_behind"
	ArtifactHashMismatch                   Code = "artifact_hash_mismatch"
	CheckpointDamaged                      Code = "checkpoint_damaged"
	SnapshotDamaged                        Code = "snapshot_damaged"
	CallIDDuplicate                        Code = "call_id_duplicate"
	EvidenceDamaged                        Code = "evidence_damaged"
	RunningWithoutLiveWorkflow             Code = "running_without_live_workflow"
	DamageRecorded                         Code = "damage_recorded"
	StreamMissing                          Code = "stream_missing"
	ClaimDamaged                           Code = "claim_damaged"
	DerivedFileDamaged                     Code = "derived_file_damaged"
	LogRowUnreadable                       Code = "log_row_unreadable"
	StoreDamaged                           Code = "store_damaged"
)

// Issue is one finding.
type Issue struct {
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	Message  string   `json:"message"` // what was found
	Hint     string   `json:"hint"`    // what to do; a command begins with starter

	file string // the derived file, or folder, to be rebuilt; empty: none
}

// rule is the description of a code. RUN in a hint is replaced by the directory, and RUN-ID by the id of the run.
type rule struct {
	code     Code
	severity Severity
	hint     string
}

const (
	hintRepair  = "starter repair-state RUN --apply"
	hintRebuild = "starter repair-state RUN --apply, where the store has the lines; else " + hintHistory
	hintHistory = "starter rebuild RUN-ID --output-dir RUN adds those that are missing at the end, from Temporal's " +
		"history; for changed lines, name another directory, then compare"
	hintDamage = "starter check RUN: what has been repaired needs nothing more"
	hintResume = "starter resume RUN"
	hintDecide = "decide the hand-off"
	hintWhole  = "starter rebuild RUN-ID --output-dir RUN, from Temporal's history and the store; else copy the file back"
	hintStore  = "copy what is lost into the store; where the directory has it, starter resume RUN stores it again"
	hintEnded  = "compare the decision with how the run ended: a status that the events settle is not repaired"
	hintRow    = "correct the line, or remove it: nothing else records promotions, so none is repaired automatically"
	hintLook   = "inspect cross_checkpoint.json: nothing is repaired automatically"
)

// rules lists every code, in the order in which findings are shown.
func rules() []rule { return bySeverity(slices.Concat(ownRules(), crossRules())) }

func ownRules() []rule {
	return []rule{
		{StreamMissing, SeverityError, hintWhole},
		{ClaimDamaged, SeverityError, "copy run.json or owner.json back"},
		{MetaMissing, SeverityError, hintRepair},
		{MetaUnreadable, SeverityError, hintRepair},
		{ChainMismatch, SeverityError, hintRebuild},
		{StreamLineUnreadable, SeverityError, hintRebuild},
		{StreamSeqGap, SeverityError, hintRebuild},
		{StreamSeqDuplicate, SeverityError, hintRebuild},
		{CallIDDuplicate, SeverityError, hintRebuild},
		{HaltDecisionWithoutHaltedMeta, SeverityError, hintRepair},
		{TerminalEventWithoutTerminalMeta, SeverityError, hintRepair},
		{TerminalMetaWithoutTerminalEvent, SeverityError, hintRepair},
		{InterruptedEventWithoutInterruptedMeta, SeverityError, hintRepair},
		{StatusMismatch, SeverityError, hintRepair},
		{AwaitingWithoutActiveHandoff, SeverityError, hintRepair},
		{HandoffEventWithoutMetaHandoff, SeverityError, hintRepair},
		{MetaHandoffWithoutEvent, SeverityError, hintRepair},
		{CheckpointPendingWithoutActiveHandoff, SeverityError, hintDecide},
		{InterruptedWithActiveHandoff, SeverityWarning, hintDecide},
		{RunningWithoutLiveWorkflow, SeverityWarning, hintResume},
		{TerminalWithStaleHandoff, SeverityWarning, hintRepair},
		{CrossTerminalWithStaleHandoff, SeverityWarning, hintRepair},
		{ActiveHandoffWithoutCheckpointPending, SeverityWarning, hintLook},
		{CheckpointKindIDMismatch, SeverityWarning, hintLook},
		{ProjectHandoffMarkerIncomplete, SeverityWarning, hintLook},
		{CFAPendingWithoutPausedState, SeverityWarning, hintLook},
		{PendingGateAndHandoffActive, SeverityWarning, hintLook},
		{DerivedFileBehind, SeverityWarning, hintRepair},
		{DerivedFileDamaged, SeverityWarning, hintRepair},
		{LogRowUnreadable, SeverityWarning, hintRepair},
		{CheckpointDamaged, SeverityWarning, hintRepair},
		{SnapshotDamaged, SeverityWarning, hintRepair},
		{EvidenceDamaged, SeverityWarning, hintRepair},
		{ArtifactHashMismatch, SeverityWarning,
			"starter resume RUN takes over an edit of a paused run; while a call runs, an edit is replaced at its end " +
				"and kept in _orchestrator/edits; without an edit, starter repair-state RUN --apply restores the file"},
		{StoreDamaged, SeverityWarning, hintStore},
		{StreamTornTail, SeverityInfo, hintRepair},
		{ActiveHandoffWithoutDecision, SeverityInfo, hintDecide},
		{DamageRecorded, SeverityInfo, hintDamage},
	}
}

// streamDamage lists the findings of a changed events.jsonl: nothing can be compared with it or derived from it.
func streamDamage() []Code {
	return []Code{ChainMismatch, StreamLineUnreadable, StreamSeqGap, StreamSeqDuplicate}
}

func ruleOf(c Code) (rule, int) {
	all := rules()
	i := slices.IndexFunc(all, func(r rule) bool { return r.code == c })
	return all[i], i
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

// Codes of the records of runs across projects.
const (
	CrossCheckpointUnreadable Code = "cross_checkpoint_unreadable"
	CrossParentContradiction  Code = "cross_parent_contradiction" // the message has the detail
)

const hintProjects = "compare meta.json, cross_checkpoint.json and the meta.json of each project, before the run is " +
	"resumed: nothing of this is repaired"

// crossRules are the rules of runs across projects.
func crossRules() []rule {
	return []rule{{CrossCheckpointUnreadable, SeverityError, hintProjects},
		{CrossParentContradiction, SeverityError, hintProjects}}
}

// bySeverity sorts rules in display order: errors first.
func bySeverity(all []rule) []rule {
	order := []Severity{SeverityError, SeverityWarning, SeverityInfo}
	slices.SortStableFunc(all, func(a, b rule) int {
		return slices.Index(order, a.severity) - slices.Index(order,
			b.severity)
	})
	return all
}

const crossFile = layout.CrossFile
