package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/price"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// StartInput is the input of [Start].
type StartInput struct {
	Config      string            `json:"config,omitempty" jsonschema:"the pipeline: its name in the repository, or a YAML file; empty: that of the earlier run"`
	Directory   string            `json:"directory,omitempty" jsonschema:"of the run; empty: one in the folder for runs"`
	Request     string            `json:"request,omitempty" jsonschema:"a name for this request, whose run gets its own directory"`
	Task        string            `json:"task,omitempty" jsonschema:"what this run is to do; prompts have it as {{task}}"`
	Inputs      map[string]string `json:"inputs,omitempty" jsonschema:"other inputs of the pipeline, by name"`
	Source      string            `json:"source,omitempty" jsonschema:"folder to work on; empty: the definition's folder"`
	Dirty       string            `json:"dirty,omitempty" jsonschema:"for uncommitted changes: halt, include, exclude or commit"`
	Unattended  bool              `json:"unattended,omitempty" jsonschema:"answer the questions of the definition at once, without an operator"`
	Issue       string            `json:"issue,omitempty" jsonschema:"the issue to work on: its number in the repository of the source, or its address"`
	SourceRef   string            `json:"source_ref,omitempty" jsonschema:"with an issue or a pull request: what to start at instead of the tip of the remote's base"`
	FollowUp    string            `json:"follow_up,omitempty" jsonschema:"a finished run to continue with a new task"`
	FromRunPlan string            `json:"from_run_plan,omitempty" jsonschema:"a finished run whose plan to implement"`
}

// Start starts a run, or finds the run of the directory if it was given the same. It does not wait for the run.
func Start(ctx context.Context, h Host, in StartInput) (Started, error) {
	def, dir, err := h.Definition(ctx, in)
	if err != nil {
		return Started{}, err
	}
	def.Changed = operations.ChangedRefuse
	d, closed, err := h.Prepare(ctx, def, dir)
	if err != nil {
		return Started{}, err
	}
	if closed != nil {
		return h.started(*closed, nil), nil
	}
	return connected(ctx, h, func(o operations.Operator) (Started, error) {
		made, err := o.Start(ctx, def, d)
		if err != nil {
			return Started{}, err
		}
		return h.started(made, nil), nil
	})
}

// maxTask is the maximum length of a task in bytes: it is part of the state of the run.
const maxTask = 8 << 10

// dirtyWays are what a run may do with uncommitted changes of its source.
var dirtyWays = []string{"halt", "include", "exclude", "commit"}

// Definition reads the definition of a run to start. It returns the directory of the run, too.
func (h Host) Definition(ctx context.Context, in StartInput) (def operations.Definition, dir string, err error) {
	switch {
	case in.FollowUp != "" && in.FromRunPlan != "":
		return def, "", invalid("%s and %s exclude each other: use one of them", h.flag("follow_up"),
			h.flag("from_run_plan"))
	case in.FollowUp != "" && in.Task == "":
		return def, "", invalid("name the task of the follow-up with %s", h.flag("task"))
	case len(in.Task) > maxTask:
		return def, "", invalid("the task has %d bytes; the maximum is %d: put the rest into a file, and name it",
			len(in.Task), maxTask)
	case in.Dirty != "" && !slices.Contains(dirtyWays, in.Dirty):
		return def, "", invalid("%s is %q: write halt, include, exclude or commit", h.flag("dirty"), in.Dirty)
	}
	parent, mode := in.FollowUp, operations.FollowUp
	if in.FromRunPlan != "" {
		parent, mode = in.FromRunPlan, operations.FromRunPlan
	}
	var from rundir.Dir
	if parent != "" {
		if from, err = h.Find(parent); err != nil {
			return def, "", err
		}
	}
	if def, err = h.definition(in.Config, from); err != nil {
		return def, "", err
	}
	dir = in.Directory
	if parent != "" {
		if def.Follow, err = operations.FollowRun(from, mode, def); err != nil {
			return def, "", err
		}
		if dir == "" {
			dir = fmt.Sprintf("%s-after-%.8s-%s", def.Plan.Pipeline, def.Follow.Claim.RunID,
				time.Now().Format("20060102-150405"))
		}
	}
	if in.Directory == "" && in.Request != "" { // repeated, it finds the run
		dir = fmt.Sprintf("%s-%.12s", def.Plan.Pipeline, disk.Digest([]byte(in.Request)))
	}
	task := strings.TrimSpace(in.Task)
	if def.Follow != nil && task == "" {
		task = def.Follow.Task
	}
	if err := def.Ask(task, in.Source, in.Dirty); err != nil {
		return def, "", &InputError{err}
	}
	if in.Unattended && def.Plan.Unattended == "" {
		def.Plan.Unattended = pipeline.ByStart
	}
	if err := h.onForge(ctx, &def, in); err != nil {
		return def, "", err
	}
	if in.Directory == "" && cmp.Or(dir, def.IssueDir()) != "" {
		dir = def.RunDir(ctx, h.Settings.RunRoot, cmp.Or(dir, def.IssueDir()))
	}
	if err := def.Give(in.Inputs, dir); err != nil {
		return def, "", &InputError{err}
	}
	if dir == "" {
		dir = def.NewRunDir(ctx, h.Settings.RunRoot)
	}
	return def, dir, nil
}

