package records

import (
	"encoding/json"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/run"
)

// StartRow is a row of decisions.jsonl that a start wrote and no event contains. Seq is that of the last event before.
type StartRow struct {
	TS string `json:"ts"`
	run.LogDecision
	Seq int64 `json:"seq"`
}

// ParseStart parses a line of decisions.jsonl, if a start wrote it.
func ParseStart(line string) (StartRow, bool) {
	var row StartRow
	if json.Unmarshal([]byte(line), &row) != nil || !run.OfStart(row.Decision) {
		return StartRow{}, false
	}
	return row, row.Line() == line
}

// Line is the row as it is in the file, without a line feed.
func (r StartRow) Line() string {
	raw, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings and numbers
	}
	return string(raw)
}

// StartsUpTo adds the rows of starts that come before the rows of a later event. It returns the others.
func (l *Logbook) StartsUpTo(seq int64, rows []StartRow) (later []StartRow) {
	for i, row := range rows {
		if row.Seq > seq {
			return rows[i:]
		}
		l.row(layout.DecisionsLog, row)
	}
	return nil
}
