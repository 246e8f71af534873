package projector

import (
	"context"
	"errors"
	"io/fs"

	"github.com/passbook-run/passbook/internal/journal"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/records"
	"github.com/passbook-run/passbook/rundir"
)

// RecordStart adds a row to the decision log for a start that found the run as it is and started nothing. No event
// contains it, so only the log has the row. It is written once for each state of the run: a second start adds none.
// Nothing is written while a projection has not committed the log, or if the log is damaged.
func (d Dir) RecordStart(ctx context.Context, row records.StartRow) error {
	lock, err := Lock(ctx, d.Dir, "start")
	if err != nil {
		return err
	}
	defer lock.Unlock()
	meta, err := d.Meta()
	if err != nil || meta.Events.Seq != row.Seq {
		return nil //nolint:nilerr // the projection repairs an unreadable meta.json; another writer was faster
	}
	mark := rundir.DerivedMark{}
	for _, m := range meta.Derived {
		if m.File == layout.DecisionsLog {
			mark = m
		}
	}
	had, size, clean, err := startsAfter(d.Dir, mark.Size)
	if err != nil || !clean {
		return err
	}
	if n := len(had); n > 0 && had[n-1].Seq == row.Seq && had[n-1].Decision == row.Decision {
		return nil
	}
	_, err = d.Inside().Append(d.Path(layout.DecisionsLog), size, []byte(row.Line()+"\n"), layout.FilePerm)
	return err
}

// startsAfter returns the rows of starts that follow an offset of the decision log, and where they end. clean: the log
// has lines up to the offset, and nothing but these rows follows.
func startsAfter(d rundir.Dir, from int64) (rows []records.StartRow, end int64, clean bool, err error) {
	ends, err := journal.LineEnds(d, layout.DecisionsLog, from)
	if err != nil || !ends || from == 0 {
		return nil, from, false, err
	}
	s, err := journal.ReadStream(d, layout.DecisionsLog, from)
	if err != nil {
		return nil, from, false, err
	}
	end = from
	for _, line := range s.Lines {
		row, is := records.ParseStart(line)
		if !is {
			return rows, end, false, nil
		}
		rows, end = append(rows, row), end+int64(len(line))+1
	}
	return rows, end, len(s.Torn) == 0, nil
}

// keepStarts makes the rows of starts part of the decision log that meta.json commits, so that the next rows follow
// them.
func (p *Projector) keepStarts() error {
	mark := p.mark(layout.DecisionsLog)
	rows, end, _, err := startsAfter(p.Dir.Dir, mark.Size)
	if err != nil || len(rows) == 0 {
		return err
	}
	if mark.Chain != "" {
		for _, row := range rows {
			mark.Chain = mark.Chain.Over([]string{row.Line()})
		}
	}
	mark.Size = end
	p.setMark(mark)
	return nil
}

// startsBefore returns all rows of starts in the decision log that a rebuild is about to derive again.
func (p *Projector) startsBefore() ([]records.StartRow, error) {
	if p.mark(layout.DecisionsLog).Size > 0 {
		return nil, nil
	}
	raw, err := p.Dir.ReadFile(layout.DecisionsLog)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []records.StartRow
	for _, line := range journal.Split(raw, 0).Lines {
		if row, is := records.ParseStart(line); is {
			out = append(out, row)
		}
	}
	return out, nil
}
