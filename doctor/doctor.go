// Package doctor looks at everything that a run needs: the server, workers, the browser, agents, disks, and the runs that are open. It starts
// nothing and changes nothing, and no call of it is paid for. What cannot be known so is said to be not checked.
package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/local"
	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/rundir"
)

// State is how a check ended.
type State string

// How a check ends.
const (
	OK        State = "ok"
	Warning   State = "warning" // runs go on, and something is worse than it should be
	Problem   State = "problem" // something does not work
	Unchecked State = "not_checked"
)

// Check is one thing that was looked at.
type Check struct {
	Area   string `json:"area"` // server, worker, program, browser, agents, disk or runs
	Name   string `json:"name"`
	State  State  `json:"state"`
	Detail string `json:"detail"`
	Fix    string `json:"fix"` // what mends it, a command where there is one; empty: nothing is to be done
}

// Report is all checks, in the order in which things are needed.
type Report struct {
	OK     bool    `json:"ok"` // no warning and no problem
	Checks []Check `json:"checks"`
}

// Options say what is looked at.
type Options struct {
	Settings config.Settings
	Program  string // how the starter is called, for what is to be typed
	Version  string // of this program
	Build    string // of this program, as it stands at the end of a background worker's key
	By       string

	Agents []pipeline.Agent // of a definition; nil: those of the usual ones that are installed
	Run    *rundir.Dir      // nil: every run of this machine that its events leave open
}

// examiner is one examination.
type examiner struct {
	Options
	report Report
	host   string
	mounts map[string]bool // of the file systems that were inspected
	status local.Status    // of the background processes
	from   []string        // environment that the agents are looked for in
}

// Examine looks at everything.
func Examine(ctx context.Context, o Options) Report {
	e := &examiner{Options: o, report: Report{OK: true, Checks: []Check{}}, mounts: map[string]bool{}}
	e.program()
	op, connected := e.server(ctx)
	if connected {
		defer op.Client.Close()
		e.worker(ctx, op)
	}
	e.browser(ctx)
	e.agents(ctx)
	e.disks(ctx)
	if connected {
		e.runs(ctx, &op)
	} else {
		e.runs(ctx, nil)
	}
	return e.report
}

// say adds a check.
func (e *examiner) say(s State, area, name, fix, format string, args ...any) {
	e.report.Checks = append(e.report.Checks, Check{Area: area, Name: name, State: s, Detail: fmt.Sprintf(format, args...), Fix: fix})
	if s == Warning || s == Problem {
		e.report.OK = false
	}
}

func (e *examiner) ok(area, name, format string, args ...any) {
	e.say(OK, area, name, "", format, args...)
}

// typed is a command of the starter as it can be typed.
func (e *examiner) typed(format string, args ...any) string {
	return e.Program + " " + shell.Sprintf(format, args...)
}

// when writes a time for people.
func when(t time.Time) string { return t.Local().Format(time.DateTime) }

// operator speaks to a server that was reached.
func (e *examiner) operator(o operate.Operator) operate.Operator {
	o.Settings, o.Host, o.Build, o.By = e.Settings, e.host, e.Version, e.By
	return o
}
