package rundir

import (
	"cmp"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
)

// Severity says how bad a finding is. Only errors and warnings make a directory not ok.
type Severity string

// Severities.
const (
	SeverityError   Severity = "error"   // the record contradicts itself
	SeverityWarning Severity = "warning" // somebody has to do something
	SeverityInfo    Severity = "info"    // worth knowing
)

// Code names a finding of a check. Codes outlive releases.
type Code string

// Codes of shapes that other writers of this format name too.
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

// Codes of our own.
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
	Hint     string   `json:"hint"`    // what to do about it; a command begins with starter

	file string // the derived file, or folder, that is to be made again; empty: none
}

// rule is what is said of every finding of one code. The words RUN in a hint stand for the directory.
type rule struct {
	code     Code
	severity Severity
	hint     string
}

const (
	hintRepair  = "starter repair-state RUN --apply"
	hintRebuild = "starter repair-state RUN --apply, where the store has the lines; else starter rebuild, into another directory, then compare"
	hintDamage  = "starter check RUN: what has been repaired needs nothing more"
	hintResume  = "starter resume RUN"
	hintDecide  = "decide the hand-off"
	hintWhole   = "starter rebuild ID --output-dir RUN, from Temporal's history and the store; else copy the file back"
	hintStore   = "copy what is lost into the store; where the directory has it, starter resume RUN stores it again"
	hintForeign = "look at it with the program that wrote the directory: nothing is repaired by itself"
	hintEnded   = "compare the decision with how the run ended: a status that the events settle is not repaired"
	hintLook    = "look at cross_checkpoint.json: nothing is repaired by itself"
)

// rules lists every code, in the order in which findings are shown.
func rules() []rule { return bySeverity(slices.Concat(ownRules(), foreignRules())) }

func ownRules() []rule {
	return []rule{
		{StreamMissing, SeverityError, hintWhole},
		{ClaimDamaged, SeverityError, "copy run.json or owner.json back; a run.json that is lost is written by starter rebuild ID --output-dir RUN"},
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
		{ArtifactHashMismatch, SeverityWarning, "starter resume RUN takes an edit over; without one, starter repair-state RUN --apply puts a lost file back"},
		{StoreDamaged, SeverityWarning, hintStore},
		{StreamTornTail, SeverityInfo, hintRepair},
		{ActiveHandoffWithoutDecision, SeverityInfo, hintDecide},
		{DamageRecorded, SeverityInfo, hintDamage},
	}
}

func ruleOf(c Code) (rule, int) {
	all := rules()
	i := slices.IndexFunc(all, func(r rule) bool { return r.code == c })
	return all[i], i
}

// issue makes a finding.
func (x *examined) issue(c Code, file, message string) Issue {
	r, _ := ruleOf(c)
	hint := strings.ReplaceAll(r.hint, "RUN", x.dir.Root)
	if !x.own && !mendedAnywhere(c) && (r.hint == hintRepair || r.hint == hintRebuild) {
		hint = hintForeign
	}
	if c == HaltDecisionWithoutHaltedMeta && x.endedOtherwise() {
		hint = hintEnded
	}
	if r.hint == hintDecide || c == RunningWithoutLiveWorkflow {
		if _, open := x.asks(); open {
			hint = "starter decide " + shell.Quote(x.dir.Root)
		}
	}
	return Issue{Code: c, Severity: r.severity, Message: message, Hint: hint, file: file}
}

// mendedAnywhere says that a finding is repaired in directories of other programs as well.
func mendedAnywhere(c Code) bool {
	return slices.Contains([]Code{
		HaltDecisionWithoutHaltedMeta, TerminalEventWithoutTerminalMeta, InterruptedEventWithoutInterruptedMeta, TerminalWithStaleHandoff,
		CrossTerminalWithStaleHandoff,
	}, c)
}

// sorted puts findings in the order of the rules.
func sorted(list []Issue) []Issue {
	slices.SortStableFunc(list, func(a, b Issue) int {
		_, i := ruleOf(a.Code)
		_, j := ruleOf(b.Code)
		return cmp.Compare(i, j)
	})
	return list
}

// terminal says that nothing follows a status in the same epoch, and that it was reached by an end.
func terminal(s run.Status) bool { return s.Settled() || s == run.Failed }
