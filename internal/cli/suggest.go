package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/rundir"
)

// didYouMean suggests the nearest words; empty if there are none.
func didYouMean(word string, words []string) string {
	near := pipeline.Nearest(word, words)
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(near, " or ") + "?"
}

// unknownFlag suggests flags for an unknown flag.
func unknownFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return asUsage(err)
	}
	var names []string
	collect := func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	}
	cmd.Flags().VisitAll(collect)
	cmd.InheritedFlags().VisitAll(collect)
	near := pipeline.Nearest(unknown.GetSpecifiedName(), names)
	for i, n := range near {
		near[i] = "--" + n
	}
	if len(near) == 0 {
		return asUsage(fmt.Errorf("%w; see %s --help", err, cmd.CommandPath()))
	}
	return asUsage(fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or ")))
}

// find returns the directory of a named run, or suggests similar names.
func (a *app) find(what string) (rundir.Dir, error) {
	d, err := a.host().Find(what)
	return d, err
}

// nearRuns suggests runs of this machine with similar names.
func (a *app) nearRuns(what string) string {
	rows, _, err := operations.Here(a.settings.StateDir, a.settings.RunRoot)
	if err != nil {
		return "" // the name is wrong in any case
	}
	var words []string
	for _, r := range rows {
		words = append(words, r.RunID[:min(len(r.RunID), max(8, len(what)))])
		if r.Directory != "" {
			words = append(words, here(r.Directory))
		}
	}
	return didYouMean(what, words)
}

// hint suggests checkpoints for an error that lists them.
func hint(err error, stateDir string) string {
	var missing *rundir.NoCheckpointError
	if errors.As(err, &missing) {
		return didYouMean(missing.ID, missing.Known)
	}
	if file := (*fs.PathError)(nil); errors.As(err, &file) && errors.Is(err, fs.ErrPermission) {
		return ofAnotherUser(file.Path, stateDir)
	}
	return ""
}

// ofAnotherUser is the end of a message about a file that this user may not read, if it is in the state directory of
// another user.
func ofAnotherUser(file, stateDir string) string {
	if !strings.HasPrefix(file, stateDir+string(filepath.Separator)) {
		return ""
	}
	for at := file; len(at) >= len(stateDir); at = filepath.Dir(at) { // the first one that can be examined
		if owner := disk.OtherOwner(at); owner != "" {
			return fmt.Sprintf(". It belongs to user %s: run the command as %s, or set PASSBOOK_STATE_DIR to a state "+
				"directory of yours", owner, owner)
		}
	}
	return ""
}

// within refuses an unknown subcommand. Cobra does so for the first word of the command line only.
func within(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		var names []string
		for _, c := range cmd.Commands() {
			names = append(names, c.Name())
		}
		return asUsage(fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(),
			didYouMean(args[0], names)))
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}
