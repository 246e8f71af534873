package api

import (
	"context"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Started is a run that was started, or found.
type Started struct {
	RunID     string `json:"run_id"`
	Directory string `json:"directory"`
	New       bool   `json:"new" jsonschema:"this request started it"`
	run.ShownStatus
	Warnings []string `json:"warnings"`

	Made operations.Started `json:"-"`
}

func (h Host) started(made operations.Started, warnings []string) Started {
	s := Started{RunID: made.RunID, Directory: made.Dir.Root, New: made.New, ShownStatus: RecordedStatus(made.Dir).Shown(),
		Made: made, Warnings: append([]string{}, warnings...)}
	s.Warnings = append(s.Warnings, made.Warnings...)
	return s
}

// RecordedStatus is the status in a directory; pending, if it has no event yet.
func RecordedStatus(d rundir.Dir) run.Status {
	m, err := d.Meta()
	if err != nil {
		return run.Pending
	}
	return run.Status(m.Status)
}

// ForkInput is the input of [Fork].
type ForkInput struct {
	Run       string   `json:"run" jsonschema:"the run to start from: its id, the beginning of one, or its directory"`
	From      string   `json:"from,omitempty" jsonschema:"a checkpoint or a boundary such as pass-35; default the newest"`
	Directory string   `json:"directory,omitempty" jsonschema:"of the new run; empty: one in the folder for runs"`
	Request   string   `json:"request,omitempty" jsonschema:"a name for this request: repeated, it starts no second run"`
	Task      string   `json:"task,omitempty" jsonschema:"another task"`
	BudgetUSD float64  `json:"budget_usd,omitempty" jsonschema:"another budget in USD"`
	Model     string   `json:"model,omitempty" jsonschema:"another model for every agent"`
	Agent     []string `json:"agent,omitempty" jsonschema:"another command for every agent, its words"`
	Config    string   `json:"config,omitempty" jsonschema:"file with another pipeline, the same up to the checkpoint"`

	Command []string `json:"-"` // how the operator asks for it with starter, for messages
	// Warn reports repaired damage while the run is prepared; nil: it is among the warnings.
	Warn func(text string) `json:"-"`
}

// Fork starts a new run from a checkpoint of another one, which does not change.
func Fork(ctx context.Context, h Host, in ForkInput) (Started, error) {
	if in.BudgetUSD < 0 {
		return Started{}, invalid("%s is %g; it must be above 0", h.flag("budget_usd"), in.BudgetUSD)
	}
	b := operations.Branching{Mode: run.ModeFork, From: in.From, Dir: in.Directory, Request: in.Request, Task: in.Task,
		Budget: in.BudgetUSD, Model: in.Model, Agent: in.Agent, Command: in.Command, Warn: in.Warn}
	if in.Config != "" {
		def, err := h.LoadFile(in.Config)
		if err != nil {
			return Started{}, err
		}
		b.Def = &def
	}
	return h.branch(ctx, in.Run, b)
}

// ReplayInput is the input of [Replay].
type ReplayInput struct {
	Run       string `json:"run" jsonschema:"the run to repeat: its id, the beginning of one, or its directory"`
	From      string `json:"from,omitempty" jsonschema:"a checkpoint or a boundary such as pass-35; default the first"`
	Policy    string `json:"policy,omitempty" jsonschema:"use_recorded_result (default), reexecute or require_human"`
	Directory string `json:"directory,omitempty" jsonschema:"of the new run; empty: one in the folder for runs"`
	Request   string `json:"request,omitempty" jsonschema:"a name for this request: repeated, it starts no second run"`

	Command []string          `json:"-"` // how the operator asks for it with starter, for messages
	Warn    func(text string) `json:"-"` // as in [ForkInput]
}

// Replay repeats the work of a run in a new run, which uses the recorded results. The other run does not change.
func Replay(ctx context.Context, h Host, in ReplayInput) (Started, error) {
	return h.branch(ctx, in.Run, operations.Branching{Mode: run.ModeReplay, From: in.From, Policy: in.Policy,
		Dir: in.Directory, Request: in.Request, Command: in.Command, Warn: in.Warn})
}

func (h Host) branch(ctx context.Context, name string, b operations.Branching) (Started, error) {
	if name == "" {
		return Started{}, invalid("name the run to start from: an id or a directory")
	}
	if err := b.CheckDir(h.Settings.RunRoot); err != nil { // before a server is started
		return Started{}, err
	}
	if b.Command == nil {
		b.Command = []string{b.Mode, name}
	}
	return connected(ctx, h, func(o operations.Operator) (Started, error) {
		from, err := o.Origin(ctx, name)
		if err != nil {
			return Started{}, err
		}
		var warnings []string
		if b.Warn == nil {
			b.Warn = func(text string) { warnings = append(warnings, text) }
		}
		made, err := o.Branch(ctx, from, b)
		if err != nil {
			return Started{}, err
		}
		return h.started(made, warnings), nil
	})
}
