package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func (a *app) run() *cobra.Command {
	var file, dir string
	var detach bool
	var w wish
	cmd := &cobra.Command{
		Use: "run --config FILE --output-dir DIR", Short: "Start a run, or go on with the one in the directory", Args: cobra.NoArgs,
		Long: `Start a run of a pipeline on a directory, or attach to the one that is there. A finished run is left as it is.
Ctrl+C pauses after the running pass; a second one ends the running call.

` + exitCodesHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			def, err := a.wanted(file, &dir, w)
			if err != nil {
				return err
			}
			return a.start(cmd.Context(), def, dir, detach)
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "pipeline definition (YAML)")
	cmd.Flags().StringVar(&dir, "output-dir", "", "the run directory (default: run_root and the pipeline's name)")
	cmd.Flags().BoolVar(&detach, "detach", false, "do not stay attached")
	cmd.Flags().StringVar(&w.task, "task", "", "what this run is to do, in words; prompts have it as {{task}}")
	cmd.Flags().StringVar(&w.source, "source", "", "the repository or folder to work on (default: where the definition lies)")
	cmd.Flags().StringVar(&w.dirty, "dirty", "", "of a source with changes that are not committed: halt, include, exclude or commit (default: as the definition says)")
	cmd.Flags().StringVar(&w.followUp, "follow-up", "", "a run that is over: go on from where it ended, with a new --task")
	cmd.Flags().StringVar(&w.fromPlan, "from-run-plan", "", "a run that is over: do what it planned")
	return cmd
}

// wish is what somebody says of a run beside its definition.
type wish struct{ task, source, dirty, followUp, fromPlan string }

// maxTask is how long the words of a task may be, in bytes: they travel with the run's state.
const maxTask = 8 << 10

// wanted reads the definition of a run, and what was said beside it.
func (a *app) wanted(file string, dir *string, w wish) (operate.Definition, error) {
	var def operate.Definition
	switch {
	case w.followUp != "" && w.fromPlan != "":
		return def, asUsage(errors.New("--follow-up and --from-run-plan name two runs to begin with: keep one"))
	case w.followUp != "" && w.task == "":
		return def, asUsage(errors.New("say what the follow-up is to do: --task TEXT"))
	case len(w.task) > maxTask:
		return def, asUsage(fmt.Errorf("the task has %d bytes; at most %d are taken: put the rest into a file of the source, and name it", len(w.task), maxTask))
	case w.dirty != "" && !slices.Contains([]string{"halt", "include", "exclude", "commit"}, w.dirty):
		return def, asUsage(fmt.Errorf("--dirty is %q: write halt, include, exclude or commit", w.dirty))
	}
	parent, mode := w.followUp, operate.FollowUp
	if w.fromPlan != "" {
		parent, mode = w.fromPlan, operate.FromRunPlan
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
		if def.Follow, err = operate.FollowRun(from, mode, def); err != nil {
			return def, err
		}
		if *dir == "" {
			*dir = filepath.Join(a.settings.RunRoot, fmt.Sprintf("%s-after-%.8s-%s", def.Plan.Pipeline, def.Follow.Claim.RunID, time.Now().Format("20060102-150405")))
		}
	}
	return def, asUsage(def.Ask(strings.TrimSpace(w.task), w.source, w.dirty))
}

// definition reads the file, or what the earlier run was started with.
func (a *app) definition(file string, from rundir.Dir) (operate.Definition, error) {
	switch {
	case file != "":
		return loadFile(file)
	case from.Root == "":
		return operate.Definition{}, asUsage(errors.New("say which pipeline: --config FILE"))
	}
	return operate.LoadRun(from)
}

// start starts or finds a run, and stays attached to it.
func (a *app) start(ctx context.Context, def operate.Definition, dir string, detach bool) error {
	if dir == "" {
		dir = filepath.Join(a.settings.RunRoot, def.Plan.Pipeline)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	d := rundir.At(abs)
	if err := d.Usable(); err != nil { // before anything is written or started
		return err
	}
	if over, err := a.finished(d, def.Plan.ConfigHash); over || err != nil {
		return err
	}
	if _, err := d.Claim(); errors.Is(err, rundir.ErrNoRun) {
		if err := operate.CheckSource(ctx, def, d); err != nil { // before a server is started
			return err
		}
	}
	s, err := a.connect(ctx, true)
	if err != nil {
		return err
	}
	defer s.Close()
	var st operate.Started
	err = a.metered(ctx, "", func(ctx context.Context) error {
		st, err = s.Start(ctx, def, d)
		return err
	})
	if err != nil {
		return err
	}
	a.greet(s, st)
	if detach {
		fmt.Fprintf(a.out, "Detached. Look with: %s status %s\n", program(), shell.Quote(d.Root))
		return nil
	}
	return a.attach(ctx, s, st, pauses)
}

// finished says that a directory's run is through, without touching anything.
func (a *app) finished(d rundir.Dir, configHash string) (bool, error) {
	claim, err := d.Claim()
	if errors.Is(err, rundir.ErrNoRun) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if claim.ConfigHash != configHash {
		return false, nil // archived, if it is not live
	}
	meta, err := d.Meta()
	if err != nil || !run.Status(meta.Status).Closed() {
		return false, nil //nolint:nilerr // an unreadable meta.json is the projection's to mend
	}
	fmt.Fprintf(a.out, "Run %s in %s is %s: nothing to do, nothing was changed.\n", claim.RunID, d.Root, meta.Status)
	if status := run.Status(meta.Status); !status.Settled() || status == run.Cancelled {
		fmt.Fprintf(a.out, "To go on with it: %s resume %s\n", program(), shell.Quote(d.Root))
	}
	return true, outcome(meta.State)
}

func (a *app) greet(s *session, st operate.Started) {
	word := "Attached to"
	switch {
	case st.New:
		word = "Started"
	case st.Reopened != nil:
		word = fmt.Sprintf("It was %s, and goes on in epoch %d:", st.Reopened.From, st.Reopened.Epoch)
	}
	for _, w := range st.Warnings {
		fmt.Fprintln(a.err, "Warning:", w)
	}
	if st.Reopened != nil {
		fmt.Fprint(a.out, reopenedWith(*st.Reopened))
	}
	fmt.Fprintf(a.out, "%s run %s\n  directory  %s\n", word, st.RunID, st.Dir.Root)
	if s.ui != "" {
		fmt.Fprintf(a.out, "  Web UI     %s/namespaces/%s/workflows/%s\n", s.ui, s.Namespace, st.RunID)
	}
	fmt.Fprintln(a.out)
}

// outcome gives the exit code of a run that rests or is over.
func outcome(s run.State) error {
	switch {
	case s.Status == run.Done:
		return nil
	case s.Status == run.Paused && (s.Reason == run.UserRequested || s.Reason == run.UserReview):
		return nil
	case s.Status == run.Paused:
		return quiet(exitAttention)
	case s.Status.Class() == run.OperatorPause:
		return quiet(exitOperator)
	}
	return quiet(exitError)
}
