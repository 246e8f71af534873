package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// topics are the pages of `starter help` besides those of the commands.
var topics = []struct {
	name, short string
	print       func(w io.Writer, root *cobra.Command)
}{
	{"all", "list all commands by group", printAll},
	{"exit-codes", "what the exit codes mean", func(w io.Writer, _ *cobra.Command) { fmt.Fprint(w, exitCodesHelp) }},
}

// helpCommand is `starter help`.
func (a *app) helpCommand(root *cobra.Command) *cobra.Command {
	lines := []string{"Show help about a command, or one of these topics:"}
	for _, t := range topics {
		lines = append(lines, fmt.Sprintf("  %-11s %s", t.name, t.short))
	}
	return &cobra.Command{
		Use: "help [COMMAND | TOPIC]", Short: "Show help about a command or a topic", Long: strings.Join(lines, "\n"),
		RunE: func(_ *cobra.Command, args []string) error {
			for _, t := range topics {
				if len(args) == 1 && args[0] == t.name {
					t.print(a.out, root)
					return nil
				}
			}
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return asUsage(errors.New("show help: there is no command or topic " + strings.Join(args, " ") +
					"; to list all commands: starter help all"))
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}

// printAll lists all commands by group, with the other names for some of them.
func printAll(w io.Writer, root *cobra.Command) {
	for i, g := range groups() {
		if i > 0 {
			fmt.Fprintln(w)
		}
		printGroup(w, root, g)
		for _, a := range aliases {
			if a.group == g.ID {
				fmt.Fprintf(w, "  %-15s The same as starter %s\n", a.name, strings.Join(a.words, " "))
			}
		}
	}
}

func printGroup(w io.Writer, root *cobra.Command, g *cobra.Group) {
	fmt.Fprintln(w, g.Title)
	for _, c := range root.Commands() {
		if c.GroupID == g.ID && c.IsAvailableCommand() {
			fmt.Fprintf(w, "  %-15s %s\n", c.Name(), c.Short)
		}
	}
}

// helpOf is the help of a command. That of the program lists the main commands.
func (a *app) helpOf(root *cobra.Command) func(*cobra.Command, []string) {
	ofCommand := root.HelpFunc()
	return func(cmd *cobra.Command, args []string) {
		if cmd != root {
			ofCommand(cmd, args)
			return
		}
		fmt.Fprintf(a.out, "%s\n\nUsage:\n  %s COMMAND\n\n", root.Long, root.Name())
		printGroup(a.out, root, groups()[0])
		fmt.Fprintf(a.out, "\nFlags:\n%s\n", root.LocalFlags().FlagUsages())
		fmt.Fprintf(a.out, "For one command: %[1]s COMMAND --help. For all commands: %[1]s help all. For the exit codes: "+
			"%[1]s help exit-codes.\n", root.Name())
	}
}
