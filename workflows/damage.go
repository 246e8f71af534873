package workflows

import (
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
)

// handleDamage journals damage that was found before pending events were written. Lost or damaged segments are
// first archived again from the directory. An event that ends the run stays the last one.
func (j *journal) handleDamage(ctx workflow.Context, found []run.JournalDamage) error {
	found, err := j.rearchive(ctx, found)
	if err != nil {
		return err
	}
	n := slices.IndexFunc(j.pending, func(e run.Event) bool { return e.Kind == run.KindRunEnd })
	if n < 0 {
		j.journalDamage(ctx, found)
		return nil
	}
	end := slices.Clone(j.pending[n:])
	j.pending, j.now = j.pending[:n:n], j.written.state
	for _, e := range j.pending {
		j.now = run.Apply(j.now, e)
	}
	j.journalDamage(ctx, found)
	for _, e := range end {
		e.Seq, e.TS = j.now.Seq+1, max(e.TS, j.now.TS)
		j.pending = append(j.pending, e)
		j.now = run.Apply(j.now, e)
	}
	return nil
}

// rearchive archives all lines again where a segment is damaged, and marks what that repaired.
func (j *journal) rearchive(ctx workflow.Context, found []run.JournalDamage) ([]run.JournalDamage, error) {
	inStore := func(d run.JournalDamage) bool { return strings.HasPrefix(d.File, run.SegmentFile) }
	if !slices.ContainsFunc(found, inStore) {
		return found, nil
	}
	head, sealed := j.head, j.archived
	j.head, j.archived, j.unarchivable = "", 0, 0
	if err := j.archive(ctx); err != nil {
		return nil, err
	}
	if j.archived == 0 { // nothing was archived: keep the segments that are still readable
		j.head, j.archived = head, sealed
	}
	for i, d := range found {
		found[i].Repaired = d.Repaired || inStore(d) && j.archived == j.written.tail.Seq
	}
	return found, nil
}

// journalDamage journals damage that is not in the journal yet. Nothing is journaled after the end of the run.
func (j *journal) journalDamage(ctx workflow.Context, found []run.JournalDamage) {
	for _, d := range found {
		if j.now.Status.Closed() {
			workflow.GetLogger(ctx).Error("the journal is damaged", "damage", d.String())
			continue
		}
		if j.now.Damages(d) || slices.ContainsFunc(j.damage, d.Same) {
			continue
		}
		j.damage = append(j.damage, d)
		j.emit(ctx, run.KindJournalDamaged, j.now.Phase, d)
	}
}
