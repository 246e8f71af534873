package projector

import (
	"slices"

	"github.com/passbook-run/passbook/internal/journal"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// revertRecords returns the records as of the event that a revert targets, folded again from the lines on disk. It
// keeps facts that a revert does not undo: the history of errors, how often each folder was superseded, and the number
// of turns.
func (p *Projector) revertRecords(e run.Event) error {
	var r run.RunReverted
	e.Decode(&r)
	if r.State == nil {
		return nil
	}
	then, err := p.recordsAt(min(r.To, e.Seq-1))
	if err != nil {
		return err
	}
	now, open := p.records, []rundir.ErrorRecord{}
	errs := now.ErrorHistory
	for _, o := range now.PendingErrors {
		if slices.Contains(then.PendingErrors, o) {
			open = append(open, o)
		} else {
			errs = append(errs, o) // its pass was superseded
		}
	}
	p.records = then
	p.records.ErrorHistory, p.records.PendingErrors = errs, open
	p.records.Superseded, p.records.Turns = now.Superseded, now.Turns
	return nil
}

// recordsAt folds the records of the first events. A revert among them restores earlier records too.
func (p *Projector) recordsAt(last int64) (rundir.PipelineState, error) {
	all, err := journal.ReadStream(p.Dir, layout.EventsFile, 0)
	if err != nil {
		return rundir.PipelineState{}, err
	}
	past := &Projector{Dir: p.Dir, records: rundir.NewState()}
	for i := int64(0); i < min(last, int64(len(all.Lines))); i++ {
		e := journal.ParseAny(all.Lines[i]).At(i + 1).Decoded()
		before := past.meta.State
		past.meta.Fold(e)
		if e.Kind == run.KindCheckpointCreated {
			rec, _, err := past.name(e, before)
			if err != nil {
				return rundir.PipelineState{}, err
			}
			past.records.Checkpoints = append(past.records.Checkpoints, rec)
		}
		if err := past.foldRecords(e); err != nil {
			return rundir.PipelineState{}, err
		}
	}
	return past.records, nil
}
