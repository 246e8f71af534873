package projector

import (
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/rundir"
)

// result queues result.json for a run that is done.
func (p *Projector) result(w *batchWriter) error {
	r, any := rundir.ResultOf(p.meta.State, p.records.CurrentArtifactPath, p.chainAt(p.meta.State.Seq))
	if !any {
		return nil
	}
	raw, err := disk.Marshal(r)
	if err != nil {
		return err
	}
	w.add(wholeFile{name: layout.ResultFile, data: raw})
	return nil
}
