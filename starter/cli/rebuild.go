package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/run"
)

func (a *app) rebuild() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "rebuild RUN-ID --output-dir DIR", Short: "Write a lost run directory again, from Temporal's history and the store",
		Long: `Write a run directory that was lost again: events.jsonl byte for byte, and everything that follows from it. What is there already must be
the beginning of it; nothing is cut or replaced.

` + exitCodesHelp,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || dir == "" {
				return asUsage(errors.New("say which run and where to: starter rebuild RUN-ID --output-dir DIR"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.connect(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer s.Close()
			abs, err := filepath.Abs(dir)
			if err != nil {
				return err
			}
			var tail run.Tail
			err = a.metered(cmd.Context(), func(ctx context.Context) error {
				tail, err = s.Rebuild(ctx, args[0], abs)
				return err
			})
			if err != nil {
				return err
			}
			fmt.Fprintf(a.out, "%s holds events 1 to %d.\n", abs, tail.Seq)
			return operate.Index(a.settings.StateDir, args[0], abs)
		},
	}
	cmd.Flags().StringVar(&dir, "output-dir", "", "where the directory is to be")
	return cmd
}
