package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/durable"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/starter/report"
)

// pageOptions are the flags of a verb that writes a page.
type pageOptions struct {
	out      string
	open     bool
	force    bool
	pictures float64
}

func (o *pageOptions) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.out, "out", "", "the file to write; - writes to standard output (default: named like the run, in this folder)")
	cmd.Flags().BoolVar(&o.force, "force", false, "replace another file that is there")
	cmd.Flags().BoolVar(&o.open, "open", false, "show the page in the browser")
	cmd.Flags().Float64Var(&o.pictures, "pictures", report.DefaultPictures/(1<<20), "MB of pictures at most; 0: none")
}

func (o *pageOptions) check() error {
	switch {
	case o.pictures < 0:
		return asUsage(fmt.Errorf("--pictures is a number of megabytes, not %v", o.pictures))
	case o.open && o.out == "-":
		return asUsage(errors.New("--open needs a file: it cannot show what goes to standard output"))
	}
	return nil
}

// options for the page.
func (o *pageOptions) options() report.Options {
	if o.pictures == 0 {
		return report.Options{Pictures: -1}
	}
	return report.Options{Pictures: int64(o.pictures * (1 << 20))}
}

func (a *app) report() *cobra.Command {
	var dir string
	var o pageOptions
	cmd := a.target(&cobra.Command{
		Use: "report [RUN]", Short: "Write a page about a run: summary, charts, pictures, changes, decisions",
		Long: `Write one HTML file that says how a run went: what it did, cost and made, how good that was, what was asked and decided, and what went wrong.
The file needs nothing but itself, so it can be sent to somebody. It is made from the run directory alone; no server is asked or needed.

` + exitCodesHelp,
	}, &dir)
	o.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.check(); err != nil {
			return err
		}
		d, err := a.find(named(args, dir))
		if err != nil {
			return err
		}
		options := o.options()
		options.Next = a.recordedNext(d)
		var page bytes.Buffer
		if err := report.Write(&page, d, options); err != nil {
			return err
		}
		return a.deliver(page.Bytes(), filepath.Base(d.Root)+"-report.html", o)
	}
	return cmd
}

// recordedNext is what to type next, as the directory alone has it, in words that mean the same on the machine of the one who gets the page.
func (a *app) recordedNext(d rundir.Dir) []string {
	claim, err := d.Claim()
	if err != nil {
		return nil
	}
	now, err := d.Now()
	if err != nil {
		return nil
	}
	s := sight{dir: rundir.At(claim.RunID), claim: claim, now: now}
	s.stands.Status, s.stands.Recorded = now.State.Status, now.State.Status
	next := nextCommands(s)
	for i := range next {
		next[i] = strings.ReplaceAll(next[i], program()+" ", "starter ")
	}
	return next
}

// deliver writes a page where it is wanted, and shows it.
func (a *app) deliver(page []byte, name string, o pageOptions) error {
	if o.out == "-" {
		_, err := a.out.Write(page)
		return err
	}
	if o.out != "" {
		name = o.out
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return err
	}
	if err := replaceable(path, o.force); err != nil {
		return err
	}
	if err := (durable.Disk{}).WriteFile(path, page, 0o644); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "Report: %s (%.1f MB)\n", path, float64(len(page))/1e6)
	if !o.open {
		return nil
	}
	return show(path)
}

// replaceable refuses a path at which something else is than a page that this program wrote.
func replaceable(path string, force bool) error {
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
		return &rundir.TargetError{Path: path, Why: "it is not a regular file", Next: "Name another file, or replace it: --force"}
	}
	ours, err := isPage(path)
	if err != nil || ours {
		return err
	}
	return &rundir.TargetError{Path: path, Why: "it is not a page that Passbook wrote", Next: "Name another file, or replace it: --force"}
}

// isPage looks for the mark of our pages at the beginning of a file.
func isPage(path string) (ours bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	head, err := io.ReadAll(io.LimitReader(f, 1<<12))
	return bytes.Contains(head, []byte(report.Mark)), err
}

// show opens a file in the user's browser, and does not wait for it.
func show(path string) error {
	program, args := "xdg-open", []string{path}
	switch {
	case os.Getenv("BROWSER") != "":
		program = os.Getenv("BROWSER")
	case runtime.GOOS == "darwin":
		program = "open"
	case runtime.GOOS == "windows":
		program, args = "rundll32", []string{"url.dll,FileProtocolHandler", path}
	}
	cmd := exec.Command(program, args...)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("no browser could be started (%w): open %s yourself, or set BROWSER", err, path)
	}
	return cmd.Process.Release()
}
