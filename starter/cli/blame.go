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

	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/store/blame"
)

// BlameReport is `blame --json`: the files without a path, else one file and its lines.
type BlameReport struct {
	Files []BlameFile `json:"files"`
	Lines []BlameLine `json:"lines,omitempty"` // of a text
}

// BlameFile is a file, and who last changed it. Bytes of a path that are no UTF-8 are shown as U+FFFD.
type BlameFile struct {
	Path    string `json:"path"`
	OldPath string `json:"old_path"` // of a renamed file, where it was; else ""
	NewPath string `json:"new_path"` // of a path that is gone by a rename, where it went; else ""
	What    string `json:"what"`     // start, added, changed, mode, renamed or removed
	Origin
}

// Origin is who did something: a turn, somebody by hand, or nobody: then it is as the run began with it.
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
	var asJSON bool
	cmd := &cobra.Command{
		Use: "blame [RUN] [PATH]", Short: "Which turn, role and call last changed each file of a run's workspace, or each line of one",
		Long: `Which turn, role and call last changed each file of a run's workspace; with a path, each line of that file, through edits and renames. What was
deleted is named as deleted. Also while the run is at work. No server is asked or needed.

` + exitCodesHelp,
		Args: between(0, 2),
	}
	cmd.Flags().StringVar(&dir, "output-dir", "", "the run directory, instead of naming the run")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
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
		s, err := operate.OpenSnapshots(cmd.Context(), d)
		if err != nil {
			return err
		}
		return errors.Join(a.showBlame(cmd.Context(), s, args, asJSON), s.Close())
	}
	return cmd
}

func (a *app) showBlame(ctx context.Context, s *operate.Snapshots, args []string, asJSON bool) error {
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
		fmt.Fprintln(a.err, "It is no text: it has no lines to tell of.")
	}
	return a.printFiles(r.Files)
}

// blameOne keeps one file of a report, and adds its lines.
func (a *app) blameOne(ctx context.Context, s *operate.Snapshots, name string, r *BlameReport) (blame.Text, error) {
	var found []BlameFile
	for _, f := range r.Files {
		if f.Path == name {
			found = append(found, f)
		}
	}
	r.Files = found
	text, versions, err := s.Lines(ctx, name)
	if errors.Is(err, fs.ErrNotExist) && len(found) > 0 {
		return text, nil // it was deleted or renamed, and the table says so
	}
	if errors.Is(err, fs.ErrNotExist) {
		return text, asUsage(fmt.Errorf("the run's workspace has never had a file %s; starter blame without a path names all", name))
	}
	for i, l := range text.Lines {
		r.Lines = append(r.Lines, BlameLine{Number: i + 1, Text: strings.ToValidUTF8(l.Text, "�"), Origin: originOf(versions[l.Tree])})
	}
	return text, err
}

func blameFiles(files []blame.File, versions []rundir.Version) []BlameFile {
	out := []BlameFile{}
	for _, f := range files {
		line := BlameFile{
			Path: strings.ToValidUTF8(f.Path, "�"), OldPath: strings.ToValidUTF8(f.From, "�"), NewPath: strings.ToValidUTF8(f.To, "�"),
			What: string(f.Kind), Origin: originOf(versions[f.Tree]),
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

// words are who it was, for people.
func (o Origin) words() (turn, role, call string) {
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
		if f.NewPath != "" && slices.ContainsFunc(files, func(to BlameFile) bool { return to.Path == f.NewPath && to.OldPath == f.Path }) {
			continue // the new path tells of it
		}
		turn, role, call := f.words()
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
		turn, role, call := l.words()
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", turn, role, call, l.Number, strings.ReplaceAll(l.Text, "\t", "    "))
	}
	return w.Flush()
}
