package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// onRun completes a command on one run, which is named by its id, its directory or --output-dir.
func (a *app) onRun(cmd *cobra.Command, do func(ctx context.Context, d rundir.Dir) error) *cobra.Command {
	target := runFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name := target(args)
		if err := a.named(cmd, name); err != nil {
			return err
		}
		d, err := a.find(name)
		if newest, ok := a.newestOf(cmd, name); err != nil && ok {
			d, err = newest, nil
		}
		if err != nil {
			return err
		}
		return do(cmd.Context(), d)
	}
	return cmd
}

// onNamed completes a command on one run for an operation, which gets the name of the run.
func (a *app) onNamed(cmd *cobra.Command, do func(ctx context.Context, name string) error) *cobra.Command {
	target := runFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name := target(args)
		if err := a.named(cmd, name); err != nil {
			return err
		}
		return do(cmd.Context(), cmp.Or(name, "."))
	}
	return cmd
}

// host is this program, for operations.
func (a *app) host() api.Host {
	return api.Host{
		Settings: a.settings, Secrets: a.secrets, Trust: a.trust, Program: program(), Suggest: a.nearRuns,
		Clock: func() run.Clock { return clock(time.Now()) }, Flag: flagOf,
		Connect: func(ctx context.Context) (operations.Operator, func(), error) {
			s, err := a.connect(ctx, true)
			if err != nil {
				return operations.Operator{}, nil, err
			}
			return s.Operator, func() { s.Close() }, nil
		},
	}
}

// flagOf returns the flag of an input of an operation.
func flagOf(key string) string {
	if key == "budget_usd" { // of fork
		key = "budget"
	}
	return "--" + strings.ReplaceAll(key, "_", "-")
}

// on is a host whose operations use a connection, which stays open.
func (s *session) on(h api.Host) api.Host {
	h.Connect = func(context.Context) (operations.Operator, func(), error) { return s.Operator, func() {}, nil }
	return h
}

// offline makes a command that reads a run directory and prints the result as text or JSON.
func offline[T any](a *app, use, short string, read func(rundir.Dir) (T, error), print func(T)) *cobra.Command {
	cmd := &cobra.Command{Use: use + " [RUN]", Short: short, Long: short + ". No server is needed."}
	asJSON := jsonFlag(cmd)
	return a.onRun(cmd, func(_ context.Context, d rundir.Dir) error {
		v, err := read(d)
		if err != nil {
			return err
		}
		return show(a, *asJSON, v, print)
	})
}

// runFlag adds the ways to name one run, and returns the name that was given: empty, an id or a directory.
func runFlag(cmd *cobra.Command) func(args []string) string {
	dir := cmd.Flags().String("output-dir", "", "the run directory, instead of naming the run")
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 1 || (len(args) == 1 && *dir != "") {
			return asUsage(errors.New("name one run: an id, a directory, or --output-dir DIR"))
		}
		return nil
	}
	return func(args []string) string { return nameIn(args, *dir) }
}

func nameIn(args []string, dir string) string {
	if dir != "" || len(args) == 0 {
		return dir
	}
	return args[0]
}

// exact are the commands that need the name of their run: they end it, or replace what it has.
var exact = []string{"cancel", "remove", "revert", "repair-state"}

// maxCandidates is the number of runs that are listed for a command without the name of one.
const maxCandidates = 10

// named refuses a command that needs the name of its run and has none, and lists the runs of this host, the newest
// first.
func (a *app) named(cmd *cobra.Command, name string) error {
	if name != "" || !slices.Contains(exact, cmd.Name()) {
		return nil
	}
	rows, _, err := operations.Here(a.settings.StateDir, a.settings.RunRoot)
	if err != nil {
		return err
	}
	slices.SortFunc(rows, func(x, y operations.Row) int { return cmp.Compare(y.StartedAt, x.StartedAt) })
	text := "name the run to " + cmd.Name() + ": its id or its directory"
	for _, r := range rows[:min(len(rows), maxCandidates)] {
		text += fmt.Sprintf("\n  %.8s  %s, %s: %s", r.RunID, r.Pipeline, r.EffectiveStatus.Recorded, run.Cut(run.OneLine(r.Task), 60))
	}
	return asUsage(errors.New(text))
}

// newestOf returns the newest run of a pipeline that is named instead of a run, for a command that only reads.
func (a *app) newestOf(cmd *cobra.Command, pipeline string) (d rundir.Dir, ok bool) {
	row := slices.IndexFunc(commands(), func(c command) bool { return c.name == cmd.Name() && c.reads })
	if pipeline == "" || row < 0 {
		return d, false
	}
	rows, _, err := operations.Here(a.settings.StateDir, a.settings.RunRoot)
	if err != nil {
		return d, false
	}
	newest := ""
	for _, r := range rows {
		if r.Pipeline == pipeline && r.Directory != "" && r.StartedAt > newest {
			newest, d, ok = r.StartedAt, rundir.At(r.Directory), true
		}
	}
	d.Trust = a.trust
	return d, ok
}

// atHome returns the claim of a run directory, unless the directory is a copy.
func (a *app) atHome(d rundir.Dir) (run.Claim, error) {
	claim, err := d.Claim()
	if err == nil {
		err = operations.AtHome(a.settings.StateDir, claim, d)
	}
	return claim, err
}

func jsonFlag(cmd *cobra.Command) *bool { return cmd.Flags().Bool("json", false, "print JSON") }

// show prints v as JSON, or as text with print.
func show[T any](a *app, asJSON bool, v T, print func(T)) error {
	if asJSON {
		return a.json(v)
	}
	print(v)
	return nil
}
