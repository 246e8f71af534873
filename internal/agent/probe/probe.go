// Package probe asks the program of an agent for its version and its login. No model is asked and nothing is paid for.
//
// How the program is started is up to the caller: a worker starts it as it starts calls. It decides nothing, and it
// calls no command that an older version of the program could take for a prompt.
package probe

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/workflows/contract"
)

// Run starts the program at a path with arguments, and returns its standard output, or without one its standard error.
type Run func(ctx context.Context, path string, args ...string) (string, error)

// Agent asks the program of a command.
func Agent(ctx context.Context, cmd agent.Command, run Run) contract.AgentAnswer {
	from := cmd.Environment
	if from == nil {
		from = os.Environ()
	}
	a := contract.AgentAnswer{Program: filepath.Base(cmd.Argv[0])}
	var err error
	if a.Path, err = environ.LookPath(cmd.Argv[0], from); err != nil {
		a.Missing = fmt.Sprintf("%s is not in PATH (%v)", cmd.Argv[0], err)
		return a
	}
	if cmd.Refused != nil {
		a.Missing = cmd.Refused.Error()
		return a
	}
	printed, err := run(ctx, a.Path, "--version")
	printed = firstLine(printed)
	if err != nil {
		a.Failed = strings.TrimSpace(err.Error() + " " + printed)
		return a
	}
	a.Version = printed
	if about, known := adapter.SetupOf(a.Program); known {
		login(ctx, &a, about, cmd, from, run)
	} else {
		a.Login = contract.LoginUnknown
	}
	return a
}

// login finds out whether the user is logged in.
func login(ctx context.Context, a *contract.AgentAnswer, about adapter.Setup, cmd agent.Command, from []string,
	run Run) {
	env := cmd.Environ()
	for _, key := range about.Keys {
		if environ.Value(env, key) != "" {
			a.Login, a.With = contract.LoginWith, key
			return
		}
	}
	home := environ.Value(env, "HOME")
	if _, err := os.Stat(filepath.Join(home, about.File)); about.File != "" && home != "" && err == nil {
		a.Login, a.With = contract.LoginWith, "~/"+about.File
		return
	}
	a.Login = contract.LoginUnknown
	if about.Login != nil && lists(ctx, a.Path, about.Login[0], run) {
		printed, err := run(ctx, a.Path, about.Login...)
		if a.Printed, a.Login = lastLine(printed), contract.LoginOK; err == nil {
			return
		}
		a.Login = contract.LoginMissing
	}
	for _, key := range about.Keys {
		if environ.Value(from, key) != "" {
			a.Login, a.With = contract.LoginNotPassed, key
			return
		}
	}
}

// lists reports whether a program's help lists a command.
func lists(ctx context.Context, path, command string, run Run) bool {
	help, err := run(ctx, path, "--help")
	if err != nil {
		return false
	}
	for line := range strings.Lines(help) {
		if words := strings.Fields(line); len(words) > 0 && words[0] == command {
			return true
		}
	}
	return false
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return short(line)
}

// lastLine returns what a program printed after its warnings; of a JSON document nothing.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "{") {
		return ""
	}
	return short(strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:]))
}

func short(line string) string {
	const most = 300
	if runes := []rune(line); len(runes) > most {
		line = string(runes[:most]) + "…"
	}
	return line
}
