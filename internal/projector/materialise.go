package projector

import (
	"fmt"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/object"
	"github.com/passbook-run/passbook/internal/records"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Materialise writes everything derived from the unseen events: evidence, artifact, notes, checkpoints, then the logs,
// then state.json, and meta.json last. It can be interrupted anywhere and repeated.
func (p *Projector) Materialise() error {
	due, defers := p.due(), p.defers()
	if defers {
		if err := p.markUnsynced(); err != nil {
			return err
		}
	}
	if err := p.readRecords(due); err != nil {
		return err
	}
	starts, err := p.startsBefore()
	if err != nil {
		return err
	}
	from := rundir.Behind{Seq: p.meta.Events.Seq, Size: p.meta.Events.Size, State: p.meta.State.Clone()}
	load := func(d string) ([]byte, error) { return p.Blobs.Get(p.Ctx, d) }
	w := &batchWriter{dir: p.Dir, load: load, spares: p.Spares, defers: defers || p.restarted,
		first: from.State}
	logs := records.NewLogbook(load)
	var marks []run.Checkpoint
	for i, e := range p.unseen {
		e = e.Decoded()
		w.evidenceOnly = e.Seq <= p.restored
		// in a rebuild, readers know later records already
		if i > 0 && e.Kind == run.KindCheckpointCreated && !p.anew {
			if err := p.saveBefore(w); err != nil {
				return err
			}
		}
		before, had := p.meta.State, records.Counted(&p.records)
		p.meta.Fold(e)
		marks = p.markHead(marks, i)
		if err := p.evidence(w, e, before); err != nil {
			return fmt.Errorf("write what follows from event %d (%s): %w", e.Seq, e.Kind, err)
		}
		p.encoded = nil
		pending := p.records.PendingErrors
		if err := p.applyRecords(w, e); err != nil {
			return err
		}
		records.Summarize(&p.meta.Summary, e, had, &p.records)
		starts = logs.StartsUpTo(e.Seq-1, starts)
		logs.Log(records.EntryOf(e, &before, &p.meta.State, &p.records, pending))
	}
	logs.StartsUpTo(p.last, starts)
	if err := p.keepMarks(marks, defers); err != nil {
		return err
	}
	if err := p.growAll(logs, w.defers); err != nil {
		return err
	}
	if err := p.keepRecords(w, due, from); err != nil {
		return err
	}
	if err := p.flush(w); err != nil {
		return err
	}
	if !defers {
		if err := p.settle(); err != nil {
			return err
		}
	}
	return p.writeMeta()
}

// keepRecords queues state.json after everything else, or records in meta.json how far it is behind.
func (p *Projector) keepRecords(w *batchWriter, due bool, from rundir.Behind) error {
	if due || from.Seq == 0 {
		p.meta.Behind = nil
		return p.queueRecords(w)
	}
	if p.meta.Behind == nil {
		p.meta.Behind = &from
	}
	p.meta.Behind.Records = light(p.records)
	return nil
}

// saveBefore writes state.json as of the event before a checkpoint of the same batch: it is written for a pass and for
// a checkpoint (requirement 002 §1.1), with more records for the checkpoint only. A crash after this leaves it ahead of
// meta.json.
func (p *Projector) saveBefore(w *batchWriter) error {
	if !p.Dir.few(p.meta.State) {
		return nil
	}
	if err := p.queueRecords(w); err != nil {
		return err
	}
	p.encoded = p.wroteState // the checkpoint contains them too
	return p.flush(w)
}

// queueRecords queues state.json, to be read back before it counts (requirement 002 §3.3).
func (p *Projector) queueRecords(w *batchWriter) error {
	raw, err := p.encoder.marshal(&p.records)
	if err != nil {
		return err
	}
	p.meta.Records, p.wroteState = rundir.MarkOf(raw), raw
	w.add(wholeFile{name: layout.StateFile, data: raw, verify: disk.VerifyState()})
	return nil
}

func (p *Projector) writeMeta() error {
	p.meta.Events = rundir.EventsMark{Seq: p.last, Chain: p.chain, Size: p.size}
	if err := p.digestFixed(); err != nil {
		return err
	}
	p.meta.Digest = ""
	p.meta.Derive()
	raw, err := disk.Marshal(p.meta.Meta)
	if err != nil {
		return err
	}
	p.meta.Digest = disk.Digest(raw)
	p.wroteMeta = object.Sealed(raw, p.meta.Digest)
	return p.Replace(layout.MetaFile, p.wroteMeta)
}

// applyRecords folds one event into the records. Before a revert restores earlier records, the evidence that it
// supersedes is moved.
func (p *Projector) applyRecords(w *batchWriter, e run.Event) error {
	if e.Kind == run.KindRunReverted {
		if err := p.flush(w); err != nil {
			return err
		}
		if err := p.supersedeReverted(w, e); err != nil {
			return err
		}
	}
	return p.foldRecords(e)
}

// foldRecords folds one event into the records. A revert restores the records of its target.
func (p *Projector) foldRecords(e run.Event) error {
	if e.Kind == run.KindRunReverted {
		if err := p.revertRecords(e); err != nil {
			return fmt.Errorf("revert the records at event %d: %w", e.Seq, err)
		}
	}
	records.Fold(&p.records, e, &p.meta.State)
	return nil
}

// Replace writes a whole JSON file and reads it back before it counts (requirement 002 §3.3).
func (p *Projector) Replace(name string, raw []byte) error {
	if err := p.Dir.Inside().CleanTempsOf(p.Dir.Path(name)); err != nil {
		return err
	}
	return p.Dir.Inside().WriteAll([]disk.File{{Path: p.Dir.Path(name), Data: raw, Perm: layout.FilePerm,
		Verify: disk.VerifyState()}})
}
