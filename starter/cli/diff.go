package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/repo"
	"github.com/passbook-run/passbook/rundir"
)

// DiffReport is `diff --json`.
type DiffReport struct {
	Files []DiffFile `json:"files"`
}

// DiffFile is one file that a run has changed. Bytes of a path that are no UTF-8 are shown as U+FFFD.
type DiffFile struct {
	Path    string `json:"path"`
	OldPath string `json:"old_path"` // of a renamed file; else ""
	Kind    string `json:"kind"`     // added, removed, changed, renamed or mode
	Added   int    `json:"added"`    // lines; 0 of a binary file
	Removed int    `json:"removed"`
	Binary  bool   `json:"binary"`
}

// diffOptions are the flags of diff.
type diffOptions struct {
	dir   string
	stat  bool
	json  bool
	paths []string
}

func (a *app) diff() *cobra.Command {
	var o diffOptions
	cmd := a.target(&cobra.Command{
		Use: "diff [RUN]", Short: "What a run has changed: in its git checkout, its folder, or its artifact",
		Long: `What a run has changed, as a patch: its workspace against what it began with, or its artifact against the seed. Also while it is at
work. Needs git; no server is asked.

` + exitCodesHelp,
	}, &o.dir)
	o.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.oneForm(); err != nil {
			return err
		}
		d, err := a.find(named(args, o.dir))
		if err != nil {
			return err
		}
		return a.showDiff(cmd.Context(), d, o)
	}
	return cmd
}

func (o *diffOptions) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.stat, "stat", false, "a line for each file, and the sums")
	cmd.Flags().BoolVar(&o.json, "json", false, "the changed files as JSON")
	cmd.Flags().StringArrayVar(&o.paths, "path", nil, "only this file or folder of the workspace; may be given again")
}

func (o *diffOptions) oneForm() error {
	if o.stat && o.json {
		return asUsage(errors.New("--stat and --json are two forms of the answer: give one"))
	}
	return nil
}

func (a *app) showDiff(ctx context.Context, d rundir.Dir, o diffOptions) (err error) {
	c, drop, err := operate.Compare(ctx, d)
	if errors.Is(err, rundir.ErrNoArtifact) {
		return asUsage(errors.New("the run has neither a workspace nor an artifact: there is nothing to compare"))
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop()) }()
	return a.printComparison(ctx, c, o)
}

func (a *app) printComparison(ctx context.Context, c *repo.Comparison, o diffOptions) error {
	switch {
	case o.json:
		changes, err := c.Changes(ctx, o.paths...)
		if err != nil {
			return err
		}
		return a.json(diffReport(changes))
	case o.stat:
		table, err := c.Stat(ctx, o.paths...)
		return a.printDiff(table, err)
	}
	patch, err := c.Patch(ctx, o.paths...)
	return a.printDiff(string(patch), err)
}

// printDiff keeps standard output a patch, or empty.
func (a *app) printDiff(text string, err error) error {
	if err == nil && text == "" {
		fmt.Fprintln(a.err, "Nothing has changed.")
	}
	if err == nil {
		_, err = fmt.Fprint(a.out, text)
	}
	return err
}

func diffReport(changes []repo.Change) DiffReport {
	r := DiffReport{Files: []DiffFile{}}
	for _, c := range changes {
		r.Files = append(r.Files, DiffFile{
			Path: strings.ToValidUTF8(c.Path, "�"), OldPath: strings.ToValidUTF8(c.OldPath, "�"), Kind: string(c.Kind), Added: c.Added, Removed: c.Removed, Binary: c.Binary,
		})
	}
	return r
}
