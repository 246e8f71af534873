package cli

import (
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/pipeline"
)

func (a *app) plan() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "plan FILE", Short: "Check a pipeline and print its numbered steps",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return asUsage(errors.New("name one pipeline file: starter plan FILE"))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			def, err := loadFile(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				enc := json.NewEncoder(a.out)
				enc.SetIndent("", "  ")
				enc.SetEscapeHTML(false)
				return enc.Encode(def.Plan)
			}
			return pipeline.WriteTable(a.out, def.Plan)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// loadFile reads a definition from disk. What is wrong with the file is a misuse.
func loadFile(name string) (operate.Definition, error) {
	def, err := operate.LoadFile(name)
	var problems pipeline.Problems
	if err != nil && !errors.As(err, &problems) {
		return def, asUsage(err)
	}
	return def, err
}
