package cli

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/examples"
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
	cmd.Flags().BoolVar(&tiny, "tiny", false, "two sets instead of seven")
	return cmd
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
	fmt.Fprintf(a.out, "and try: %s status %s\n", program(), d.Root)
}
