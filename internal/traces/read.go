package traces

import (
	"fmt"
	"path/filepath"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Read derives the spans of a run directory, also of one that another program wrote, and calls do with each batch
// of them.
func Read(d rundir.Dir, do func([]*Span) error) (Summary, error) {
	sum := Summary{}
	var fold *Fold
	var batch []*Span
	for line, err := range d.Lines(0) {
		if err != nil {
			return sum, err
		}
		if line.Err != nil {
			sum.Skipped++
			continue
		}
		e := line.Event.Clone().At(line.Number) // as in the directory, whatever the line has
		if fold == nil {
			sum.RunID = RunID(d, e)
			sum.TraceID, fold = ID(sum.RunID), NewFold(sum.RunID)
		}
		batch = append(batch, fold.Add(e)...)
		for len(batch) >= Batch {
			if err := do(batch[:Batch]); err != nil {
				return sum, err
			}
			sum.Spans, batch = sum.Spans+Batch, batch[Batch:]
		}
	}
	if fold == nil {
		return sum, fmt.Errorf("read events of %s: there are none; name the directory of a run that has begun", d.Root)
	}
	if sum.Open = fold.Open(); len(batch) == 0 {
		return sum, nil
	}
	sum.Spans += len(batch)
	return sum, do(batch)
}

// Summary is what was derived from a run directory.
type Summary struct {
	RunID   string
	TraceID string
	Spans   int // that have ended
	Open    int // that have not
	Skipped int // lines that are not events
}

// RunID returns the id of the run of a directory with a first event. A directory of another program may have none: then
// its name is used.
func RunID(d rundir.Dir, first run.Event) string {
	if claim, err := d.Claim(); err == nil && claim.RunID != "" {
		return claim.RunID
	}
	if id := run.PayloadOf[run.RunStart](first).RunID; id != "" {
		return id
	}
	if m, err := d.Meta(); err == nil && m.RunID != "" {
		return m.RunID
	}
	return filepath.Base(d.Root)
}
