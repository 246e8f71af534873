package workflows

import (
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
)

// damaged journals damage that was found before pending events could be written. Segments that are lost or damaged are first stored again from the
// directory. An event that ends the run stays the last one.
func (j *journal) damaged(ctx workflow.Context, found []run.JournalDamage) error {
	found, err := j.storeAgain(ctx, found)
	if err != nil {
		return err
	}
	n := slices.IndexFunc(j.pending, func(e run.Event) bool { return e.Kind == run.KindRunEnd })
	if n < 0 {
		return j.noteDamage(ctx, found)
	}
	end := slices.Clone(j.pending[n:])
	j.pending, j.state = j.pending[:n:n], j.base
	for _, e := range j.pending {
		j.state = run.Apply(j.state, e)
	}
	if err := j.noteDamage(ctx, found); err != nil {
		return err
	}
	for _, e := range end {
		e.Seq, e.TS = j.state.Seq+1, max(e.TS, j.state.TS)
		j.pending = append(j.pending, e)
		j.state = run.Apply(j.state, e)
	}
	return nil
}

// storeAgain has every line stored once more where a segment was damaged, and says whether that repaired it.
func (j *journal) storeAgain(ctx workflow.Context, found []run.JournalDamage) ([]run.JournalDamage, error) {
	inStore := func(d run.JournalDamage) bool { return strings.HasPrefix(d.File, run.SegmentFile) }
	if !slices.ContainsFunc(found, inStore) {
		return found, nil
	}
	head, sealed := j.head, j.sealed
	j.head, j.sealed, j.unkept = "", 0, 0
	if err := j.seal(ctx, j.tail); err != nil {
		return nil, err
	}
	if j.sealed == 0 { // nothing could be stored: the segments that can still be read stay known
		j.head, j.sealed = head, sealed
	}
	for i, d := range found {
		found[i].Repaired = d.Repaired || inStore(d) && j.sealed == j.tail.Seq
	}
	return found, nil
}

// noteDamage journals damage that the journal does not name yet. Behind the event that ended the run nothing is written any more.
func (j *journal) noteDamage(ctx workflow.Context, found []run.JournalDamage) error {
	for _, d := range found {
		if j.state.Status.Closed() {
			workflow.GetLogger(ctx).Error("the journal is damaged", "damage", d.String())
			continue
		}
		if j.state.Damages(d) || slices.ContainsFunc(j.named, d.Same) {
			continue
		}
		j.named = append(j.named, d)
		if err := j.emit(ctx, run.KindJournalDamaged, j.state.Phase, d); err != nil {
			return err
		}
	}
	return nil
}
