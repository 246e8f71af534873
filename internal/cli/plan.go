package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/pipeline"
)

func (a *app) plan() *cobra.Command {
	cmd := &cobra.Command{
		Use: "plan [PIPELINE]", Short: "Check a pipeline and print its numbered steps",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return asUsage(errors.New("name one pipeline: starter plan PIPELINE"))
			}
			return nil
		},
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		def, err := a.host().LoadFile(strings.Join(args, ""))
		if err != nil {
			return err
		}
		warnings, err := a.host().CheckPlan(cmd.Context(), def)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.json(def.Plan)
		}
		for _, w := range warnings {
			fmt.Fprintln(a.err, "Warning:", w)
		}
		s := a.host().Settings.Sandbox
		return pipeline.WriteTable(a.out, def.AsCalled(s), cmp.Or(s.Mode, sandbox.Workspace))
	}
	return cmd
}
