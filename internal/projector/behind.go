package projector

import (
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// fullRecords is the maximum number of records for which state.json is written after every batch. With more, it is
// written at checkpoints, reverts, pauses and ends, so that the cost of a pass does not grow with the number of passes.
const fullRecords = 200

// written reads state.json, and notes if it differs from the file that meta.json records. Unless this batch writes it,
// or its contents have to be parsed, the lists that grow are left out.
func (p *Projector) written(due bool) (rundir.PipelineState, error) {
	raw, err := p.Dir.ReadFile(layout.StateFile)
	if err != nil {
		return rundir.PipelineState{}, err
	}
	mark := p.meta.Records
	p.changed = mark != nil && *mark != *rundir.MarkOf(raw)
	if !due && p.meta.Behind == nil {
		if state := p.Dir.Memory.lightState(p.Dir.Root, raw); state != nil {
			return p.Dir.Parse(state)
		}
	}
	if state := p.Dir.Memory.takeState(p.Dir.Root, raw); state != nil {
		p.encoder = state.encoder
		return state.PipelineState, nil
	}
	return p.Dir.Parse(raw)
}

// due reports whether this batch writes state.json.
func (p *Projector) due() bool {
	for _, e := range p.unseen {
		switch e.Kind {
		case run.KindRunStart, run.KindCheckpointCreated, run.KindRunReverted:
			return true
		}
	}
	s := p.state()
	return s.Status != run.Running && s.Status != run.Replaying || s.Passes.LastSettled+s.Rounds <= p.Dir.fullRecords()
}

func (d Dir) fullRecords() int {
	if d.FullRecords > 0 {
		return d.FullRecords
	}
	return fullRecords
}
