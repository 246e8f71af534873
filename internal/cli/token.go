package cli

import (
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/console/tokens"
)

// TokenLine is one token in the output of `token list --json`.
type TokenLine struct {
	Name      string     `json:"name"`
	Can       api.Access `json:"can"`
	CreatedAt string     `json:"created_at"`
}

func (a *app) token() *cobra.Command {
	cmd := within(&cobra.Command{
		Use: "token", Short: "Create, list and revoke the tokens of the console's clients",
		Long: `Create, list and revoke tokens. Programs send a token to the console, and the journal records its name. The
state directory has only digests of tokens, in a file that only you can read.`,
	})
	cmd.AddCommand(a.tokenCreate(), a.tokenList(), a.tokenRevoke())
	return cmd
}

func (a *app) tokenCreate() *cobra.Command {
	var can string
	cmd := &cobra.Command{
		Use: "create NAME --can ACCESS", Short: "Create a token and print it, once", Args: oneName,
		Long: `Create a token and print it. It cannot be shown again. A token that can operate starts runs, whose commands
are executed as you: give it only to programs that you trust as yourself.`,
		Example: "  starter token create dashboard --can read\n  starter token create approvals --can decide",
	}
	cmd.Flags().StringVar(&can, "can", "", "what it allows: read; decide, which includes read; or operate")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		access := api.Access(can)
		if !slices.Contains(api.Accesses(), access) {
			return asUsage(fmt.Errorf("--can is %q: write read, decide or operate", can))
		}
		text, err := tokens.In(a.settings.StateDir).Create(cmd.Context(), args[0], access, time.Now())
		if err != nil {
			return tokenError(err)
		}
		fmt.Fprintln(a.out, text)
		return nil
	}
	return cmd
}

func (a *app) tokenList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the tokens", Args: cobra.NoArgs}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		all, err := tokens.In(a.settings.StateDir).List()
		if err != nil {
			return fmt.Errorf("list the tokens of the console: %w", err)
		}
		lines := []TokenLine{}
		for _, t := range all {
			lines = append(lines, TokenLine{t.Name, t.Can, t.CreatedAt})
		}
		return show(a, *asJSON, lines, a.printTokens)
	}
	return cmd
}

func (a *app) printTokens(lines []TokenLine) {
	if len(lines) == 0 {
		fmt.Fprintf(a.out, "There are no tokens. To create one: %s token create NAME --can read\n", program())
		return
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tCAN\tCREATED")
	for _, l := range lines {
		fmt.Fprintf(w, "%s\t%s\t%s\n", l.Name, l.Can, l.CreatedAt)
	}
	w.Flush()
}

func (a *app) tokenRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAME", Short: "Revoke a token", Args: oneName,
		Long: "Revoke a token. A running console refuses it at once.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := tokens.In(a.settings.StateDir).Revoke(cmd.Context(), args[0]); err != nil {
				return tokenError(err)
			}
			fmt.Fprintf(a.out, "Token %s is revoked.\n", args[0])
			return nil
		},
	}
}

// oneName requires the name of a token.
func oneName(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return asUsage(fmt.Errorf("%s: name one token", cmd.CommandPath()))
	}
	return nil
}

// tokenError marks a refused name as wrong usage.
func tokenError(err error) error {
	if refused := (*tokens.NameError)(nil); errors.As(err, &refused) {
		return asUsage(err)
	}
	return err
}
