package cli

import (
	"cmp"
	"fmt"
	"time"

	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/live"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// outputFile returns the file with the output of a running call on this host.
func (a *app) outputFile(call string) (string, error) {
	return calls.Output(a.settings.Scratch(), call)
}

// runningCalls returns the running calls of a run, or nil if its plan is unreadable.
func runningCalls(d rundir.Dir, s run.State, now time.Time) []view.InFlightCall {
	lanes := d.Lanes(s)
	if len(s.InFlight)+len(lanes) == 0 {
		return nil
	}
	var plan *pipeline.Plan
	if p, err := d.Plan(); err == nil {
		plan = &p
	}
	return view.InFlight(s, plan, now, lanes...)
}

// callRows has a row for each running call: how long it runs and what its agent does.
func (a *app) callRows(s inspection, now time.Time) []view.Row {
	if s.Effective.Status != run.Running {
		return nil
	}
	var rows []view.Row
	all := live.Calls{File: a.outputFile, Hide: a.secrets.Text}
	for _, o := range all.Read(runningCalls(s.dir, s.Now.State, now)) {
		text := fmt.Sprintf("%s for %s", o.Name(), view.Duration(o.Elapsed))
		if o.Attempt > 1 {
			text += fmt.Sprintf(" (attempt %d)", o.Attempt)
		}
		if doing := o.Text(now); doing != "" {
			text += ": " + doing
		}
		rows = append(rows, view.Row{Name: "Running", Value: text})
		if last := cmp.Or(o.Partial, lastOf(o.Lines)); last != "" {
			rows = append(rows, view.Row{Value: last})
		}
	}
	return rows
}

func lastOf(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return lines[len(lines)-1]
}

// tailCalls prints the output of running calls while a log is followed.
type tailCalls struct {
	a     *app
	calls live.Calls
	last  time.Time
}

// tailEvery is how often new lines are printed.
const tailEvery = time.Second

// maxTail is the number of lines of one call that are printed at once: a terminal shows no more.
const maxTail = 40

// print prints the lines that agents have printed since the last call, each after the name of its call.
func (t *tailCalls) print(d rundir.Dir, s run.State, now time.Time) {
	if now.Sub(t.last) < tailEvery {
		return
	}
	t.last = now
	for _, o := range t.calls.Read(runningCalls(d, s, now)) {
		lines := o.Lines[max(0, len(o.Lines)-min(o.New, maxTail)):]
		if n := o.New - len(lines); n > 0 {
			fmt.Fprintf(t.a.out, "  %s │ … %s more\n", o.Name(), run.Plural(n, "line"))
		}
		for _, line := range lines {
			fmt.Fprintf(t.a.out, "  %s │ %s\n", o.Name(), run.OneLine(line))
		}
	}
}
