package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/format"
	"github.com/passbook-run/passbook/internal/host"
)

// groups are the headings of `starter help all`, in order. `starter --help` shows the first one.
func groups() []*cobra.Group {
	return []*cobra.Group{
		{ID: "main", Title: "Commands:"},
		{ID: "more", Title: "More about runs:"},
		{ID: "evidence", Title: "Evidence:"},
		{ID: "repair", Title: "Check and repair run directories:"},
		{ID: "serve", Title: "Serve and configure:"},
	}
}

// command is a row of the table of commands.
type command struct {
	name  string
	group string                    // the ID of one of the groups
	reads bool                      // it writes nothing to the state directory
	new   func(*app) *cobra.Command // nil: that of the operation with its name
}

// commands are all commands, in the order of the help: those of the table, and one for each operation that none of them
// executes.
func commands() []command {
	all := written()
	for _, o := range api.Table() {
		made := commandOf(o)
		switch i := slices.IndexFunc(all, func(c command) bool { return c.name == o.Command }); {
		case i < 0:
			all = append(all, made)
		case all[i].new == nil:
			all[i].new = made.new
		}
	}
	return all
}

// written is the table of commands with their own texts and flags. To add one, write its constructor in a new file and
// add a row.
func written() []command {
	return []command{
		{"init", "main", true, (*app).init},
		{"plan", "main", true, (*app).plan},
		{"run", "main", false, (*app).run},
		{"intake", "more", false, (*app).intake},
		{"adopt", "main", false, (*app).adopt},
		{"list", "main", true, (*app).list},
		{"status", "main", true, (*app).status},
		{"watch", "main", true, (*app).watch},
		{"decide", "main", false, (*app).decide},
		{"steer", "main", false, (*app).steer},
		{"pause", "main", false, nil},
		{"resume", "main", false, (*app).resume},
		{"cancel", "main", false, (*app).cancel},
		{"diff", "main", true, (*app).diff},
		{"report", "main", true, (*app).report},
		{"revert", "main", false, (*app).revert},
		{"remove", "main", false, (*app).remove},
		{"doctor", "main", true, (*app).doctor},

		{"amend", "more", false, (*app).amend},
		{"fork", "more", false, (*app).fork},
		{"replay", "more", false, (*app).replay},
		{"promote", "more", false, (*app).promote},
		{"verify", "more", true, (*app).verify},
		{"checkpoints", "more", true, (*app).checkpoints},
		{"snapshot", "more", true, (*app).snapshot},
		{"budget", "more", false, (*app).budget},
		{"allow", "more", false, (*app).allow},
		{"demo", "more", false, (*app).demo},

		{"logs", "evidence", true, (*app).logs},

		{"check", "repair", true, (*app).check},
		{"rebuild", "repair", false, (*app).rebuild},
		{"repair-state", "repair", false, (*app).repairState},
		{"store", "repair", false, (*app).store},

		{"console", "serve", false, (*app).console},
		{"token", "serve", false, (*app).token},
		{"mcp", "serve", false, (*app).mcp},
		{"server", "serve", false, (*app).server},
		{"worker", "serve", false, (*app).worker},
		{"codec", "serve", false, (*app).codec},
		{"config", "serve", true, (*app).config},
		{"version", "serve", true, (*app).version},
	}
}

// alias is another name for a command with some flags.
type alias struct {
	name, group string
	words       []string
}

// aliases are the names that the requirements use.
var aliases = []alias{
	{"attach", "more", []string{"watch"}},
	{"diagnose", "evidence", []string{"status", "--verbose"}},
	{"evidence", "evidence", []string{"report", "--markdown"}},
	{"cost-report", "evidence", []string{"report", "--costs"}},
	{"quality-report", "evidence", []string{"report", "--quality"}},
}

// expanded replaces an alias by its command.
func expanded(root *cobra.Command, args []string) []string {
	at := 0 // of the first word that is not a flag of the program, or the value of one
	for at < len(args) && strings.HasPrefix(args[at], "-") {
		name, _, inline := strings.Cut(strings.TrimLeft(args[at], "-"), "=")
		if f := root.PersistentFlags().Lookup(name); f != nil && !inline && f.NoOptDefVal == "" {
			at++
		}
		at++
	}
	if at+1 < len(args) && args[at] == "help" { // of an alias
		at++
	}
	for _, a := range aliases {
		if at < len(args) && args[at] == a.name {
			words := a.words
			if at > 0 && args[at-1] == "help" {
				words = words[:1]
			}
			return slices.Concat(args[:at], words, args[at+1:])
		}
	}
	return args
}

// reading are the commands besides those of the table that write nothing to the state directory.
var reading = []string{"completion", "help", "server status", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}

// later are the commands that write to the state directory only after they connect, which opens it, or not at all: what
// they refuse before changes nothing.
var later = []string{"run", "adopt", "server stop"}

// openState opens the state directory for a command that writes to it.
func (a *app) openState(cmd *cobra.Command) error {
	top := cmd
	for top.HasParent() && top.Parent().HasParent() {
		top = top.Parent()
	}
	name := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	reads := slices.ContainsFunc(commands(), func(c command) bool { return c.name == top.Name() && c.reads })
	switch {
	case reads || slices.Contains(reading, top.Name()) || slices.Contains(reading, name):
		return nil
	case slices.Contains(later, name):
		return format.State().Check(a.settings.StateDir)
	}
	return host.OpenState(cmd.Context(), a.settings.StateDir)
}

// addCommands adds every command of the table to the root command, in its group.
func (a *app) addCommands(root *cobra.Command) {
	root.AddGroup(groups()...)
	for _, row := range commands() {
		cmd := row.new(a)
		cmd.GroupID = row.group
		root.AddCommand(cmd)
	}
	root.SetHelpCommand(a.helpCommand(root))
	root.SetHelpCommandGroupID("serve")
	root.SetCompletionCommandGroupID("serve")
}
