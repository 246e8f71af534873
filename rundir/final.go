package rundir

import (
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// Ended reports whether the run is done and its end is in the journal. Nothing is appended after it. If lines of
// events.jsonl are lost, meta.json counts.
func (d Dir) Ended() (bool, error) {
	meta, err := d.Meta()
	if err != nil && !disk.Missing(err) {
		return false, err
	}
	now, err := d.Now()
	if err != nil {
		return false, err
	}
	state := now.State
	if meta.Status == string(run.Done) && now.Tail.Seq < meta.Events.Seq {
		state = meta.State
	}
	if state.Status != run.Done || state.Reason != run.ReasonReviewApproved {
		return state.Status == run.Done, nil
	}
	all, err := ReadStream(d, EventsFile, 0) // a run becomes done before it ends only for this reason
	return err == nil && HasEnded(all.Lines), err
}
