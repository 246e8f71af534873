package figures

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/passbook-run/passbook/rundir"
)

// recentBytes is how much of the journal's end is looked at: some hundred events.
const recentBytes = 256 << 10

// Read reads a run directory at this moment. It costs what state.json costs, and the lines behind it, not what the journal costs. A directory whose state.json is not
// written yet gives empty records; plan and logs that cannot be read are left out.
func Read(d rundir.Dir) (Source, error) {
	now, err := d.Now()
	if err != nil {
		return Source{}, err
	}
	s := Source{State: now.State}
	if s.Records, err = d.State(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	if plan, err := d.Plan(); err == nil {
		s.Plan = &plan
	}
	if rows, _, err := rundir.Rows[rundir.DecisionRow](d, rundir.DecisionsLog); err == nil {
		s.Rests = Rests(rows)
	}
	s.Recent, err = d.Recent(recentBytes)
	return s, err
}

// Rests finds the times in which a run rested in its log of decisions. A rest begins with a pause, a question or an end, and ends when the run goes on or a pass
// starts. A run that goes on although it was not resting had been interrupted: it rested since the last thing it did.
func Rests(rows []rundir.DecisionRow) []Rest {
	var out []Rest
	resting := func() bool { return len(out) > 0 && out[len(out)-1].To.IsZero() }
	last := Rest{}
	for _, row := range rows {
		at, ok := parse(row.TS)
		if !ok {
			continue
		}
		switch {
		case row.Decision == "pause-pipeline", row.Decision == "ask", row.Decision == "end-pipeline":
			if !resting() {
				out = append(out, Rest{From: at})
			}
		case row.Decision == "resume" && !resting() && !last.From.IsZero():
			out = append(out, Rest{From: last.From, To: at})
		case row.Decision == "resume", row.Decision == "execute-pass", strings.HasPrefix(row.Decision, "decide-"):
			if resting() {
				out[len(out)-1].To = at
			}
		}
		last.From = at
	}
	return out
}
