package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/format"
	"github.com/passbook-run/passbook/internal/local"
)

// groups are the headings of `starter --help`, in order.
func groups() []*cobra.Group {
	return []*cobra.Group{
		{ID: "start", Title: "Start runs:"},
		{ID: "control", Title: "Control runs:"},
		{ID: "inspect", Title: "Inspect runs:"},
		{ID: "repair", Title: "Check and repair run directories:"},
		{ID: "environment", Title: "Manage the environment:"},
	}
}

// verb is a row of the table of verbs.
type verb struct {
	name  string
	group string // the ID of one of the groups
	new   func(*app) *cobra.Command
}

// verbs are all verbs: those of the table, and one for each operation that none of them executes.
func verbs() []verb {
	all := written()
	for _, o := range api.Table() {
		if !slices.ContainsFunc(all, func(v verb) bool { return v.name == o.Verb }) {
			all = append(all, verbOf(o))
		}
	}
	return all
}

// written is the table of verbs with their own texts and flags. To add one, write its constructor in a new file and add
// a row.
func written() []verb {
	return []verb{
		{"demo", "start", (*app).demo},
		{"fork", "start", (*app).fork},
		{"init", "start", (*app).init},
		{"plan", "start", (*app).plan},
		{"replay", "start", (*app).replay},
		{"run", "start", (*app).run},

		{"amend", "control", (*app).amend},
		{"attach", "control", (*app).attachTo},
		{"budget", "control", (*app).budget},
		{"cancel", "control", (*app).cancel},
		{"decide", "control", (*app).decide},
		{"promote", "control", (*app).promote},
		{"remove", "control", (*app).remove},
		{"resume", "control", (*app).resume},
		{"revert", "control", (*app).revert},
		{"steer", "control", (*app).steer},

		{"checkpoints", "inspect", (*app).checkpoints},
		{"cost-report", "inspect", (*app).costReport},
		{"diagnose", "inspect", (*app).diagnose},
		{"diff", "inspect", (*app).diff},
		{"evidence", "inspect", (*app).evidence},
		{"list", "inspect", (*app).list},
		{"logs", "inspect", (*app).logs},
		{"quality-report", "inspect", (*app).qualityReport},
		{"report", "inspect", (*app).report},
		{"snapshot", "inspect", (*app).snapshot},
		{"status", "inspect", (*app).status},
		{"verify", "inspect", (*app).verify},
		{"watch", "inspect", (*app).watch},

		{"check", "repair", (*app).check},
		{"rebuild", "repair", (*app).rebuild},
		{"repair-state", "repair", (*app).repairState},

		{"allow", "environment", (*app).allow},
		{"codec", "environment", (*app).codec},
		{"console", "environment", (*app).console},
		{"mcp", "environment", (*app).mcp},
		{"config", "environment", (*app).config},
		{"doctor", "environment", (*app).doctor},
		{"server", "environment", (*app).server},
		{"store", "environment", (*app).store},
		{"token", "environment", (*app).token},
		{"version", "environment", (*app).version},
		{"worker", "environment", (*app).worker},
	}
}

// reading are the verbs beside those that inspect runs that write nothing to the state directory.
var reading = []string{"check", "completion", "config", "doctor", "help", "init", "plan", "server status",
	"version", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}

// later are the verbs that write to the state directory only after they connect, which opens it, or not at all: what
// they refuse before changes nothing.
var later = []string{"run", "server stop"}

// openState opens the state directory for a verb that writes to it.
func (a *app) openState(cmd *cobra.Command) error {
	top := cmd
	for top.HasParent() && top.Parent().HasParent() {
		top = top.Parent()
	}
	name := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	switch {
	case top.GroupID == "inspect" || slices.Contains(reading, top.Name()) || slices.Contains(reading, name):
		return nil
	case slices.Contains(later, name):
		return format.State().Check(a.settings.StateDir)
	}
	return local.OpenState(cmd.Context(), a.settings.StateDir)
}

// addVerbs adds every verb of the table to the root command, in its group.
func (a *app) addVerbs(root *cobra.Command) {
	root.AddGroup(groups()...)
	for _, v := range verbs() {
		cmd := v.new(a)
		cmd.GroupID = v.group
		listExitCodes(cmd)
		root.AddCommand(cmd)
	}
	root.SetHelpCommandGroupID("environment")
	root.SetCompletionCommandGroupID("environment")
}
