package cli

import (
	"bytes"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/report"
	"github.com/passbook-run/passbook/rundir"
)

func (a *app) compare() *cobra.Command {
	var o pageOptions
	cmd := &cobra.Command{
		Use: "compare RUN RUN", Short: "Compare two runs: passes, scores, costs, artifact, pictures",
		Long: `Compare two runs, such as a run and its fork: as text, or with --out as one HTML file with charts and
pictures side by side. Only the run directories are read; no server is needed.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return asUsage(errors.New("name two runs: starter compare RUN RUN"))
			}
			return nil
		},
	}
	o.flags(cmd)
	cmd.Flags().Lookup("out").Usage = "write the HTML file; - writes it to standard output"
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if *asJSON && (o.out != "" || o.open) {
			return asUsage(errors.New("--json and a page exclude each other: use one of them"))
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
		case *asJSON:
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
