package rundir

import (
	"slices"

	"github.com/passbook-run/passbook/run"
)

// Codes of runs across projects, and of streams that another program wrote.
const (
	CrossCheckpointUnreadable Code = "cross_checkpoint_unreadable"
	StreamOrderUnusual        Code = "stream_order_unusual"
)

const (
	hintProjects = "compare meta.json, cross_checkpoint.json and the meta.json of each project, before the run is resumed: nothing of this is repaired"
	hintNothing  = "nothing: the events count as they are"
)

// violation says what is wrong where the records of a run across projects contradict each other.
type violation struct {
	code run.CrossCode
	text string
}

func violations() []violation {
	return []violation{
		{run.DeclaredAliasDuplicate, MetaFile + " declares it more than once"},
		{run.UndeclaredChild, "it has a record, and " + MetaFile + " does not declare it"},
		{run.DuplicateChildFacts, "it has more than one record"},
		{run.EmbeddedPhysicalStatusConflict, "the copy in " + MetaFile + " has another status than its own record"},
		{run.PhysicalChildMalformed, "its own " + MetaFile + " is no JSON object"},
		{run.EmbeddedChildMalformed, "the copy in " + MetaFile + " is no JSON object"},
		{run.EmbeddedWithoutPhysical, MetaFile + " has a copy of its record, and the record itself is missing"},
		{run.PendingDecisionWithoutPause, "it holds a hand-off and does not wait for a decision"},
		{run.CheckpointSubStatusContradiction, crossFile + " says done, and its own record does not"},
		{run.MultiplePendingDecisions, "more than one hand-off is pending in the run and its projects"},
		{run.CheckpointPendingWithoutPayload, crossFile + " waits for a hand-off, and neither the run nor a project holds one"},
		{run.PayloadWithoutCheckpointPending, "a hand-off is pending, and " + crossFile + " waits for none"},
		{run.CheckpointKindConflict, crossFile + " gives the hand-off another kind than its record"},
		{run.CheckpointAliasConflict, crossFile + " gives the hand-off another project than its record"},
		{run.CheckpointParentHandoffConflict, crossFile + " names another hand-off of the run than its record"},
		{run.CheckpointChildHandoffConflict, crossFile + " names another hand-off of the project than its record"},
		{run.CheckpointHandoffConflict, crossFile + " names another hand-off than the one that is pending"},
		{run.PendingWithActiveOperation, "a hand-off is pending while a phase has started and not ended"},
		{run.TerminalParentContradiction, "the run ended, and a hand-off, a phase or a project of it did not"},
	}
}

func violationText(c run.CrossCode) string {
	all := violations()
	i := slices.IndexFunc(all, func(v violation) bool { return v.code == c })
	return all[i].text
}

func crossParentCode(c run.CrossCode) Code { return Code("cross_parent_" + string(c)) }

// foreignRules are the rules of these codes.
func foreignRules() []rule {
	all := []rule{{CrossCheckpointUnreadable, SeverityError, hintProjects}}
	for _, v := range violations() {
		all = append(all, rule{crossParentCode(v.code), SeverityError, hintProjects})
	}
	return append(all, rule{StreamOrderUnusual, SeverityInfo, hintNothing})
}

// bySeverity puts rules in the order in which their findings are shown: errors first.
func bySeverity(all []rule) []rule {
	order := []Severity{SeverityError, SeverityWarning, SeverityInfo}
	slices.SortStableFunc(all, func(a, b rule) int { return slices.Index(order, a.severity) - slices.Index(order, b.severity) })
	return all
}
