package rundir

import (
	"slices"

	"github.com/passbook-run/passbook/run"
)

// revertBook gives the records as they were at the event that a revert goes back to, folded again from the lines on disk. What happened all the
// same stays: the history of errors, how often each folder was set aside, and how many turns there were.
func (p *projector) revertBook(e run.Event) error {
	var r run.RunReverted
	e.Decode(&r)
	if r.State == nil {
		return nil
	}
	then, err := p.bookAt(min(r.To, e.Seq-1))
	if err != nil {
		return err
	}
	now, open := p.book, []ErrorRecord{}
	errs := now.ErrorHistory
	for _, o := range now.PendingErrors {
		if slices.Contains(then.PendingErrors, o) {
			open = append(open, o)
		} else {
			errs = append(errs, o) // its pass was left behind
		}
	}
	p.book = then
	p.book.ErrorHistory, p.book.PendingErrors, p.book.Aside, p.book.Turns = errs, open, now.Aside, now.Turns
	return nil
}

// bookAt folds the records of the first events. A revert among them takes the records back in its turn.
func (p *projector) bookAt(last int64) (PipelineState, error) {
	all, err := p.dir.readStream(0)
	if err != nil {
		return PipelineState{}, err
	}
	past := &projector{dir: p.dir, book: newState()}
	for i := int64(0); i < min(last, int64(len(all.lines))); i++ {
		e := lenient(all.lines[i])
		e.Seq = i + 1
		before := past.meta.State
		past.meta.fold(e)
		if e.Kind == run.KindCheckpointCreated {
			rec, _, err := past.name(e, before)
			if err != nil {
				return PipelineState{}, err
			}
			past.book.Checkpoints = append(past.book.Checkpoints, rec)
		}
		if err := past.foldBook(e); err != nil {
			return PipelineState{}, err
		}
	}
	return past.book, nil
}
