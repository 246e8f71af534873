package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func (a *app) rebuild() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "rebuild RUN-ID --output-dir DIR", Short: "Rebuild a lost run directory from Temporal and the store",
		Long: `Rebuild a lost run directory from Temporal's histories and the store: events.jsonl byte for byte, all derived
files, and the directories of its lanes. An existing events.jsonl must be a prefix of the history; nothing is cut.
Every other file is made again where it differs, and what was there is kept in _orchestrator/torn.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || dir == "" {
				return asUsage(errors.New("name the run and the directory: starter rebuild RUN-ID --output-dir DIR"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			args = []string{operations.CompleteID(a.settings.StateDir, args[0])}
			abs, err := filepath.Abs(dir)
			if err != nil {
				return err
			}
			if err := operations.CheckRebuild(args[0], abs); err != nil { // before a server is started
				return err
			}
			s, err := a.connect(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer s.Close()
			tail, left, err := s.Rebuild(cmd.Context(), args[0], abs)
			if err != nil {
				return err
			}
			if tail.Seq > 0 {
				fmt.Fprintf(a.out, "%s holds events 1 to %d.\n", abs, tail.Seq)
			} else {
				fmt.Fprintf(a.out, "%s is the directory of the run again. Its running call brings the events.\n", abs)
			}
			var missing error
			if len(left) > 0 {
				missing = fmt.Errorf("%s not rebuilt:\n%s", run.Plural(len(left), "lane"), strings.Join(left, "\n"))
			}
			if _, err := a.atHome(rundir.At(abs)); err != nil { // an existing directory stays the directory of the run
				fmt.Fprintln(a.out, err)
				return missing
			}
			return errors.Join(missing, operations.Index(a.settings.StateDir, args[0], abs))
		},
	}
	cmd.Flags().StringVar(&dir, "output-dir", "", "the directory to write")
	return cmd
}
