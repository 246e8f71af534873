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
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/rundir"
)

func (a *app) demo() *cobra.Command {
	var dir string
	var tiny bool
	cmd := &cobra.Command{
		Use: "demo", Short: "Run the whole example pipeline with the built-in agent, offline", Args: cobra.NoArgs,
		Long: `Run the corpus example from nothing: an embedded Temporal server, a worker, 56 passes and the hardening cycles with real
screenshots. No account is needed and nothing is paid: the agent is built in. The run directory stays, to look at.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			name := "pipeline.yaml"
			if tiny {
				name = "corpus-tiny.yaml"
			}
			folder, err := fs.Sub(examples.Files, "corpus")
			if err != nil {
				return err
			}
			def, err := operate.Load(folder, name, path.Join("examples/corpus", name))
			if err != nil {
				return err
			}
			if dir == "" {
				dir = filepath.Join(a.settings.RunRoot, "demo-"+time.Now().Format("20060102-150405"))
			}
			if err := a.start(cmd.Context(), def, dir, false); err != nil {
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

// demoTurns is the demo of a run that works on a tree.
func (a *app) demoTurns() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "turns", Short: "Build a small program in eight turns with the built-in agent, offline", Args: cobra.NoArgs,
		Long: `Run the example turns from nothing: the built-in agent builds a small shell program turn by turn, in place, until it says that it is done and
the tests agree. Then the snapshots of its turns, and who last changed which file. The project that the run starts from is laid down beside
the run directory; both stay.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				dir = filepath.Join(a.settings.RunRoot, "demo-turns-"+time.Now().Format("20060102-150405"))
			}
			if err := rundir.At(dir).Usable(); err != nil { // before the project is laid down
				return err
			}
			def, err := exampleOfTurns(dir + "-project")
			if err != nil {
				return err
			}
			if err := a.start(cmd.Context(), def, dir, false); err != nil {
				return err
			}
			return a.tourTurns(cmd.Context(), dir)
		},
	}
	cmd.Flags().StringVar(&dir, "output-dir", "", "the run directory (default: a new one under run_root)")
	return cmd
}

// exampleOfTurns reads the example, and lays its project down at a path where nothing is yet.
func exampleOfTurns(project string) (operate.Definition, error) {
	folder, err := fs.Sub(examples.Files, "turns")
	if err != nil {
		return operate.Definition{}, err
	}
	def, err := operate.Load(folder, "pipeline.yaml", "examples/turns/pipeline.yaml")
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

// tourTurns shows what turns leave.
func (a *app) tourTurns(ctx context.Context, dir string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	d := rundir.At(abs)
	lines, err := readSnapshots(d)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "\nThe turns (%s snapshot list %s):\n\n", program(), shell.Quote(d.Root))
	a.printSnapshots(lines)
	s, err := operate.OpenSnapshots(ctx, d)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "\nWho last changed what (%s blame %s):\n\n", program(), shell.Quote(d.Root))
	if err := errors.Join(a.showBlame(ctx, s, nil, false), s.Close()); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "\nThe program is in %s\n", d.Path(rundir.WorkspaceDir))
	fmt.Fprintf(a.out, "and try: %s blame %s bin/ledger\n", program(), shell.Quote(d.Root))
	fmt.Fprintf(a.out, "         %s snapshot diff %s 4\n", program(), shell.Quote(d.Root))
	return nil
}

// tour says what there is to see.
func (a *app) tour(dir string) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		abs = dir
	}
	d := rundir.At(abs)
	fmt.Fprintf(a.out, "\nLook into %s\n", d.Root)
	for _, f := range []struct{ name, about string }{
		{"artifact.html", "the page as the passes left it"},
		{"events.jsonl", "every transition, one line each"},
		{"meta.json", "the run at a glance, for tools"},
		{"_orchestrator/state.json", "every pass record"},
		{"_orchestrator/screenshots", "what the auditors saw"},
		{"_orchestrator/checkpoints", "named places to go back to"},
	} {
		fmt.Fprintf(a.out, "  %-27s %s\n", f.name, f.about)
	}
	fmt.Fprintf(a.out, "and try: %s status %s\n", program(), shell.Quote(d.Root))
}
