package cli

import (
	"cmp"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/serve"
)

// configReport is `config --json`.
type configReport struct {
	File       string           `json:"settings_file"`
	There      bool             `json:"settings_file_exists"`
	Settings   []config.Setting `json:"settings"`
	Connection []config.Setting `json:"connection"` // to Temporal
}

func (a *app) config() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "config", Short: "Every setting, its value, and where it comes from", Args: cobra.NoArgs,
		Long: `Print every setting of Passbook and of the connection to Temporal: its value, and where it comes from. A flag (--calls 8) wins over a variable
(PASSBOOK_CALLS=8), that over the settings file (calls: 8), that over the default. The connection is the temporal CLI's: TEMPORAL_* variables win
over a profile of temporal.toml. Secrets are masked. Nothing is started or asked.

` + exitCodesHelp,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		r, err := explainConfig(cmd)
		if err != nil {
			return asUsage(err)
		}
		if asJSON {
			return a.json(r)
		}
		return a.printConfig(r)
	}
	return cmd
}

func explainConfig(cmd *cobra.Command) (configReport, error) {
	var r configReport
	var err error
	r.File, _ = config.File(cmd.Flags())
	_, missing := os.Stat(r.File)
	r.There = missing == nil
	if r.Settings, err = config.Explain(cmd.Flags()); err != nil {
		return r, err
	}
	if r.Connection, err = serve.Explain(); err != nil {
		return r, fmt.Errorf("connection to Temporal: %w", err)
	}
	return r, nil
}

func (a *app) printConfig(r configReport) error {
	there := "not there, which is fine"
	if r.There {
		there = "read"
	}
	fmt.Fprintf(a.out, "Settings file: %s (%s)\n\n", r.File, there)
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, part := range []struct {
		title string
		rows  []config.Setting
	}{{"SETTING", r.Settings}, {"CONNECTION", r.Connection}} {
		fmt.Fprintf(w, "%s\tVALUE\tFROM\n", part.title)
		for _, s := range part.rows {
			fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, cmp.Or(s.Value, "-"), cmp.Or(s.From, s.Source))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}
