package projector

import (
	"github.com/passbook-run/passbook/internal/journal"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/run"
)

// countTurns counts the turns of a run on an artifact that an earlier release started: it counted only those of runs on
// a tree. Each number is used once, so the events are read.
func (p *Projector) countTurns() error {
	s := p.meta.State
	if p.records.Turns > 0 || s.Artifact == nil || s.Passes.LastSettled+s.Rounds == 0 {
		return nil
	}
	all, err := journal.ReadStream(p.Dir, layout.EventsFile, 0)
	if err != nil {
		return err
	}
	for i, line := range all.Lines {
		e := journal.ParseAny(line).At(int64(i) + 1)
		if e.Seq > p.meta.Events.Seq {
			break
		}
		if e.Kind != run.KindPassEnd {
			continue
		}
		var end run.PassEnd
		if e.Decode(&end); end.CountsAsTurn(&s) {
			p.records.Turns++
		}
	}
	return nil
}
