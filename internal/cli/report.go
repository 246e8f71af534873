package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/report"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/rundir"
)

// pageOptions are the flags of a command that writes an HTML page.
type pageOptions struct {
	out   string
	force bool
}

func (o *pageOptions) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.out, "out", "",
		"file to write; - is standard output (default: _orchestrator/report.html in the run directory)")
	cmd.Flags().BoolVar(&o.force, "force", false, "replace an existing file")
}

func (a *app) report() *cobra.Command {
	var o pageOptions
	var form reportForm
	cmd := &cobra.Command{
		Use: "report [RUN]", Short: "Write an HTML report of a run, or print a record of it",
		Long: `Write one HTML file that shows the work, costs, results, quality, decisions and errors of a run. The file
needs nothing else, so it can be sent to others. It is made from the run directory, and the lines that changed in
files of a workspace are read from the run's store. No server is needed.

With one of these flags, print a part as text instead, or with --json as JSON, from the directory alone:
  --markdown  the task, work, checks, decisions and costs, for a pull request or an audit
  --effects   the ledger of what the run did outside of it: calls, commands, screenshots and deliveries
  --costs     the costs by role, set, round and model
  --quality   the validations, verifier counts and scores`,
	}
	o.flags(cmd)
	form.flags(cmd)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error { return form.one(cmd.Flags().Changed("out") || o.force) }
	return a.onRun(cmd, func(ctx context.Context, d rundir.Dir) error {
		if print := form.chosen(); print != nil {
			return print(a, d, form.json)
		}
		options := report.Options{Next: recordedNext(d)}
		s := operations.OpenContents(ctx, d)
		defer s.Close()
		options.Contents = s.Copy
		var page bytes.Buffer
		if err := report.Write(&page, d, options); err != nil {
			return err
		}
		return a.deliver(page.Bytes(), d.Path(rundir.ReportFile), o)
	})
}

// reportForm is the part of a report that is printed; none: the whole is written as HTML.
type reportForm struct {
	wants [4]bool // of the reportParts
	json  bool
}

// reportParts are the parts of a report that can be printed.
var reportParts = [4]struct {
	name, help string
	print      func(a *app, d rundir.Dir, json bool) error
}{
	{"markdown", "print the record of the run as Markdown", (*app).printEvidence},
	{"effects", "print the ledger of external effects", (*app).printEffects},
	{"costs", "print the costs", func(a *app, d rundir.Dir, json bool) error { return printed(a, d, json, readCosts, a.printCosts) }},
	{"quality", "print validations and scores", func(a *app, d rundir.Dir, json bool) error {
		return printed(a, d, json, readQuality, a.printQuality)
	}},
}

func (f *reportForm) flags(cmd *cobra.Command) {
	for i, p := range reportParts {
		cmd.Flags().BoolVar(&f.wants[i], p.name, false, p.help)
	}
	cmd.Flags().BoolVar(&f.json, "json", false, "print that part as JSON")
}

// one refuses several parts, and JSON without one. filed: a flag is about the file of the page.
func (f *reportForm) one(filed bool) error {
	n := 0
	for _, wanted := range f.wants[1:] {
		if wanted {
			n++
			f.wants[0] = false // Markdown, or a table
		}
	}
	if f.wants[0] {
		n++
	}
	switch {
	case n > 1:
		return asUsage(errors.New("--effects, --costs and --quality exclude each other: use one of them"))
	case n == 0 && f.json:
		return asUsage(errors.New("--json prints a part: add --markdown, --effects, --costs or --quality"))
	case n == 1 && filed:
		return asUsage(errors.New("--out and --force are about the HTML page: leave them out"))
	}
	return nil
}

// chosen returns the function that prints the part; nil: none is.
func (f *reportForm) chosen() func(*app, rundir.Dir, bool) error {
	for i, wanted := range f.wants {
		if wanted {
			return reportParts[i].print
		}
	}
	return nil
}

// printed prints what is read from a run directory.
func printed[T any](a *app, d rundir.Dir, json bool, read func(rundir.Dir) (T, error), print func(T)) error {
	v, err := read(d)
	if err != nil {
		return err
	}
	return show(a, json, v, print)
}

func (a *app) printEvidence(d rundir.Dir, json bool) error {
	e, err := view.ReadRecord(d)
	switch {
	case err != nil:
		return err
	case json:
		return a.json(e)
	}
	return report.Markdown(a.out, e)
}

func (a *app) printEffects(d rundir.Dir, json bool) error {
	l, err := view.ReadEffects(d)
	switch {
	case err != nil:
		return err
	case json:
		return a.json(l)
	}
	return report.EffectsMarkdown(a.out, l)
}

// recordedNext returns the next commands as recorded in the directory, valid on the machine of any reader.
func recordedNext(d rundir.Dir) []string {
	claim, err := d.Claim()
	if err != nil {
		return nil
	}
	now, err := d.Now()
	if err != nil {
		return nil
	}
	s := view.Recorded(now.State)
	s.Directory, s.Claim, s.Now = claim.RunID, claim, now
	return slices.DeleteFunc(shell.Next("starter", s.Next()), func(c string) bool {
		return strings.Contains(c, " report ") // this page is one
	})
}

// deliver writes a page.
func (a *app) deliver(page []byte, name string, o pageOptions) error {
	if o.out == "-" {
		_, err := a.raw.Write(page)
		return err
	}
	if o.out != "" {
		name = o.out
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return err
	}
	if err := replaceable(path, o.force, "a page of Passbook", report.Mark); err != nil {
		return err
	}
	if err := (disk.Disk{}).WriteFile(path, page, 0o644); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "Report: %s (%d KB)\n", path, (len(page)+999)/1000)
	return nil
}

const anotherFile = "Name another file, or replace it: --force"

// replaceable refuses a path that holds anything else. What this program writes there has a mark near its beginning.
func replaceable(path string, force bool, what, mark string) error {
	fi, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case fi.IsDir():
		return &rundir.TargetError{Path: path, Why: "it is a directory", Next: "Name a file"}
	case force:
		return nil
	case !fi.Mode().IsRegular():
		return &rundir.TargetError{Path: path, Why: "it is not a regular file", Next: anotherFile}
	}
	ours, err := hasMark(path, mark)
	if err != nil || ours {
		return err
	}
	return &rundir.TargetError{Path: path, Why: "it is not " + what, Next: anotherFile}
}

// hasMark reports whether a file starts with a mark.
func hasMark(path, mark string) (ours bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	head, err := io.ReadAll(io.LimitReader(f, 1<<12))
	return bytes.Contains(head, []byte(mark)), err
}
