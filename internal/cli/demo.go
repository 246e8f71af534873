package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/examples"
	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/rundir"
)

func (a *app) demo() *cobra.Command {
	var dir string
	var tiny bool
	cmd := &cobra.Command{
		Use: "demo", Short: "Run the example pipeline offline with the built-in agent", Args: cobra.NoArgs,
		Long: `Run the corpus example: start an embedded Temporal server and a worker, make 56 passes, and run the hardening
cycles with real screenshots. The agent is built in, so no account is needed and nothing is paid. The run directory
stays.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			name := "pipeline.yaml"
			if tiny {
				name = "corpus-tiny.yaml"
			}
			folder, err := fs.Sub(examples.Files, "corpus")
			if err != nil {
				return err
			}
			def, err := operations.Load(folder, name, path.Join("examples/corpus", name))
			if err != nil {
				return err
			}
			if dir == "" {
				dir = filepath.Join(a.settings.RunRoot, "demo-"+time.Now().Format("20060102-150405"))
			}
			if err := a.startDemo(cmd.Context(), def, dir); err != nil {
				return err
			}
			a.tour(dir)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "output-dir", "", "the run directory (default: a new one under run_root)")
	cmd.AddCommand(a.demoTurns())
	cmd.Flags().BoolVar(&tiny, "tiny", false, "two sets instead of seven")
	return cmd
}

// startDemo starts a run of the built-in agent, which a host without sandboxes may run, too.
func (a *app) startDemo(ctx context.Context, def operations.Definition, dir string) error {
	if host := sandbox.Examine(); host.Problem != "" && a.settings.Sandbox.Mode == "" {
		fmt.Fprintf(a.err, "No sandbox is possible here (%s): the demo runs its built-in agent without one.\n", host.Problem)
		a.settings.Sandbox.Mode = sandbox.None
		if err := os.Setenv("PASSBOOK_SANDBOX_MODE", sandbox.None); err != nil { // for the worker
			return err
		}
	}
	return a.start(ctx, def, dir, false)
}

// demoTurns is the demo of a run that changes a tree.
func (a *app) demoTurns() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "turns", Short: "Build a small program in eight turns with the built-in agent, offline",
		Args: cobra.NoArgs,
		Long: `Run the example turns: the built-in agent builds a small shell program in place, turn by turn, until it
reports that it is done and the tests pass. Then show the snapshots of the turns and the last change of each file. The
source project is created beside the run directory; both stay.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				dir = filepath.Join(a.settings.RunRoot, "demo-turns-"+time.Now().Format("20060102-150405"))
			}
			if err := projector.Usable(rundir.At(dir)); err != nil { // before the project is created
				return err
			}
			def, err := exampleOfTurns(dir + "-project")
			if err != nil {
				return err
			}
			if err := a.startDemo(cmd.Context(), def, dir); err != nil {
				return err
			}
			return a.tourTurns(dir)
		},
	}
	cmd.Flags().StringVar(&dir, "output-dir", "", "the run directory (default: a new one under run_root)")
	return cmd
}

// exampleOfTurns loads the example and creates its project, unless the path exists.
func exampleOfTurns(project string) (operations.Definition, error) {
	folder, err := fs.Sub(examples.Files, "turns")
	if err != nil {
		return operations.Definition{}, err
	}
	def, err := operations.Load(folder, "pipeline.yaml", "examples/turns/pipeline.yaml")
	if err != nil {
		return def, err
	}
	def.WorkOn = project
	if _, err := os.Stat(project); !errors.Is(err, fs.ErrNotExist) {
		return def, err
	}
	files, err := fs.Sub(folder, "project")
	if err != nil {
		return def, err
	}
	return def, os.CopyFS(project, files)
}

// tourTurns shows the results of turns.
func (a *app) tourTurns(dir string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	d := rundir.At(abs)
	lines, err := api.SnapshotsOf(d)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "\nThe turns (%s snapshot list %s):\n\n", program(), shell.Quote(d.Root))
	a.printSnapshots(lines)
	fmt.Fprintf(a.out, "\nThe program is in %s\n", d.Path(layout.WorkspaceDir))
	fmt.Fprintf(a.out, "and try: %s snapshot diff %s 4\n", program(), shell.Quote(d.Root))
	return nil
}

// tour lists the files to read first.
func (a *app) tour(dir string) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		abs = dir
	}
	d := rundir.At(abs)
	fmt.Fprintf(a.out, "\nThe run directory is %s\n", d.Root)
	const screenshots = "_orchestrator/screenshots"
	pictures, err := fs.Glob(os.DirFS(d.Path(screenshots)), "*/*.png")
	for _, f := range []struct{ name, about string }{
		{"artifact.html", "the finished page"},
		{"events.jsonl", "every transition, one line each"},
		{"meta.json", "a summary of the run, for tools"},
		{"_orchestrator/state.json", "every pass record"},
		{screenshots, "the pictures that the auditors judged"},
		{"_orchestrator/checkpoints", "named checkpoints to revert to"},
	} {
		if f.name == screenshots && err == nil && len(pictures) == 0 { // the demo ran without a browser
			continue
		}
		fmt.Fprintf(a.out, "  %-27s %s\n", f.name, f.about)
	}
	fmt.Fprintf(a.out, "and try: %s status %s\n", program(), shell.Quote(d.Root))
}
