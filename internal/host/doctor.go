package host

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/rundir"
)

// State is the result of a check.
type CheckState string

// Results of a check.
const (
	OK        CheckState = "ok"
	Warning   CheckState = "warning" // runs continue, with a limitation
	Problem   CheckState = "problem" // something does not work
	Unchecked CheckState = "not_checked"
)

// Check is one check and its result.
type Check struct {
	Area   string     `json:"area"` // server, worker, program, browser, sandbox, agents, disk, costs or runs
	Name   string     `json:"name"`
	State  CheckState `json:"state"`
	Detail string     `json:"detail"`
	Fix    string     `json:"fix"` // what fixes it, a command if possible; empty: nothing to do
}

// Report contains all checks, ordered by dependency.
type Report struct {
	OK     bool    `json:"ok"` // no problem
	Checks []Check `json:"checks"`
}

// Options configure what is checked.
type DoctorOptions struct {
	Settings config.Settings
	Program  string // name of the starter, for commands to type
	Version  string // of this program
	Build    string // of this program, as at the end of a background worker's key
	By       string

	Agents []pipeline.Agent // of a definition; nil: the well-known ones that are installed
	Run    *rundir.Dir      // nil: every open run of this machine

	OnlyAgents bool // check nothing else
}

// examiner runs the checks once.
type examiner struct {
	DoctorOptions
	report Report
	host   string
	mounts map[string]bool // of the file systems that were inspected
	status Status          // of the background processes
	from   []string        // environment that the agents are looked for in
	lookup func(ctx context.Context, host string) ([]string, error)
}

// Examine runs all checks.
func Examine(ctx context.Context, o DoctorOptions) Report {
	e := &examiner{DoctorOptions: o, report: Report{OK: true, Checks: []Check{}}, mounts: map[string]bool{},
		lookup: net.DefaultResolver.LookupHost}
	if o.OnlyAgents {
		op := e.quietly(ctx)
		if op != nil {
			defer op.Client.Close()
		}
		e.agents(ctx, op)
		return e.report
	}
	e.program()
	var reached *operations.Operator
	op, connected := e.server(ctx)
	if connected {
		defer op.Client.Close()
		e.worker(ctx, op)
		reached = &op
	}
	e.browser(ctx)
	e.consoleName(ctx)
	e.sandbox(sandbox.Examine())
	e.awake(ctx)
	e.agents(ctx, reached)
	e.disks(ctx)
	e.costs()
	e.runs()
	return e.report
}

// quietly connects to the server without a check of it; nil: none answers.
func (e *examiner) quietly(ctx context.Context) *operations.Operator {
	checks, good := e.report.Checks, e.report.OK
	o, ok := e.server(ctx)
	e.report.Checks, e.report.OK = checks, good
	if !ok {
		return nil
	}
	return &o
}

// add adds a check.
func (e *examiner) add(s CheckState, area, name, fix, format string, args ...any) {
	e.report.Checks = append(e.report.Checks,
		Check{Area: area, Name: name, State: s, Detail: fmt.Sprintf(format, args...), Fix: fix})
	if s == Problem {
		e.report.OK = false
	}
}

func (e *examiner) ok(area, name, format string, args ...any) {
	e.add(OK, area, name, "", format, args...)
}

// typed returns a command of the starter as an operator types it.
func (e *examiner) typed(format string, args ...any) string {
	return e.Program + " " + shell.Sprintf(format, args...)
}

// when formats a time for people.
func when(t time.Time) string { return t.Local().Format(time.DateTime) }

// operator returns an operator for a server that answered.
func (e *examiner) operator(o operations.Operator) operations.Operator {
	o.Settings, o.Host, o.Build, o.By = e.Settings, e.host, e.Version, e.By
	return o
}
