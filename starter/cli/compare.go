package cli

import (
	"bytes"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/starter/report"
)

func (a *app) compare() *cobra.Command {
	var o pageOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use: "compare RUN RUN", Short: "Hold two runs against each other: passes, scores, costs, artifact, pictures",
		Long: `What differs between two runs, such as a run and its fork: a short form here, or one HTML file with charts and the pictures side by side.
Both are read from their directories alone; no server is asked or needed.

` + exitCodesHelp,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return asUsage(errors.New("name two runs: starter compare RUN RUN"))
			}
			return nil
		},
	}
	o.flags(cmd)
	cmd.Flags().Lookup("out").Usage = "write the HTML file; - writes it to standard output"
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if asJSON && (o.out != "" || o.open) {
			return asUsage(errors.New("--json and a page are two forms of the answer: give one"))
		}
		if err := o.check(); err != nil {
			return err
		}
		var dirs [2]rundir.Dir
		for i, name := range args {
			d, err := a.find(name)
			if err != nil {
				return err
			}
			dirs[i] = d
		}
		c, err := report.Compare(dirs[0], dirs[1], o.options())
		switch {
		case err != nil:
			return err
		case asJSON:
			return a.json(c)
		case o.out == "" && !o.open:
			return c.Text(a.out)
		}
		var page bytes.Buffer
		if err := c.Page(&page, o.options()); err != nil {
			return err
		}
		return a.deliver(page.Bytes(), filepath.Base(dirs[0].Root)+"-"+filepath.Base(dirs[1].Root)+".html", o)
	}
	return cmd
}