// onForge prepares a run that works on an issue or opens a pull request.
func (h Host) onForge(ctx context.Context, def *operations.Definition, in StartInput) error {
	if in.Issue == "" && !def.Plan.Delivery.OpensPull() {
		if in.SourceRef != "" {
			return invalid("%s is for runs with an issue or a pull request", h.flag("source_ref"))
		}
		return nil
	}
	if err := def.OnForge(ctx, h.Settings, os.Environ(), in.Issue, in.SourceRef); err != nil {
		return &InputError{err}
	}
	return nil
}

// definition loads the file, or the definition of the earlier run.
func (h Host) definition(file string, from rundir.Dir) (operations.Definition, error) {
	switch {
	case file != "" || from.Root == "":
		return h.LoadFile(file)
	}
	if claim, err := from.Claim(); err == nil && len(claim.Projects) > 0 {
		return operations.Definition{}, invalid("the run has projects, whose pipelines are beside its own: name its file "+
			"with %s", h.flag("config"))
	}
	return operations.LoadRun(from, price.With(h.Settings.Prices)...)
}

// LoadFile reads the definition of a pipeline, named by its file or by its name in the repository. An unreadable file is
// an error in the input.
func (h Host) LoadFile(name string) (operations.Definition, error) {
	file, err := operations.PipelineFile(name)
	if err != nil {
		return operations.Definition{}, &InputError{err}
	}
	def, err := operations.LoadFile(file, price.With(h.Settings.Prices)...)
	var problems pipeline.Problems
	if err != nil && !errors.As(err, &problems) {
		return def, &InputError{err}
	}
	return def, err
}

// CheckPlan reports why no run of a definition can start, as Prepare does, for a run that has a task. What depends on
// the moment or on flags of the run are warnings: programs in PATH, the state of its source, and what an operator can
// allow.
func (h Host) CheckPlan(ctx context.Context, def operations.Definition) (warnings []string, err error) {
	def.Task = cmp.Or(def.Task, "any")
	err = operations.Operator{Settings: h.Settings}.CheckStart(ctx, def,
		rundir.At(def.RunDir(ctx, h.Settings.RunRoot, def.Plan.Pipeline)))
	if source := (*operations.SourceError)(nil); errors.As(err, &source) {
		warnings, err = append(warnings, "a run would be refused now: "+source.Source+": "+source.Why), nil
	}
	if asked := (*operations.RequestError)(nil); errors.As(err, &asked) {
		warnings, err = append(warnings, asked.Error()), nil
	}
	if h.Settings.LocalStore() {
		for _, p := range def.WithoutPrograms(os.Environ()) {
			warnings = append(warnings, p.String())
		}
	}
	return append(warnings, h.Warnings(ctx, def)...), err
}

// Warnings are the concerns about a definition that do not prevent a run on this host.
func (h Host) Warnings(ctx context.Context, def operations.Definition) []string {
	all := def.SandboxWarnings(h.Settings.Sandbox, os.Environ())
	return slices.Concat(all, operations.BudgetWarnings(def.Plan), def.ProtectWarnings(ctx), def.SubmoduleWarnings(ctx))
}

// Prepare checks what can be checked before a server is started and anything is written. It returns the directory of
// the run; and the run in it, if that is closed and was given this definition.
func (h Host) Prepare(ctx context.Context, def operations.Definition, dir string) (
	d rundir.Dir, closed *operations.Started, err error,
) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return d, nil, err
	}
	d = rundir.At(abs)
	if err := rundir.Usable(d); err != nil {
		return d, nil, err
	}
	if closed, err = h.closed(ctx, d, def); closed != nil || err != nil {
		return d, closed, err
	}
	if _, err := d.Claim(); errors.Is(err, rundir.ErrNoRun) {
		o := operations.Operator{Settings: h.Settings, Environ: os.Environ()}
		return d, nil, o.CheckStart(ctx, def, d)
	}
	return d, nil, nil
}

// closed returns the run of a directory, if it is closed and was given this definition. It changes nothing but adds
// what it found to the decision log.
func (h Host) closed(ctx context.Context, d rundir.Dir, def operations.Definition) (*operations.Started, error) {
	claim, err := d.Claim()
	if errors.Is(err, rundir.ErrNoRun) || err == nil && def.Changed != operations.ChangedRefuse {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	meta, err := d.Meta()
	if err != nil || !run.Status(meta.Status).Closed() || def.Follow != nil {
		return nil, nil //nolint:nilerr // the projection repairs an unreadable meta.json
	}
	host, err := host.HostID(h.Settings.StateDir)
	if err != nil {
		return nil, err
	}
	o := operations.Operator{Settings: h.Settings, Host: host, Redact: h.Secrets}
	if err := o.Unchanged(ctx, def, d, claim, meta.State); err != nil {
		return nil, err
	}
	return &operations.Started{RunID: claim.RunID, Dir: d, Status: run.Status(meta.Status)}, nil
}
