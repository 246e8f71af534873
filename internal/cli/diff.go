package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/git"
	"github.com/passbook-run/passbook/rundir"
)

// DiffReport is the output of `diff --json`.
type DiffReport struct {
	Files []api.ChangedFile `json:"files"`
}

// diffOptions are the flags of diff.
type diffOptions struct {
	stat  bool
	json  bool
	paths []string
}

func (a *app) diff() *cobra.Command {
	var o diffOptions
	cmd := &cobra.Command{
		Use: "diff [RUN]", Short: "Show the changes of a run: to its checkout, its folder or its artifact",
		Long: `Show the changes of a run as a patch: its workspace compared with the start of the run, or its artifact
compared with the seed. This works while the run is open. It needs git, and no server.`,
	}
	o.flags(cmd)
	cmd.PreRunE = func(*cobra.Command, []string) error { return o.oneForm() }
	return a.onRun(cmd, func(ctx context.Context, d rundir.Dir) error { return a.showDiff(ctx, d, o) })
}

func (o *diffOptions) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.stat, "stat", false, "a line per file, and the totals")
	cmd.Flags().BoolVar(&o.json, "json", false, "the changed files as JSON")
	cmd.Flags().StringArrayVar(&o.paths, "path", nil, "only this file or folder of the workspace; may be repeated")
}

func (o *diffOptions) oneForm() error {
	if o.stat && o.json {
		return asUsage(errors.New("--stat and --json exclude each other: use one of them"))
	}
	return nil
}

func (a *app) showDiff(ctx context.Context, d rundir.Dir, o diffOptions) (err error) {
	c, drop, err := api.OpenChanges(ctx, d)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop()) }()
	return a.printComparison(ctx, c, o)
}

func (a *app) printComparison(ctx context.Context, c *git.Comparison, o diffOptions) error {
	switch {
	case o.json:
		changes, err := c.Changes(ctx, o.paths...)
		if err != nil {
			return err
		}
		return a.json(DiffReport{api.ChangedFiles(changes)})
	case o.stat:
		table, err := c.Stat(ctx, o.paths...)
		return a.printDiff(table, err)
	}
	patch, err := c.Patch(ctx, o.paths...)
	return a.printDiff(string(patch), err)
}

// printDiff prints only the patch to standard output.
func (a *app) printDiff(text string, err error) error {
	if err == nil && text == "" {
		fmt.Fprintln(a.err, "Nothing has changed.")
	}
	if err == nil {
		_, err = fmt.Fprint(a.raw, text)
	}
	return err
}
