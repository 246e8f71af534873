package projector

import (
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// fullRecords is the maximum number of records for which state.json is written after every batch. With more, it is
// written at checkpoints, reverts, pauses and ends, so that the cost of a pass does not grow with the number of passes.
const fullRecords = 200

// written reads state.json, and notes if it differs from the file that meta.json records. A batch that does not write
// it uses what this process wrote, without the lists that grow: the next batch that writes the file compares it.
func (p *Projector) written(due bool) (rundir.PipelineState, error) {
	if !due && p.meta.Behind == nil && p.sameSize() {
		if state := p.Dir.Memory.lightState(p.Dir.Root, *p.meta.Records); state != nil {
			return p.Dir.Parse(state)
		}
	}
	raw, err := p.Dir.ReadFile(layout.StateFile)
	if err != nil {
		return rundir.PipelineState{}, err
	}
	mark := p.meta.Records
	p.changed = mark != nil && *mark != *rundir.MarkOf(raw)
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
	return s.Status != run.Running && s.Status != run.Replaying || p.Dir.few(s)
}

// sameSize reports whether state.json has the size that meta.json records.
func (p *Projector) sameSize() bool {
	if p.meta.Records == nil {
		return false
	}
	fi, err := p.Dir.Stat(layout.StateFile)
	return err == nil && fi.Size() == p.meta.Records.Size
}

// few reports whether state.json is written after every batch.
func (d Dir) few(s run.State) bool { return s.Passes.LastSettled+s.Rounds <= d.fullRecords() }

func (d Dir) fullRecords() int {
	if d.FullRecords > 0 {
		return d.FullRecords
	}
	return fullRecords
}
