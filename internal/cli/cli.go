// Package cli is the command line of the starter. Commands read a run directory (offline) or send requests to a run
// (live). Every command about a run takes its id, its directory or --output-dir.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/build"
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
	trust    bool             // the user trusts received run directories
	noKeeper sync.Once        // prints the warning that there is no keeper
	started  *Started         // the run of a command that starts or resumes one
	secrets  *redact.Redactor // hides secrets in what is printed about the work
}

// Main runs the command line and returns the exit code.
func Main(args []string, in io.Reader, out, errw io.Writer) int {
	safe := terminal.NewWriter(out)
	a := &app{in: in, out: safe, raw: out, err: &outlet{to: errw}}
	if widthOf(out) > 0 {
		a.raw = safe
	}
	root := a.root()
	root.SetArgs(expanded(root, args))
	err := root.ExecuteContext(context.Background())
	if flushed := safe.Flush(); err == nil {
		err = flushed
	}
	if err != nil && !errors.As(err, new(silentExit)) {
		text := a.secrets.Text(volume.Message(err)) + hint(err, a.settings.StateDir)
		fmt.Fprintf(errw, "Error: %s\n", terminal.Safe(text))
	}
	return exitCode(err)
}

func (a *app) root() *cobra.Command {
	cobra.EnableCommandSorting = false // the table has the order
	root := &cobra.Command{
		Use:   "starter",
		Short: "Durable multi-pass agent pipelines on Temporal",
		Long: `Passbook runs pipelines of agent calls for hours or days. A run survives a closed laptop lid, network loss
and killed processes, and pays for an answered call only once. Its directory records everything, and can be read
without a server.`,
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
	a.addCommands(root)
	root.SetHelpFunc(a.helpOf(root))
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
