package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func (a *app) run() *cobra.Command {
	var file, dir string
	var detach bool
	cmd := &cobra.Command{
		Use: "run --config FILE --output-dir DIR", Short: "Start a run, or go on with the one in the directory", Args: cobra.NoArgs,
		Long: `Start a run of a pipeline on a directory, or attach to the one that is there. A finished run is left as it is.
Ctrl+C pauses after the running pass; a second one ends the running call.

` + exitCodesHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return asUsage(errors.New("say which pipeline: --config FILE"))
			}
			def, err := loadFile(file)
			if err != nil {
				return err
			}
			return a.start(cmd.Context(), def, dir, detach)
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "pipeline definition (YAML)")
	cmd.Flags().StringVar(&dir, "output-dir", "", "the run directory (default: run_root and the pipeline's name)")
	cmd.Flags().BoolVar(&detach, "detach", false, "do not stay attached")
	return cmd
}

// start starts or finds a run, and stays attached to it.
func (a *app) start(ctx context.Context, def operate.Definition, dir string, detach bool) error {
	if dir == "" {
		dir = filepath.Join(a.settings.RunRoot, def.Plan.Pipeline)
	}
	if problems := def.Parsed.NotCarriedOut(); len(problems) > 0 {
		return problems // before a server is started
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	d := rundir.At(abs)
	if over, err := a.finished(d, def.Plan.ConfigHash); over || err != nil {
		return err
	}
	s, err := a.connect(ctx, true)
	if err != nil {
		return err
	}
	defer s.Close()
	st, err := s.Start(ctx, def, d)
	if err != nil {
		return err
	}
	a.greet(s, st)
	if detach {
		fmt.Fprintf(a.out, "Detached. Look with: %s status %s\n", program(), d.Root)
		return nil
	}
	return a.attach(ctx, s, st)
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
		fmt.Fprintf(a.out, "To go on with it: %s resume %s\n", program(), d.Root)
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
