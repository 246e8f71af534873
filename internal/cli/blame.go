package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/store/blame"
	"github.com/passbook-run/passbook/rundir"
)

// BlameReport is the output of `blame --json`: all files, or with a path one file and its lines.
type BlameReport struct {
	Files []BlameFile `json:"files"`
	Lines []BlameLine `json:"lines,omitempty"` // of a text
}

// BlameFile is a file and the origin of its last change. Bytes of a path that are not UTF-8 are shown as U+FFFD.
type BlameFile struct {
	Path    string `json:"path"`
	OldPath string `json:"old_path"` // of a renamed file: its previous path; else ""
	NewPath string `json:"new_path"` // of a path that was renamed: its new path; else ""
	What    string `json:"what"`     // start, added, changed, mode, renamed or removed
	Origin
}

// Origin is the cause of a change: a turn, an edit by hand, or the start of the run.
type Origin struct {
	Turn  int    `json:"turn"`  // 0: the start
	Cause string `json:"cause"` // start, turn or edited
	Role  string `json:"role"`
	Call  string `json:"call"`
}

// BlameLine is one line of a text.
type BlameLine struct {
	Number int    `json:"number"`
	Text   string `json:"text"`
	Origin
}

func (a *app) blame() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "blame [RUN] [PATH]", Short: "Show which turn last changed each file or line of a workspace",
		Long: `Show which turn, role and call last changed each file of a run's workspace, or, with a path, each line of
that file, through edits and renames. Deleted files are listed as deleted. This works while the run is open. No server
is needed.`,
		Args: between(0, 2),
	}
	cmd.Flags().StringVar(&dir, "output-dir", "", "the run directory, instead of naming the run")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if dir == "" && len(args) > 0 {
			dir, args = args[0], args[1:]
		}
		if len(args) > 1 {
			return asUsage(errors.New("name one path"))
		}
		d, err := a.find(dir)
		if err != nil {
			return err
		}
		s, err := operations.OpenSnapshots(cmd.Context(), projector.Dir{Dir: d})
		if err != nil {
			return err
		}
		return a.showBlame(cmd.Context(), s, args, *asJSON)
	}
	return cmd
}

func (a *app) showBlame(ctx context.Context, s *operations.Snapshots, args []string, asJSON bool) error {
	files, versions, err := s.Blame(ctx)
	if err != nil {
		return err
	}
	r := BlameReport{Files: blameFiles(files, versions)}
	var paths []string
	binary := false
	if len(args) == 1 {
		name := path.Clean(filepath.ToSlash(args[0]))
		text, err := a.blameOne(ctx, s, name, &r)
		if err != nil {
			return err
		}
		paths, binary = text.Paths, text.Binary
	}
	switch {
	case asJSON:
		return a.json(r)
	case r.Lines != nil:
		return a.printLines(r, paths)
	}
	if binary {
		fmt.Fprintln(a.err, "The file is not text, so it has no lines to show.")
	}
	return a.printFiles(r.Files)
}

// blameOne keeps one file of a report, and adds its lines.
func (a *app) blameOne(ctx context.Context, s *operations.Snapshots, name string, r *BlameReport) (blame.Text, error) {
	var found []BlameFile
	for _, f := range r.Files {
		if f.Path == name {
			found = append(found, f)
		}
	}
	r.Files = found
	text, versions, err := s.Lines(ctx, name)
	if errors.Is(err, fs.ErrNotExist) && len(found) > 0 {
		return text, nil // deleted or renamed, as the table shows
	}
	if errors.Is(err, fs.ErrNotExist) {
		return text, asUsage(fmt.Errorf("the workspace has never had a file %s; to list all files, leave out the path",
			name))
	}
	for i, l := range text.Lines {
		text := strings.ToValidUTF8(l.Text, "�")
		r.Lines = append(r.Lines, BlameLine{Number: i + 1, Text: text, Origin: originOf(versions[l.Tree])})
	}
	return text, err
}

func blameFiles(files []blame.File, versions []rundir.Version) []BlameFile {
	out := []BlameFile{}
	for _, f := range files {
		line := BlameFile{
			Path: strings.ToValidUTF8(f.Path, "�"), OldPath: strings.ToValidUTF8(f.From, "�"),
			NewPath: strings.ToValidUTF8(f.To, "�"),
			What:    string(f.Kind), Origin: originOf(versions[f.Tree]),
		}
		if f.Kind == "" {
			line.What = rundir.FromStart
		}
		out = append(out, line)
	}
	return out
}

func originOf(v rundir.Version) Origin {
	return Origin{Turn: v.Turn, Cause: v.Cause, Role: v.Role, Call: v.Call}
}

// columns returns the origin as columns of a table.
func (o Origin) columns() (turn, role, call string) {
	switch o.Cause {
	case rundir.FromTurn:
		return fmt.Sprint(o.Turn), o.Role, callOf(o.Call)
	case rundir.FromEdit:
		return fmt.Sprintf("after %d", o.Turn), "by hand", "-"
	}
	return "start", "-", "-"
}

func (a *app) printFiles(files []BlameFile) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TURN\tROLE\tCALL\tWHAT\tPATH")
	for _, f := range files {
		renamed := func(to BlameFile) bool { return to.Path == f.NewPath && to.OldPath == f.Path }
		if f.NewPath != "" && slices.ContainsFunc(files, renamed) {
			continue // shown with the new path
		}
		turn, role, call := f.columns()
		what, name := f.What, f.Path
		switch {
		case f.NewPath != "":
			name = f.Path + " -> " + f.NewPath
		case f.OldPath != "":
			name = f.OldPath + " -> " + f.Path
		case what == "removed":
			what = "deleted"
		case what == rundir.FromStart:
			what = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", turn, role, call, what, name)
	}
	return w.Flush()
}

func (a *app) printLines(r BlameReport, paths []string) error {
	if len(paths) > 0 {
		fmt.Fprintf(a.out, "%s was called %s before\n", r.Files[0].Path, strings.Join(paths, ", and "))
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, l := range r.Lines {
		turn, role, call := l.columns()
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", turn, role, call, l.Number, strings.ReplaceAll(l.Text, "\t", "    "))
	}
	return w.Flush()
}
