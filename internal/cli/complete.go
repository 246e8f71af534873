package cli

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/records"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// completer returns the candidates for a position on the command line, each followed by a tab and its description.
type completer func(cmd *cobra.Command, args []string) []string

// completions lets the shell complete runs, checkpoints and flag values. No server is asked; what cannot be read is not
// offered.
func (a *app) completions(root *cobra.Command) {
	words := func(all ...string) completer { return func(*cobra.Command, []string) []string { return all } }
	row := func(get func(operations.Row) string) completer {
		return func(cmd *cobra.Command, _ []string) []string { return a.distinct(cmd, get) }
	}
	var sorts []string
	for _, c := range columnNames() {
		sorts = append(sorts, c, c+":desc")
	}
	ofFlag := map[string]completer{
		"status": words(statusWords()...), "sort": words(sorts...), "format": words("md", "json"),
		"pipeline": row(func(r operations.Row) string { return r.Pipeline }),
		"stage":    row(func(r operations.Row) string { return r.Stage }),
		"lineage":  a.runIDs, "follow-up": a.runIDs, "from-run-plan": a.runIDs,
		"from": a.checkpointIDs, "to": a.checkpointIDs, "checkpoint": a.checkpointIDs, "action": a.actionWords,
		"dirty":  words("halt", "include", "exclude", "commit"),
		"policy": words(run.UseRecorded, run.Reexecute, run.RequireHuman),
	}
	var each func(cmd *cobra.Command)
	each = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			var complete func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective)
			switch of, known := ofFlag[f.Name]; {
			case known:
				complete = of.plain
			case f.Name == "output-dir" || f.Name == "source":
				complete = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
					return nil, cobra.ShellCompDirectiveFilterDirs
				}
			case f.Name == "config":
				complete = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
					return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
				}
			default:
				return
			}
			if err := cmd.RegisterFlagCompletionFunc(f.Name, complete); err != nil {
				panic(err) // a flag with two completions
			}
		})
		if takesRun(cmd) {
			cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string,
				cobra.ShellCompDirective) {
				if len(args) >= runsOf(cmd) {
					return nil, cobra.ShellCompDirectiveNoFileComp
				}
				return a.runIDs(cmd, args), cobra.ShellCompDirectiveDefault // or a directory
			}
		}
		for _, c := range cmd.Commands() {
			each(c)
		}
	}
	each(root)
}

// runsOf returns the maximum number of runs that a verb takes.
func runsOf(cmd *cobra.Command) int {
	if strings.HasPrefix(cmd.Use, "remove RUN...") {
		return math.MaxInt
	}
	return 1
}

// takesRun reports whether the usage of a verb names a run.
func takesRun(cmd *cobra.Command) bool {
	words := strings.Fields(cmd.Use)
	return len(words) > 1 && slices.Contains([]string{"RUN", "[RUN]", "RUN...", "RUN-ID"}, words[1])
}

func (c completer) plain(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return c(cmd, args), cobra.ShellCompDirectiveNoFileComp
}

// rows returns the runs of this machine, the newest first.
func (a *app) rows(cmd *cobra.Command) []operations.Row {
	s, err := config.Load(cmd.Flags())
	if err != nil {
		return nil
	}
	a.settings = s
	rows, _, err := operations.Here(s.StateDir, s.RunRoot)
	if err != nil {
		return nil
	}
	slices.SortFunc(rows, func(x, y operations.Row) int { return strings.Compare(y.StartedAt, x.StartedAt) })
	return rows
}

func (a *app) runIDs(cmd *cobra.Command, _ []string) []string {
	var out []string
	for _, r := range a.rows(cmd) {
		status := r.EffectiveStatus.Recorded
		if status == "" {
			status = run.Pending
		}
		out = append(out, fmt.Sprintf("%s\t%s, %s, %s", r.RunID, r.Pipeline, status, here(r.Directory)))
	}
	return out
}

// distinct returns the distinct values of a column.
func (a *app) distinct(cmd *cobra.Command, get func(operations.Row) string) []string {
	var out []string
	for _, r := range a.rows(cmd) {
		if v := get(r); v != "" && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}

// meant returns the run that the command line names so far.
func (a *app) meant(cmd *cobra.Command, args []string) (rundir.Dir, bool) {
	s, err := config.Load(cmd.Flags())
	if err != nil {
		return rundir.Dir{}, false
	}
	dir, _ := cmd.Flags().GetString("output-dir")
	if cmd.Name() == "fork" || cmd.Name() == "replay" {
		dir = "" // it names the new run
	}
	d, err := operations.Find(s.StateDir, named(args, dir), false)
	return d.Dir, err == nil
}

func (a *app) checkpointIDs(cmd *cobra.Command, args []string) []string {
	d, ok := a.meant(cmd, args)
	if !ok {
		return nil
	}
	b, err := records.State(d)
	if err != nil {
		return nil
	}
	var out []string
	for _, c := range slices.Backward(b.Checkpoints) {
		out = append(out, fmt.Sprintf("%s\tpass %d, round %d, %s",
			c.ID, c.AtPassNumber, c.AtPACycle, usd(c.CostAtCheckpoint)))
	}
	return out
}

func (a *app) actionWords(cmd *cobra.Command, args []string) []string {
	d, ok := a.meant(cmd, args)
	if !ok {
		return nil
	}
	now, err := d.Now()
	if err != nil {
		return nil
	}
	q, _ := now.State.Asks()
	var out []string
	for _, action := range q.Actions {
		out = append(out, action+"\t"+q.Meaning(action))
	}
	return out
}
