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
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/activities"
	"github.com/passbook-run/passbook/agent/scripted"
	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/redact"
	"github.com/passbook-run/passbook/supervisor"
	"github.com/passbook-run/passbook/volume"
)

// ScriptedVerb is the hidden verb that is the built-in agent. The worker has it too.
const ScriptedVerb = "scripted-agent"

// app is one invocation.
type app struct {
	in       io.Reader
	out      io.Writer
	err      *outlet
	settings config.Settings
	read     sync.Once // what a person types is read by one, whoever asks
	lines    chan string
	unkept   sync.Once        // the warning that there is no keeper
	secrets  *redact.Redactor // what is hidden in what is written about the work
}

// Main runs the command line and gives the exit code.
func Main(args []string, in io.Reader, out, errw io.Writer) int {
	if len(args) > 0 && args[0] == ScriptedVerb {
		return scripted.Main(in, out, errw, os.Getenv)
	}
	if len(args) > 0 && args[0] == supervisor.Verb { // where the smaller program is missing
		return supervisor.Main(args[1:])
	}
	a := &app{in: in, out: out, err: &outlet{to: errw}}
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	if err != nil && !errors.As(err, new(quiet)) {
		fmt.Fprintf(errw, "Error: %s\n", asCalled(a.secrets.Text(volume.Explain(err).Error())+hint(err), program(), root.Commands()))
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
			var err error
			if a.settings, err = config.Load(cmd.Flags()); err == nil {
				a.secrets, err = activities.NewRedactor(a.settings, os.Environ())
			}
			return asUsage(err)
		},
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(unknownFlag)
	config.Flags(root.PersistentFlags())
	root.AddCommand(a.demo(), a.run(), a.plan(), a.list(), a.status(), a.diagnose(), a.pause(), a.resume(), a.decide(), a.budget(), a.check(), a.repairState(), a.rebuild(), a.revert(), a.replay(), a.fork(), a.cancel(), a.remove(), a.lineage(),
		a.attachTo(), a.watch(), a.logs(), a.checkpoints(), a.costReport(), a.qualityReport(), a.report(), a.compare(), a.diff(), a.snapshot(), a.blame(), a.evidence(), a.promote(), a.store(),
		a.schedule(), a.server(), a.worker(), a.doctor(), a.config(), a.codec(), a.version())
	a.completions(root)
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

// program is how this program was called, so that what it says to type next can be typed: quoted, where a shell needs it.
func program() string {
	if strings.HasPrefix(filepath.Base(os.Args[0]), "starter") {
		return shell.Quote(os.Args[0])
	}
	return "starter"
}

var mentioned = regexp.MustCompile("(^|[\\s(`\"'])starter ([a-z][a-z-]*)")

// asCalled is a message of the layers below, which do not know how this program was called: its verbs can be typed as they stand there.
func asCalled(text, program string, verbs []*cobra.Command) string {
	return mentioned.ReplaceAllStringFunc(text, func(found string) string {
		m := mentioned.FindStringSubmatch(found)
		if !slices.ContainsFunc(verbs, func(c *cobra.Command) bool { return c.Name() == m[2] }) {
			return found
		}
		return m[1] + program + " " + m[2]
	})
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
