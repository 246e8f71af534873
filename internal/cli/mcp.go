package cli

import (
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/mcp"
)

func (a *app) mcp() *cobra.Command {
	can := string(api.CanOperate)
	cmd := &cobra.Command{
		Use: "mcp", Short: "Offer runs to an agent as an MCP server", Args: cobra.NoArgs,
		Long: `Offer runs to an agent as an MCP server on standard input and output: a tool for each operation, such as
passbook_start, passbook_wait and passbook_decide, and resources for reports, artifacts and prompts. An MCP client
starts this command. Tools that read work without a Temporal server; other tools start one if none runs. Paths are
relative to the folder in which the client starts the command.`,
		Example: "  claude mcp add passbook -- starter mcp\n  claude mcp add passbook -- starter mcp --can read",
	}
	cmd.Flags().StringVar(&can, "can", can, "what the agent may do: read; decide, which includes read; or operate")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		access := api.Access(can)
		if !slices.Contains(api.Accesses(), access) {
			return asUsage(fmt.Errorf("--can is %q: write read, decide or operate", can))
		}
		if a.personThere() {
			return asUsage(errors.New("an MCP client starts this command and talks to it on standard input; to add it to " +
				"Claude Code, run: claude mcp add passbook -- starter mcp"))
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		defer stop()
		err := mcp.Serve(ctx, a.host(), access, io.NopCloser(a.in), openWriter{a.raw})
		if ctx.Err() != nil { // the client ends its server with a signal
			return nil
		}
		return err
	}
	return cmd
}

// openWriter is a writer that stays open.
type openWriter struct{ io.Writer }

// Close does nothing.
func (openWriter) Close() error { return nil }
