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
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/rundir"
)

// pageOptions are the flags of a verb that writes an HTML page.
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
	cmd := &cobra.Command{
		Use: "report [RUN]", Short: "Write an HTML report of a run",
		Long: `Write one HTML file that shows the work, costs, results, quality, decisions and errors of a run. The file
needs nothing else, so it can be sent to others. It is made from the run directory, and the lines that changed in
files of a workspace are read from the run's store. No server is needed.`,
	}
	o.flags(cmd)
	return a.onRun(cmd, func(ctx context.Context, d rundir.Dir) error {
		options := report.Options{Next: a.recordedNext(d)}
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

// recordedNext returns the next commands as recorded in the directory, valid on the machine of any reader.
func (a *app) recordedNext(d rundir.Dir) []string {
	claim, err := d.Claim()
	if err != nil {
		return nil
	}
	now, err := d.Now()
	if err != nil {
		return nil
	}
	s := inspection{Run: view.Recorded(now.State)}
	s.Directory, s.Claim, s.Now = claim.RunID, claim, now
	next := slices.DeleteFunc(nextCommands(s), func(c string) bool {
		return strings.Contains(c, " report ") // this page is one
	})
	for i := range next {
		next[i] = strings.ReplaceAll(next[i], program()+" ", "starter ")
	}
	return next
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
