package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/sessions"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// SessionLine is the conversation of one call in the output of `session --json`.
type SessionLine struct {
	Pass      string       `json:"pass"` // number, or step with round and member
	Role      string       `json:"role"`
	Call      string       `json:"call"`
	Outcome   run.Category `json:"outcome"`
	Program   string       `json:"program"`
	Session   string       `json:"session"`
	Directory string       `json:"directory"` // in which the program finds it; empty: in any, or Problem
	Command   string       `json:"command"`   // opens it; empty: Problem
	Problem   string       `json:"problem"`   // why it cannot be opened here
}

func (a *app) conversation() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "session [RUN] [PASS]", Short: "Print the command that opens the conversation of a call",
		Long: `Print the command that opens the conversation with the agent of a call: what it was asked, thought, called and
answered. Without PASS, list the calls that have a conversation. PASS is the number of a pass, a role (its last call),
or the id of a call.

The programs store conversations on the host of the call, in the home directory of its user. Some find one only in the
directory of the call: the command creates that. No server is needed.`,
		Args: between(0, 2),
	}
	cmd.Flags().StringVar(&dir, "output-dir", "", "the run directory, instead of naming the run")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if dir == "" && len(args) > 0 {
			dir, args = args[0], args[1:]
		}
		if len(args) > 1 {
			return asUsage(errors.New("name one pass"))
		}
		d, err := a.find(dir)
		if err != nil {
			return err
		}
		lines, err := readSessions(d)
		if err != nil {
			return err
		}
		if len(args) == 0 {
			return show(a, *asJSON, lines, a.printSessions)
		}
		line, err := sessionOf(d, lines, args[0])
		if err != nil {
			return err
		}
		if line.Problem != "" && !*asJSON {
			return errors.New(line.Problem)
		}
		return show(a, *asJSON, []SessionLine{line}, func([]SessionLine) { fmt.Fprintln(a.out, line.Command) })
	}
	return cmd
}

// readSessions lists the calls of a run whose agents reported a session, in the order of the journal.
func readSessions(d rundir.Dir) ([]SessionLine, error) {
	plan, err := d.Plan()
	if err != nil {
		return nil, err
	}
	raw, err := d.ReadFile(layout.TracesFile)
	if err != nil {
		return nil, err
	}
	rows, _ := rundir.ReadTraces(raw)
	lines := []SessionLine{}
	for _, row := range rows {
		role, _ := plan.Role(row.Role)
		agent, _ := plan.Agent(role.Agent)
		kind, ok := adapter.Find(cmp.Or(agent.Reply, adapter.ClaudeJSON))
		if !ok || kind.Resume == nil || row.AgentPath == "" || len(agent.Run) == 0 || agent.Run[0] == pipeline.Scripted {
			continue
		}
		report, err := d.ReadFile(row.AgentPath)
		if err != nil {
			continue // `starter check` reports it
		}
		id := kind.Read(report).Session
		if id == "" {
			continue
		}
		l := SessionLine{Pass: passName(row.Call), Role: row.Role, Call: row.Call, Outcome: row.Outcome,
			Program: kind.Program, Session: id}
		l.open(agent.Run, kind.Ephemeral)
		lines = append(lines, l)
	}
	return lines, nil
}

// printSession prints the command that opens the last conversation of a run. `starter check` reports files that cannot be
// read.
func (a *app) printSession(d rundir.Dir) {
	lines, err := readSessions(d)
	if err != nil || len(lines) == 0 {
		return
	}
	last := lines[len(lines)-1]
	a.row("Session", "%s", cmp.Or(last.Command, last.Problem))
}

// passName returns how a call is named: the number of its pass, or its step with round and member.
func passName(call string) string {
	step := callOf(call)
	if at := strings.Index(step, "."); at >= 0 {
		step = step[at+1:]
	}
	key, rest, _ := strings.Cut(step, ".")
	if n, err := strconv.Atoi(key); err == nil {
		return strconv.Itoa(n)
	}
	part := strings.Split(rest, ".")
	name := key + "." + part[0]
	if len(part) > 1 && part[1] != "-" {
		name += " " + part[1]
	}
	return name
}

// open fills in the command that opens the session, or why there is none.
func (l *SessionLine) open(argv []string, ephemeral string) {
	if ephemeral != "" && slices.Contains(argv, ephemeral) {
		l.Problem = fmt.Sprintf("open the conversation of %s: %s did not store it, because its command has %s; remove the "+
			"option from the definition to store those of later calls", l.Pass, l.Program, ephemeral)
		return
	}
	program := argv[0]
	p := sessions.Program{Name: l.Program, Environ: os.Environ()}
	dir, err := p.Directory(l.Session)
	if err != nil {
		l.Problem = err.Error() + "; conversations are on the host of the call, in the home directory of its user"
		return
	}
	words := map[string][]string{
		"claude": {program, "--resume", l.Session}, "codex": {program, "resume", l.Session},
		"gemini": {program, "--resume", l.Session},
	}[l.Program]
	l.Command = shell.Line(words...)
	if l.Directory = dir; dir != "" {
		l.Command = "mkdir -p " + shell.Quote(dir) + " && cd " + shell.Quote(dir) + " && " + l.Command
	}
}

// sessionOf finds the last session of a pass, role or call.
func sessionOf(d rundir.Dir, lines []SessionLine, what string) (SessionLine, error) {
	for _, l := range slices.Backward(lines) {
		if slices.Contains([]string{l.Pass, l.Role, l.Call, callOf(l.Call), l.Session}, what) {
			return l, nil
		}
	}
	if now, err := d.Now(); err == nil {
		for _, c := range now.State.InFlight {
			if slices.Contains([]string{passName(c.Call), c.Role, c.Call, callOf(c.Call)}, what) {
				return SessionLine{}, errors.New(shell.Sprintf("open the conversation of %s: the call is running; see it with: "+
					"starter watch %s", what, d.Root))
			}
		}
	}
	return SessionLine{}, asUsage(errors.New(shell.Sprintf("open the conversation of %s: no call of that pass, role or "+
		"id has one; list those that do: starter session %s", what, d.Root)))
}

func (a *app) printSessions(lines []SessionLine) {
	if len(lines) == 0 {
		fmt.Fprintln(a.out, "No call has a conversation: claude, codex and gemini report one when a call ends.")
		return
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PASS\tROLE\tPROGRAM\tSESSION\tCALL\tOUTCOME\t")
	for _, l := range lines {
		note := ""
		if l.Problem != "" {
			note = "not available"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.Pass, l.Role, l.Program, l.Session, callOf(l.Call), l.Outcome, note)
	}
	w.Flush()
}
