package cli

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/rundir"
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
			tail, err := s.Rebuild(cmd.Context(), args[0], abs)
			if err != nil {
				return err
			}
			fmt.Fprintf(a.out, "%s holds events 1 to %d.\n", abs, tail.Seq)
			if _, err := a.atHome(rundir.At(abs)); err != nil { // beside the one that is there: that one stays the run's
				fmt.Fprintln(a.out, err)
				return nil
			}
			return operate.Index(a.settings.StateDir, args[0], abs)
		},
	}
	cmd.Flags().StringVar(&dir, "output-dir", "", "where the directory is to be")
	return cmd
}
