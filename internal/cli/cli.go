// Package cli is the command line of the starter. Verbs read a run directory (offline) or send requests to a run
// (live). Every verb on a run takes its id, its directory or --output-dir.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/build"
	"github.com/passbook-run/passbook/internal/lazyregexp"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/redact"
	"github.com/passbook-run/passbook/internal/secrets"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/internal/terminal"
	"github.com/passbook-run/passbook/internal/volume"
)

// app is one invocation.
type app struct {
	in       io.Reader
	out      io.Writer // for text: escapes what could control a terminal
	raw      io.Writer // for patches, pages and logs: unchanged unless it is a terminal
	err      *outlet
	settings config.Settings
	read     sync.Once // starts the one reader of in
	lines    chan string
	trust    bool      // the user trusts received run directories
	noKeeper sync.Once // prints the warning that there is no keeper
	started  *Started  // the run of a verb that starts or resumes one
	verbs    []*cobra.Command
	secrets  *redact.Redactor // hides secrets in what is printed about the work
}

// Main runs the command line and returns the exit code.
func Main(args []string, in io.Reader, out, errw io.Writer) int {
	safe := terminal.NewWriter(out)
	a := &app{in: in, out: safe, raw: out, err: &outlet{to: errw}}
	if name := program(); filepath.Base(os.Args[0]) == packaged {
		a.out, errw = &renamed{safe, name, a}, &renamed{errw, name, a}
		a.err = &outlet{to: errw}
	}
	if widthOf(out) > 0 {
		a.raw = safe
	}
	root := a.root()
	a.verbs = root.Commands()
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	if flushed := safe.Flush(); err == nil {
		err = flushed
	}
	if err != nil && !errors.As(err, new(silentExit)) {
		text := a.secrets.Text(volume.Message(err)) + hint(err, a.settings.StateDir)
		fmt.Fprintf(errw, "Error: %s\n", terminal.Safe(asCalled(text, program(), a.verbs)))
	}
	return exitCode(err)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "starter",
		Short: "Durable multi-pass agent pipelines on Temporal",
		Long: `Passbook runs pipelines of agent calls for hours or days. A run survives a closed laptop lid, network loss
and killed processes, and pays for an answered call only once. Its directory records everything, and can be read
without a server.

` + exitCodesHelp,
		SilenceErrors: true, SilenceUsage: true, Version: build.Version(),
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if a.settings, err = config.Load(cmd.Flags()); err == nil {
				a.secrets, err = secrets.New(a.settings, os.Environ())
			}
			cmd.SetContext(operations.WithStores(cmd.Context(), operations.Stores{Settings: a.settings,
				Trust: a.trust}))
			if err != nil {
				return asUsage(err)
			}
			return a.openState(cmd)
		},
	}
	if filepath.Base(os.Args[0]) == packaged {
		root.Use = packaged
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(unknownFlag)
	config.Flags(root.PersistentFlags())
	root.PersistentFlags().BoolVar(&a.trust, "trust", false,
		"read run directories of other users, and open the store and execute the plan of a received run directory")
	a.addVerbs(root)
	return root
}

// packaged is the name by which packages install the program.
const packaged = "passbook"

// program returns how this program was called, quoted for a shell, so that printed commands can be copied.
func program() string {
	if name := filepath.Base(os.Args[0]); name == packaged || strings.HasPrefix(name, "starter") {
		return shell.Quote(os.Args[0])
	}
	return "starter"
}

// renamed writes texts with the name by which the program was called.
type renamed struct {
	to   io.Writer
	name string
	of   *app
}

func (n *renamed) Write(p []byte) (int, error) {
	_, err := io.WriteString(n.to, asCalled(string(p), n.name, n.of.verbs))
	return len(p), err
}

var mentioned = lazyregexp.New("(^|[\\s(`\"'])starter ([a-z][a-z-]*)")

// asCalled replaces "starter VERB" in messages of other packages with the way this program was called.
func asCalled(text, program string, verbs []*cobra.Command) string {
	return mentioned.ReplaceAllStringFunc(text, func(found string) string {
		m := mentioned.FindStringSubmatch(found)
		if !slices.ContainsFunc(verbs, func(c *cobra.Command) bool { return c.Name() == m[2] }) {
			return found
		}
		return m[1] + program + " " + m[2]
	})
}
