package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/examples"
	"github.com/passbook-run/passbook/internal/operations"
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
				dir = def.RunDir(cmd.Context(), a.settings.RunRoot, "demo-"+time.Now().Format("20060102-150405"))
			}
			if host := sandbox.Examine(); host.Problem != "" && a.settings.Sandbox.Mode == "" {
				fmt.Fprintf(a.err, "No sandbox is possible here (%s): the demo runs its built-in agent without one.\n", host.Problem)
				a.settings.Sandbox.Mode = sandbox.None
				if err := os.Setenv("PASSBOOK_SANDBOX_MODE", sandbox.None); err != nil { // for the worker
					return err
				}
			}
			if err := a.start(cmd.Context(), def, dir, false); err != nil {
				return err
			}
			a.tour(dir)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "output-dir", "", "the run directory (default: a new one under run_root)")
	cmd.Flags().BoolVar(&tiny, "tiny", false, "two sets instead of seven")
	return cmd
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
