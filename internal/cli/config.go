package cli

import (
	"cmp"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/config"
)

// configReport is `config --json`.
type configReport struct {
	File     string           `json:"settings_file"`
	There    bool             `json:"settings_file_exists"`
	Settings []config.Setting `json:"settings"`
}

func (a *app) config() *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "Show every setting with its value and source", Args: cobra.NoArgs,
		Long: `Print every setting with its value and source. A flag (--calls 8) overrides a variable (PASSBOOK_CALLS=8),
which overrides the settings file (calls: 8), which overrides the default. Secrets are masked. No server is needed.

The connection to Temporal is configured like the temporal CLI: TEMPORAL_* variables override a profile in
temporal.toml, which temporal config get prints. starter doctor names the server that is reached.`,
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		r, err := explainConfig(cmd)
		if err != nil {
			return asUsage(err)
		}
		if *asJSON {
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
	r.Settings, err = config.Explain(cmd.Flags())
	return r, err
}

func (a *app) printConfig(r configReport) error {
	there := "not found, defaults are used"
	if r.There {
		there = "read"
	}
	fmt.Fprintf(a.out, "Settings file: %s (%s)\n\n", r.File, there)
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SETTING\tVALUE\tFROM")
	for _, s := range r.Settings {
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, cmp.Or(s.Value, "-"), cmp.Or(s.From, s.Source))
	}
	return w.Flush()
}
