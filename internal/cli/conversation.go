package cli

import (
	"cmp"
	"fmt"
	"os"
	"slices"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/sessions"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/rundir"
)

// printSessions prints the command that opens the last conversation of each role, or why there is none. `starter check`
// reports files that cannot be read.
func (a *app) printSessions(d rundir.Dir) {
	plan, err := d.Plan()
	if err != nil {
		return
	}
	raw, err := d.ReadFile(rundir.TracesFile)
	if err != nil {
		return
	}
	rows, _ := rundir.ReadTraces(raw)
	seen := map[string]bool{}
	for _, row := range slices.Backward(rows) {
		role, _ := plan.Role(row.Role)
		agent, _ := plan.Agent(role.Agent)
		kind, ok := adapter.Find(cmp.Or(agent.Reply, adapter.ClaudeJSON))
		if seen[row.Role] || !ok || kind.Resume == nil || row.AgentPath == "" || len(agent.Run) == 0 ||
			agent.Run[0] == pipeline.Scripted {
			continue
		}
		report, err := d.ReadFile(row.AgentPath)
		if err != nil {
			continue
		}
		if id := kind.Read(report).Session; id != "" {
			seen[row.Role] = true
			a.row("Session", "%s  # %s", openSession(kind, agent.Run, id), row.Role)
		}
	}
}

// openSession is the command that opens a session, or a comment with the reason why there is none. The programs store
// sessions on the host of the call, in the home directory of its user. Some find one only in the directory of the
// call: the command creates that.
func openSession(kind adapter.Adapter, argv []string, id string) string {
	if kind.Ephemeral != "" && slices.Contains(argv, kind.Ephemeral) {
		return fmt.Sprintf("# %s did not store it, because its command has %s; remove the option from the definition to "+
			"store those of later calls", kind.Program, kind.Ephemeral)
	}
	dir, err := sessions.Program{Name: kind.Program, Environ: os.Environ()}.Directory(id)
	if err != nil {
		return "# " + err.Error() + "; conversations are on the host of the call, in the home directory of its user"
	}
	command := shell.Line(map[string][]string{
		"claude": {argv[0], "--resume", id}, "codex": {argv[0], "resume", id}, "gemini": {argv[0], "--resume", id},
	}[kind.Program]...)
	if dir != "" {
		command = "mkdir -p " + shell.Quote(dir) + " && cd " + shell.Quote(dir) + " && " + command
	}
	return command
}
