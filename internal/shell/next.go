package shell

import (
	"strings"

	"github.com/passbook-run/passbook/run"
)

// Next returns what to run next, one text per command. program is used as it is.
func Next(program string, commands []run.Command) []string {
	all := []string{}
	for _, c := range commands {
		steps := commandLines(program, c)
		if c.First != "" {
			steps = append([]string{c.First}, steps...)
		}
		all = append(all, strings.Join(steps, ", then "))
	}
	return all
}

// Script returns the same as shell commands.
func Script(program string, commands []run.Command) []string {
	all := []string{}
	for _, c := range commands {
		all = append(all, strings.Join(commandLines(program, c), " && "))
	}
	return all
}

func commandLines(program string, c run.Command) []string {
	steps := make([]string, len(c.Steps))
	for i, args := range c.Steps {
		steps[i] = program + " " + Line(args...)
	}
	return steps
}

// Temporal returns the messages of the first command that has some, for the Temporal CLI: as Updates or signals.
func Temporal(how, runID string, commands []run.Command) []string {
	all := []string{}
	for _, c := range commands {
		for _, m := range c.Messages {
			all = append(all, Sprintf("temporal workflow "+how+" --workflow-id %s --name %s --input %s", runID, m.Name,
				m.Input))
		}
		if len(all) > 0 {
			break
		}
	}
	return all
}

// Subcommands of the Temporal CLI that send a message.
const (
	Update = "update execute"
	Signal = "signal"
)
