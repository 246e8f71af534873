package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/starter/evidence"
)

func (a *app) evidence() *cobra.Command {
	var dir, format string
	var asJSON bool
	cmd := a.target(&cobra.Command{
		Use: "evidence [RUN]", Short: "What a run was asked, did, checked, decided and spent, for a pull request or an audit",
		Long: `What a run was asked, did, checked, decided and spent, as a Markdown page or as JSON, from its directory alone. The same directory gives
the same evidence. No server is asked or needed.

` + exitCodesHelp,
	}, &dir)
	cmd.Flags().StringVar(&format, "format", "md", "md or json")
	cmd.Flags().BoolVar(&asJSON, "json", false, "the same as --format json")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if asJSON {
			format = "json"
		}
		if format != "md" && format != "json" {
			return asUsage(fmt.Errorf("--format is md or json, not %q", format))
		}
		d, err := a.find(named(args, dir))
		if err != nil {
			return err
		}
		e, err := evidence.Read(d)
		if err != nil {
			return err
		}
		if format == "json" {
			return a.json(e)
		}
		return e.Markdown(a.out)
	}
	return cmd
}
