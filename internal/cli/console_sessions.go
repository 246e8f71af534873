package cli

import (
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/console/login"
)

func (a *app) consoleSessions() *cobra.Command {
	cmd := &cobra.Command{Use: "sessions", Short: "List the browsers that are logged in", Args: cobra.NoArgs,
		Long: `List the browsers that are logged in to the consoles of this state directory, the one that was used last first.
To log one out, run: starter console logout ID`}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		all, err := login.List(a.settings.StateDir, time.Now())
		if err != nil {
			return err
		}
		return show(a, *asJSON, all, a.printLogins)
	}
	return cmd
}

func (a *app) printLogins(all []login.Session) {
	if len(all) == 0 {
		fmt.Fprintln(a.out, "No browser is logged in.")
		return
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tBROWSER\tFROM\tLOGGED IN\tLAST USED\tEXPIRES")
	for _, s := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", s.ID, s.Browser, s.Address, s.CreatedAt, s.LastUsedAt,
			s.ExpiresAt)
	}
	w.Flush()
}

func (a *app) consoleLogout() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "logout ID...", Short: "Log browsers out", Args: cobra.ArbitraryArgs,
		Long: `Log browsers out. An ID is that of starter console sessions, or the beginning of one. A running console refuses
the browser at once; its open pages report that.`,
		Example: "  starter console logout 3f2a90c1d4e7\n  starter console logout --all",
	}
	cmd.Flags().BoolVar(&all, "all", false, "log all browsers out")
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		if all == (len(ids) > 0) {
			return asUsage(fmt.Errorf("%s: name sessions, or give --all; to list them, run: starter console sessions",
				cmd.CommandPath()))
		}
		if all {
			sessions, err := login.List(a.settings.StateDir, time.Now())
			if err != nil {
				return err
			}
			for _, s := range sessions {
				ids = append(ids, s.ID)
			}
		}
		for _, id := range ids {
			s, err := login.Revoke(a.settings.StateDir, id, time.Now())
			if unknown := (*login.SessionError)(nil); errors.As(err, &unknown) {
				return asUsage(err)
			}
			if err != nil {
				return fmt.Errorf("log out session %s: %w", id, err)
			}
			fmt.Fprintf(a.out, "Session %s (%s) is logged out.\n", s.ID, s.Browser)
		}
		if len(ids) == 0 {
			fmt.Fprintln(a.out, "No browser is logged in.")
		}
		return nil
	}
	return cmd
}
