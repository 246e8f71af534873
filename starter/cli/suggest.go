package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/rundir"
)

// nearest gives the words that somebody may have meant by another one, at most three: those that it begins, or the nearest of
// those that are two slips away or fewer; of a short word, one.
func nearest(word string, words []string) []string {
	type near struct {
		word  string
		slips int
	}
	var found []near
	low := strings.ToLower(word)
	for _, w := range words {
		n := slips(low, strings.ToLower(w))
		if len(low) > 1 && strings.HasPrefix(strings.ToLower(w), low) {
			n = 1
		}
		if n <= min(2, len(low)/3+1) {
			found = append(found, near{w, n})
		}
	}
	slices.SortStableFunc(found, func(x, y near) int { return x.slips - y.slips })
	var out []string
	for _, f := range found[:min(3, len(found))] {
		if f.slips == found[0].slips {
			out = append(out, f.word)
		}
	}
	return out
}

// slips is how many letters must be put in, left out, exchanged or swapped with their neighbour to make one word of another.
func slips(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, last := make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row := make([]int, len(y)+1)
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(y)]
}

// didYouMean says what somebody may have meant; empty: nothing is near.
func didYouMean(word string, words []string) string {
	near := nearest(word, words)
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(near, " or ") + "?"
}

// unknownFlag adds to the complaint about a flag what flag may have been meant.
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
	near := nearest(unknown.GetSpecifiedName(), names)
	for i, n := range near {
		near[i] = "--" + n
	}
	if len(near) == 0 {
		return asUsage(fmt.Errorf("%w; see %s --help", err, cmd.CommandPath()))
	}
	return asUsage(fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or ")))
}

// find gives the directory of a run that a person names, and says which one may have been meant where there is none.
func (a *app) find(what string) (rundir.Dir, error) {
	d, err := operate.Find(a.settings.StateDir, what)
	var name *operate.NameError
	if errors.As(err, &name) && len(name.Found) == 0 {
		if hint := a.nearRuns(what); hint != "" {
			return d, asUsage(fmt.Errorf("%w%s", err, hint))
		}
	}
	return d, err
}

// nearRuns says which runs of this machine are named nearly so.
func (a *app) nearRuns(what string) string {
	rows, _, err := operate.Here(a.settings.StateDir, a.settings.RunRoot)
	if err != nil {
		return "" // the name is wrong either way
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

// hint says what may have been meant, of an error that does not say it.
func hint(err error) string {
	var missing *rundir.NoCheckpointError
	if errors.As(err, &missing) {
		return didYouMean(missing.ID, missing.Known)
	}
	return ""
}

// within refuses a word for a subcommand that is none. Cobra does so for the first word of the line only.
func within(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		var names []string
		for _, c := range cmd.Commands() {
			names = append(names, c.Name())
		}
		return asUsage(fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), didYouMean(args[0], names)))
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}
