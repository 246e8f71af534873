// Package cli is the command line of the starter: thin verbs over the run directory (offline) or a run (live). Every verb takes a run's id, a
// directory, or --output-dir, alike.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/agent/scripted"
	"github.com/passbook-run/passbook/config"
)

// ScriptedVerb is the hidden verb that is the built-in agent. The worker has it too.
const ScriptedVerb = "scripted-agent"

// app is one invocation.
type app struct {
	in       io.Reader
	out, err io.Writer
	settings config.Settings
	read     sync.Once // what a person types is read by one, whoever asks
	lines    chan string
}

// Main runs the command line and gives the exit code.
func Main(args []string, in io.Reader, out, errw io.Writer) int {
	if len(args) > 0 && args[0] == ScriptedVerb {
		return scripted.Main(in, out, errw, os.Getenv)
	}
	a := &app{in: in, out: out, err: errw}
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	if err != nil && !errors.As(err, new(quiet)) {
		fmt.Fprintln(errw, "Error:", err)
	}
	return exitCode(err)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "starter",
		Short: "Durable multi-pass agent pipelines on Temporal",
		Long: `Passbook runs pipelines of agent calls for hours or days. A run survives closed lids, lost networks and killed processes;
an answered call is never paid for twice. Everything about a run lies in its directory and can be read without a server.

` + exitCodesHelp,
		SilenceErrors: true, SilenceUsage: true, Version: version(),
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			s, err := config.Load(cmd.Flags())
			a.settings = s
			return asUsage(err)
		},
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return asUsage(err) })
	config.Flags(root.PersistentFlags())
	root.AddCommand(a.demo(), a.run(), a.plan(), a.list(), a.status(), a.diagnose(), a.pause(), a.resume(), a.decide(), a.budget(), a.check(), a.repairState(), a.rebuild(), a.revert(), a.replay(), a.fork(), a.cancel(), a.lineage(),
		a.attachTo(), a.watch(), a.logs(), a.checkpoints(), a.costReport(), a.qualityReport(), a.report(), a.compare(), a.diff(), a.snapshot(), a.blame(), a.evidence(), a.promote(), a.store(),
		a.server(), a.worker(), a.doctor(), a.config(), a.version())
	return root
}

// version is the build's.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "devel"
	}
	return info.Main.Version
}

// program is how this program was called, so that what it says to type next can be typed.
func program() string {
	if strings.HasPrefix(filepath.Base(os.Args[0]), "starter") {
		return os.Args[0]
	}
	return "starter"
}

// who is at work, for the journal.
func who() string {
	u, err := user.Current()
	if err != nil {
		return "unknown"
	}
	return u.Username
}

// target adds the ways to name a run.
func (a *app) target(cmd *cobra.Command, dir *string) *cobra.Command {
	cmd.Flags().StringVar(dir, "output-dir", "", "the run directory, instead of naming the run")
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 1 || (len(args) == 1 && *dir != "") {
			return asUsage(errors.New("name one run: an id, a directory, or --output-dir DIR"))
		}
		return nil
	}
	return cmd
}

func named(args []string, dir string) string {
	if dir != "" || len(args) == 0 {
		return dir
	}
	return args[0]
}
