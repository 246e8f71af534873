package view

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/rundir"
)

// recentBytes is the size of the part of the journal's end to read: some hundred events.
const recentBytes = 256 << 10

// Read reads a run directory and the records of open lanes. It reads state.json and later lines, not the whole journal.
// A directory without state.json has empty records; an unreadable plan or log is omitted.
func Read(d rundir.Dir) (Source, error) {
	now, err := d.Now()
	if err != nil {
		return Source{}, err
	}
	s := Source{State: now.State, Lanes: d.Lanes(now.State)}
	if s.Records, err = rundir.Records(d); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	if plan, err := d.Plan(); err == nil {
		s.Plan = &plan
	}
	if rows, _, err := rundir.Rows[rundir.DecisionRow](d, rundir.DecisionsLog); err == nil {
		s.Pauses = Pauses(rows)
	}
	s.Recent, err = d.Recent(recentBytes)
	return s, err
}

// Pauses returns the pauses in the log of decisions. A pause begins with a decision to pause, the wait for a limit, a
// question or an end, and
// ends when the run continues or a pass starts. A run that resumes without a pause was interrupted: it was inactive
// since its last decision.
func Pauses(rows []rundir.DecisionRow) []Pause {
	var out []Pause
	resting := func() bool { return len(out) > 0 && out[len(out)-1].To.IsZero() }
	last := Pause{}
	for _, row := range rows {
		at, ok := parse(row.TS)
		if !ok {
			continue
		}
		switch {
		case slices.Contains([]string{"pause-pipeline", "wait-for-limit", "ask", "end-pipeline"}, row.Decision):
			if !resting() {
				out = append(out, Pause{From: at})
			}
		case row.Decision == "resume" && !resting() && !last.From.IsZero():
			out = append(out, Pause{From: last.From, To: at})
		case row.Decision == "resume", row.Decision == "end-wait-for-limit", row.Decision == "execute-pass",
			strings.HasPrefix(row.Decision, "decide-"):
			if resting() {
				out[len(out)-1].To = at
			}
		}
		last.From = at
	}
	return out
}
