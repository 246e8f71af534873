package rundir

import (
	"fmt"

	"github.com/passbook-run/passbook/run"
)

// fullRecords is up to how many records state.json is written after every batch. Beyond, it is written at checkpoints, reverts, pauses and
// ends, so that a pass costs the same however many came before it.
const fullRecords = 1000

// Behind says that state.json stands at an earlier event than meta.json, and holds what is needed to go on without reading it.
type Behind struct {
	Seq   int64         `json:"seq"`   // where state.json stands
	Size  int64         `json:"size"`  // of events.jsonl up to there
	State run.State     `json:"state"` // the small state there
	Book  PipelineState `json:"book"`  // the records as of meta.json, without the lists that grow
}

// due says whether state.json is to be written with this batch.
func (p *projector) due() bool {
	s := p.meta.State
	for _, e := range p.unseen {
		s = run.Apply(s, e)
		switch e.Kind {
		case run.KindRunStart, run.KindCheckpointCreated, run.KindRunReverted:
			return true
		}
	}
	return s.Status != run.Running && s.Status != run.Replaying || s.Passes.LastSettled+s.Rounds <= p.dir.fullRecords()
}

func (d Dir) fullRecords() int {
	if d.FullRecords > 0 {
		return d.FullRecords
	}
	return fullRecords
}

// goneOn makes the records current that state.json holds as of an earlier event. What stands between is read again: never more than what came
// since the last checkpoint.
func (d Dir) goneOn(b PipelineState, m Meta) (PipelineState, error) {
	part, err := d.readStream(m.Behind.Size)
	if err != nil {
		return b, err
	}
	n := m.Events.Seq - m.Behind.Seq
	if int64(len(part.lines)) < n {
		return b, fmt.Errorf("%s ends before event %d: %w", d.Path(EventsFile), m.Events.Seq, ErrDamaged)
	}
	s := m.Behind.State
	for i, line := range part.lines[:n] {
		e := lenient(line)
		e.Seq = m.Behind.Seq + 1 + int64(i)
		s = run.Apply(s, e)
		if err := b.unfold(e); err != nil {
			return b, err
		}
		b.apply(e, s)
	}
	return b, nil
}

// light is the records without the lists that grow.
func (b PipelineState) light() PipelineState {
	bare := newState()
	b.PassRecords, b.PACycleRecords, b.ArtifactBackups = bare.PassRecords, bare.PACycleRecords, bare.ArtifactBackups
	b.Checkpoints, b.ErrorHistory, b.older = bare.Checkpoints, bare.ErrorHistory, nil
	return b
}
