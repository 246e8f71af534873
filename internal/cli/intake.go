package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/operations"
)

func (a *app) intake() *cobra.Command {
	var in api.StartInput
	label, atOnce := "", 0
	cmd := &cobra.Command{
		Use: "intake PIPELINE", Short: "Start a run for each open issue with a label",
		Args: cobra.ExactArgs(1),
		Long: `Start a run of a pipeline for each open issue of the source's repository that has a label, which an account with write
access has set. An issue has at most one run of a pipeline, also if several hosts start it. Nothing stays
attached: run it by hand or by cron.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Config = args[0]
			if atOnce < 1 {
				return asUsage(errors.New("--at-once must be at least 1"))
			}
			return a.takeIssues(cmd.Context(), in, label, atOnce)
		},
	}
	cmd.Flags().StringVar(&label, "label", "ready", "the label of the issues")
	cmd.Flags().IntVar(&atOnce, "at-once", 1, "maximum number of open runs of issues of the pipeline")
	cmd.Flags().StringVar(&in.Source, "source", "", "the repository to work on (default: the definition's folder)")
	cmd.Flags().BoolVar(&in.Unattended, "unattended", false,
		"answer the questions of the definition at once; failed gates and rejected work still stop the run")
	return cmd
}

// takeIssues starts the runs. Of two at the same time, each issue gets one.
func (a *app) takeIssues(ctx context.Context, in api.StartInput, label string, atOnce int) error {
	h := a.host()
	def, err := h.LoadFile(in.Config)
	if err == nil {
		err = def.Ask("", in.Source, "")
	}
	if err == nil {
		err = def.OnForge(ctx, h.Settings, os.Environ(), "", "")
	}
	if err != nil {
		return err
	}
	found, err := def.Forge.Intake(ctx, def, h.Settings, label)
	if err != nil {
		return err
	}
	for _, why := range found.Refused {
		a.warn(why)
	}
	started := 0
	for _, number := range found.Ready {
		if found.Open+started >= atOnce {
			break
		}
		if err := a.takeIssue(ctx, in, number); err != nil {
			return fmt.Errorf("issue #%d: %w", number, err)
		}
		started++
	}
	fmt.Fprintf(a.out, "Started %d of %d issues with label %s; %d runs of issues were open.\n", started, len(found.Ready), label,
		found.Open)
	return nil
}

func (a *app) takeIssue(ctx context.Context, in api.StartInput, number int) error {
	in.Issue = strconv.Itoa(number)
	def, dir, err := a.host().Definition(ctx, in)
	if err != nil {
		return err
	}
	def.Changed = operations.ChangedRefuse
	return a.start(ctx, def, dir, true)
}
