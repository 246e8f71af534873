package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/connect"
	"github.com/passbook-run/passbook/internal/local"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/price"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func (a *app) run() *cobra.Command {
	var file, dir string
	var detach, amend, fresh bool
	var w startFlags
	var asJSON *bool
	cmd := &cobra.Command{
		Use: "run [FILE]", Short: "Start a run, or attach to the one in the directory",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && file != "" {
				return asUsage(errors.New("name one pipeline: starter run FILE, or --config FILE"))
			}
			return nil
		},
		Long: `Start a run of a pipeline on a directory, or attach to the run in it. A finished run is not changed. If the run
was given another definition, other files or another task, nothing is changed: the error lists the differing lines and
the commands to choose from. Ctrl+C pauses after the running pass; a second one ends the running call.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				file = args[0]
			}
			def, err := a.wanted(file, &dir, w)
			if err != nil {
				return err
			}
			if def.Changed, err = changed(amend, fresh); err != nil {
				return err
			}
			return a.asJSON(*asJSON, func() error { return a.start(cmd.Context(), def, dir, detach) })
		},
	}
	asJSON = startedFlag(cmd)
	cmd.Flags().StringVar(&file, "config", "", "pipeline definition (YAML), instead of FILE")
	cmd.Flags().StringVar(&dir, "output-dir", "", "the run directory (default: run_root and the pipeline's name)")
	cmd.Flags().BoolVar(&detach, "detach", false, "do not stay attached")
	cmd.Flags().BoolVar(&amend, "amend", false, "let the run in the directory adopt a changed definition")
	cmd.Flags().BoolVar(&fresh, "fresh", false, "archive the run in the directory and start again")
	cmd.Flags().StringVar(&w.task, "task", "", "what this run is to do; prompts have it as {{task}}")
	cmd.Flags().StringVar(&w.source, "source", "",
		"the repository or folder to work on (default: the definition's folder)")
	cmd.Flags().StringVar(&w.dirty, "dirty", "",
		dirtyUsage)
	cmd.Flags().StringVar(&w.followUp, "follow-up", "", "a finished run to continue with a new --task")
	cmd.Flags().StringVar(&w.fromPlan, "from-run-plan", "", "a finished run whose plan to implement")
	return cmd
}

// changed returns what to do if the run in the directory was given another definition.
func changed(amend, fresh bool) (operations.Changed, error) {
	switch {
	case amend && fresh:
		return "", asUsage(errors.New("--amend and --fresh exclude each other: use one of them"))
	case amend:
		return operations.ChangedAmend, nil
	case fresh:
		return operations.ChangedFresh, nil
	}
	return operations.ChangedRefuse, nil
}

// dirtyUsage describes the flag --dirty.
const dirtyUsage = "for a source with uncommitted changes: halt, include, exclude or commit (default: the definition)"

// startFlags are the flags of a run that add to its definition.
type startFlags struct{ task, source, dirty, followUp, fromPlan string }

// maxTask is the maximum length of a task in bytes: it is part of the state of the run.
const maxTask = 8 << 10

// wanted reads the definition of a run and adds the flags.
func (a *app) wanted(file string, dir *string, w startFlags) (operations.Definition, error) {
	var def operations.Definition
	switch {
	case w.followUp != "" && w.fromPlan != "":
		return def, asUsage(errors.New("--follow-up and --from-run-plan exclude each other: use one of them"))
	case w.followUp != "" && w.task == "":
		return def, asUsage(errors.New("name the task of the follow-up: --task TEXT"))
	case len(w.task) > maxTask:
		return def, asUsage(fmt.Errorf("the task has %d bytes; the maximum is %d: put the rest into a file, and "+
			"name it",
			len(w.task), maxTask))
	case w.dirty != "" && !slices.Contains([]string{"halt", "include", "exclude", "commit"}, w.dirty):
		return def, asUsage(fmt.Errorf("--dirty is %q: write halt, include, exclude or commit", w.dirty))
	}
	parent, mode := w.followUp, operations.FollowUp
	if w.fromPlan != "" {
		parent, mode = w.fromPlan, operations.FromRunPlan
	}
	var from rundir.Dir
	if parent != "" {
		var err error
		if from, err = a.find(parent); err != nil {
			return def, err
		}
	}
	def, err := a.definition(file, from)
	if err != nil {
		return def, err
	}
	if parent != "" {
		if def.Follow, err = operations.FollowRun(projector.Dir{Dir: from}, mode, def); err != nil {
			return def, err
		}
		if *dir == "" {
			*dir = filepath.Join(a.settings.RunRoot, fmt.Sprintf("%s-after-%.8s-%s",
				def.Plan.Pipeline, def.Follow.Claim.RunID, time.Now().Format("20060102-150405")))
		}
	}
	return def, asUsage(def.Ask(strings.TrimSpace(w.task), w.source, w.dirty))
}

// definition loads the file, or the definition of the earlier run.
func (a *app) definition(file string, from rundir.Dir) (operations.Definition, error) {
	switch {
	case file != "":
		return a.loadFile(file)
	case from.Root == "":
		return operations.Definition{}, asUsage(errors.New("name the pipeline: --config FILE"))
	}
	return operations.LoadRun(projector.Dir{Dir: from}, price.With(a.settings.Prices)...)
}

// start starts or finds a run, and attaches to it.
func (a *app) start(ctx context.Context, def operations.Definition, dir string, detach bool) error {
	if dir == "" {
		dir = filepath.Join(a.settings.RunRoot, def.Plan.Pipeline)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	d := rundir.At(abs)
	if err := projector.Usable(d); err != nil { // before anything is written or started
		return err
	}
	if over, err := a.finished(ctx, d, def); over || err != nil {
		return err
	}
	if _, err := d.Claim(); errors.Is(err, rundir.ErrNoRun) {
		if err := operations.CheckSource(ctx, def, projector.Dir{Dir: d}); err != nil { // before a server is started
			return err
		}
	}
	s, err := a.connect(ctx, true)
	if err != nil {
		return err
	}
	defer s.Close()
	var st operations.Started
	err = a.metered(ctx, "", func(ctx context.Context) error {
		st, err = s.Start(ctx, def, projector.Dir{Dir: d})
		return err
	})
	if err != nil {
		return err
	}
	a.greet(s, st)
	if detach {
		fmt.Fprintf(a.out, "Detached. To see its status: %s status %s\n", program(), shell.Quote(d.Root))
		return nil
	}
	return a.attach(ctx, s, st, pauses)
}

// finished reports that the run of a directory is closed and was given this definition. It changes nothing but adds
// what it found to the decision log.
func (a *app) finished(ctx context.Context, d rundir.Dir, def operations.Definition) (bool, error) {
	claim, err := d.Claim()
	if errors.Is(err, rundir.ErrNoRun) || err == nil && def.Changed != operations.ChangedRefuse {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	meta, err := d.Meta()
	if err != nil || !run.Status(meta.Status).Closed() || def.Follow != nil {
		return false, nil //nolint:nilerr // the projection repairs an unreadable meta.json
	}
	host, err := local.HostID(a.settings.StateDir)
	if err != nil {
		return false, err
	}
	o := operations.Operator{Settings: a.settings, Host: host, Redact: a.secrets}
	if err := o.Unchanged(ctx, def, projector.Dir{Dir: d}, claim, meta.State); err != nil {
		return false, err
	}
	o.By = connect.User()
	for _, w := range o.RecordStart(ctx, projector.Dir{Dir: d}, meta.State, meta.Events.Seq) {
		fmt.Fprintf(a.err, "Warning: %s\n", a.secrets.Text(w))
	}
	a.started = &Started{RunID: claim.RunID, Directory: d.Root}
	fmt.Fprintf(a.out, "Run %s in %s is %s: nothing to do, the run was not changed.\n", claim.RunID, d.Root, meta.Status)
	if status := run.Status(meta.Status); !status.Settled() || status == run.Cancelled {
		fmt.Fprintf(a.out, "To resume it: %s resume %s\n", program(), shell.Quote(d.Root))
	}
	return true, outcome(meta.State)
}

func (a *app) greet(s *session, st operations.Started) {
	a.started = &Started{RunID: st.RunID, Directory: st.Dir.Root, New: st.New}
	word := "Attached to"
	switch {
	case st.New:
		word = "Started"
	case st.Reopened != nil:
		word = fmt.Sprintf("It was %s, and continues in epoch %d:", st.Reopened.From, st.Reopened.Epoch)
	}
	for _, w := range st.Warnings {
		fmt.Fprintln(a.err, "Warning:", w)
	}
	if st.Reopened != nil {
		fmt.Fprint(a.out, reopenedWith(*st.Reopened))
	}
	if st.Amended != nil {
		a.printAmended(*st.Amended)
	}
	fmt.Fprintf(a.out, "%s run %s\n  directory  %s\n", word, st.RunID, st.Dir.Root)
	if s.link != nil {
		link, err := s.link("/namespaces/" + s.Namespace + "/workflows/" + st.RunID)
		if err != nil {
			fmt.Fprintln(a.err, "Warning:", err)
		} else {
			fmt.Fprintf(a.out, "  Web UI     %s\n", link)
		}
	}
	fmt.Fprintln(a.out)
}

// outcome returns the exit code of a paused or finished run.
func outcome(s run.State) error {
	switch {
	case s.NotApproved():
		return quiet(exitAttention)
	case s.Status == run.Done, s.Status == run.WaitingLimit:
		return nil
	case s.Status == run.Paused && (s.Reason == run.UserRequested || s.Reason == run.UserReview):
		return nil
	case s.StoppedBy() != "":
		return quiet(cmp.Or(s.StoppedBy().Info().Exit, exitAttention))
	case s.Status == run.Paused:
		return quiet(exitAttention)
	case s.Status.Class() == run.OperatorPause:
		return quiet(exitOperator)
	}
	return quiet(exitError)
}
