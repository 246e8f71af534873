package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/operations"
)

func (a *app) steer() *cobra.Command {
	var in api.SteerInput
	cmd := &cobra.Command{
		Use: "steer [RUN] TEXT", Short: "Add an instruction to the next prompts of a run",
		Long: `Add an instruction to the next prompts of a run. The next prompt of each role contains it, or that of the
role that --role names. A call that is running keeps its prompt; --now interrupts it. Agents with sessions then continue
their conversation with the instruction; other agents start again with it. TEXT may be - to read standard input.

The run records the instruction. starter status shows it until it is used.`,
	}
	cmd.Flags().StringVar(&in.Role, "role", "",
		"the role whose next prompt contains the instruction (default: every role)")
	cmd.Flags().BoolVar(&in.Now, "now", false, "interrupt the running call")
	cmd.Flags().StringVar(&in.Note, "note", "", "a note for the record")
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) < 1 || len(args) > 2 {
			return asUsage(errors.New(`name a run and the instruction, as in starter steer RUN "Keep the public API"`))
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 { // perhaps the text was forgotten
			if _, err := operations.Find(a.settings.StateDir, args[0], a.trust); err == nil {
				return asUsage(fmt.Errorf("give the instruction for run %s: starter steer %[1]s TEXT", args[0]))
			}
		}
		d, err := a.find(nameIn(args[:len(args)-1], ""))
		if err != nil {
			return err
		}
		in.Run = d.Root
		if in.Text, err = instruction(args[len(args)-1]); err != nil {
			return err
		}
		return a.answered(api.Steer(cmd.Context(), a.host(), in))
	}
	return cmd
}

// maxStdin bounds what is read to report the size of an instruction that is too long.
const maxStdin = 1 << 20

// instruction returns the text of an argument or of standard input.
func instruction(arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	raw, err := io.ReadAll(io.LimitReader(os.Stdin, maxStdin))
	if err != nil {
		return "", fmt.Errorf("read the instruction from standard input: %w", err)
	}
	return string(raw), nil
}
