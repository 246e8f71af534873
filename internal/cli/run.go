package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func (a *app) run() *cobra.Command {
	var in api.StartInput
	var detach, amend, fresh bool
	var inputs []string
	var asJSON *bool
	cmd := &cobra.Command{
		Use: "run [PIPELINE [TASK]]", Short: "Start a run, or attach to the open one that was given the same",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 && in.Config != "" {
				return asUsage(errors.New("name one pipeline: starter run PIPELINE, or --config FILE"))
			}
			if len(args) > 2 {
				return asUsage(fmt.Errorf("run has %d arguments, but needs a pipeline and a task: quote the task, as in "+
					"starter run %s %s", len(args), shell.Quote(args[0]), shell.Quote(strings.Join(args[1:], " "))))
			}
			if len(args) == 2 && in.Task != "" {
				return asUsage(errors.New("give one task: as the second argument, or with --task"))
			}
			return nil
		},
		Long: `Start a run of a pipeline, or attach to the open run that was given the same. PIPELINE is a file, or the name of a
pipeline in the folder passbook/ of this repository. TASK is text, @FILE, or - for standard input; prompts have it as
{{task}}, and their inputs by name.

A finished run is not changed. If the directory has a run with another definition, task or input, nothing is changed:
the error lists the differing lines and the commands to choose from. Ctrl+C pauses after the running pass; a second
one ends the running call.`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) > 0 {
				in.Config = args[0]
			}
			if len(args) == 2 {
				in.Task = args[1]
			}
			if in.Task, err = taskText(in.Task); err != nil {
				return err
			}
			if in.Inputs, err = inputsOf(inputs); err != nil {
				return err
			}
			def, dir, err := a.host().Definition(cmd.Context(), in)
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
	cmd.Flags().StringVar(&in.Config, "config", "", "pipeline definition (YAML), instead of PIPELINE")
	cmd.Flags().StringVar(&in.Directory, "output-dir", "",
		"the run directory (default: <repository>/<words of the task>-<digest> in run_root)")
	cmd.Flags().BoolVar(&detach, "detach", false, "do not stay attached")
	cmd.Flags().BoolVar(&amend, "amend", false, "let the run in the directory adopt a changed definition")
	cmd.Flags().BoolVar(&fresh, "fresh", false, "archive the run in the directory and start again")
	cmd.Flags().StringVar(&in.Task, "task", "", "what this run is to do (text, @FILE or -), instead of TASK")
	cmd.Flags().StringArrayVar(&inputs, "input", nil, "NAME=VALUE: an input of the pipeline; may be repeated; a run in --output-dir keeps its own")
	cmd.Flags().BoolVar(&in.Unattended, "unattended", false,
		"answer the questions of the definition at once; failed gates and rejected work still stop the run")
	cmd.Flags().StringVar(&in.Source, "source", "",
		"the repository or folder to work on (default: the definition's folder)")
	cmd.Flags().StringVar(&in.Dirty, "dirty", "",
		dirtyUsage)
	cmd.Flags().StringVar(&in.Issue, "issue", "", "the issue to work on: its number in the source's repository, or its address")
	cmd.Flags().StringVar(&in.SourceRef, "source-ref", "",
		"with an issue or a pull request: start at this commit or branch, instead of the tip of the remote's base")
	cmd.Flags().StringVar(&in.FollowUp, "follow-up", "", "a finished run to continue with a new --task")
	cmd.Flags().StringVar(&in.FromRunPlan, "from-run-plan", "", "a finished run whose plan to implement, with its task")
	return cmd
}

// taskText returns a task as it is given, from a file, or from standard input.
func taskText(given string) (string, error) {
	var raw []byte
	var err error
	switch name, file := strings.CutPrefix(given, "@"); {
	case given == "-":
		raw, err = io.ReadAll(io.LimitReader(os.Stdin, maxStdin))
	case file:
		raw, err = os.ReadFile(name)
	default:
		return given, nil
	}
	if err != nil {
		return "", asUsage(fmt.Errorf("read the task: %w", err))
	}
	if text := strings.TrimSpace(string(raw)); text != "" {
		return text, nil
	}
	return "", asUsage(fmt.Errorf("read the task: %s is empty", given))
}

// inputsOf reads the values of --input.
func inputsOf(given []string) (map[string]string, error) {
	values := map[string]string{}
	for _, pair := range given {
		name, value, ok := strings.Cut(pair, "=")
		if _, twice := values[name]; !ok || name == "" || twice {
			return nil, asUsage(fmt.Errorf("--input is %q: write NAME=VALUE, each name once", pair))
		}
		values[name] = value
	}
	return values, nil
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

// start starts or finds a run, and attaches to it.
func (a *app) start(ctx context.Context, def operations.Definition, dir string, detach bool) error {
	var d rundir.Dir
	var closed *operations.Started
	asking := a.askingFor
	if def.Plan.Unattended != "" {
		asking = func(_ context.Context, f func() error) error { return f() }
	}
	err := asking(ctx, func() (err error) {
		d, closed, err = a.host().Prepare(ctx, def, dir)
		return err
	})
	if err != nil {
		return err
	}
	if closed != nil {
		return a.finished(*closed)
	}
	s, err := a.connect(ctx, true)
	if err != nil {
		return err
	}
	defer s.Close()
	var st operations.Started
	err = asking(ctx, func() error {
		st, err = s.Start(ctx, def, d)
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
	return a.attach(ctx, s, st)
}

// finished reports that the run of a directory is closed and was given the same. It returns the run's exit code.
func (a *app) finished(st operations.Started) error {
	for _, w := range st.Warnings {
		a.warn(w)
	}
	a.started = &Started{RunID: st.RunID, Directory: st.Dir.Root}
	fmt.Fprintf(a.out, "Run %s in %s is %s: nothing to do, the run was not changed.\n", st.RunID, st.Dir.Root, st.Status.Words())
	meta, err := st.Dir.Meta()
	if err != nil {
		return err
	}
	next := run.NextCommands(meta.State, run.Situation{EffectiveStatus: run.NewEffectiveStatus(st.Status, run.LiveClosed, ""),
		Dir: st.Dir.Root})
	if c, offered := run.Offers(next, run.Resume); offered && st.Status != run.Halted {
		fmt.Fprintf(a.out, "To resume it: %s\n", shell.Next(program(), []run.Command{c})[0])
	}
	return outcome(meta.State)
}

func (a *app) greet(s *session, st operations.Started) {
	a.started = &Started{RunID: st.RunID, Directory: st.Dir.Root, New: st.New, Amended: st.Amended}
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
		fmt.Fprint(a.out, api.ReopenedWith(*st.Reopened))
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
		return silentExit(exitAttention)
	case s.Status == run.Done, s.Status == run.WaitingLimit:
		return nil
	case s.Status == run.Paused && (s.Reason == run.UserRequested || s.Reason == run.UserReview):
		return nil
	case s.StoppedBy() != "":
		return silentExit(cmp.Or(s.StoppedBy().Info().Exit, exitAttention))
	case s.Status == run.Paused:
		return silentExit(exitAttention)
	case s.Status.Class() == run.OperatorPause:
		return silentExit(exitOperator)
	}
	return silentExit(exitError)
}
