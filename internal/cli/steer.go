package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

func (a *app) steer() *cobra.Command {
	var m workflows.Message
	cmd := &cobra.Command{
		Use: "steer RUN TEXT", Short: "Add an instruction to the next prompts of a run",
		Long: `Add an instruction to the next prompts of a run. The next prompt of each role contains it, or that of the
role that --role names. A call that is running keeps its prompt; --now interrupts it. Agents with sessions then continue
their conversation with the instruction; other agents start again with it. TEXT may be - to read standard input.

The run records the instruction. starter status shows it until it is used.`,
	}
	cmd.Flags().StringVar(&m.Role, "role", "", "the role whose next prompt contains the instruction (default: every role)")
	cmd.Flags().BoolVar(&m.Now, "now", false, "interrupt the running call")
	cmd.Flags().StringVar(&m.Note, "note", "", "a note for the record")
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 2 {
			return asUsage(errors.New(`name a run and the instruction, as in starter steer RUN "Keep the public API"`))
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d, err := a.find(args[0])
		if err != nil {
			return err
		}
		if m.Text, err = instruction(args[1]); err != nil {
			return err
		}
		return a.withServer(cmd.Context(), d, func(ctx context.Context, s *session, claim run.Claim) error {
			return a.send(ctx, s, d, claim, workflows.VerbSteer, m)
		})
	}
	return cmd
}

// maxStdin bounds what is read to report the size of an instruction that is too long.
const maxStdin = 1 << 20

// instruction returns the text of an argument or of standard input.
func instruction(arg string) (string, error) {
	text := arg
	if arg == "-" {
		raw, err := io.ReadAll(io.LimitReader(os.Stdin, maxStdin))
		if err != nil {
			return "", fmt.Errorf("read the instruction from standard input: %w", err)
		}
		text = string(raw)
	}
	text, err := run.ParseInstruction(text)
	return text, asUsage(err)
}
