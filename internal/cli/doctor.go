package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/build"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/pipeline"
)

func (a *app) doctor() *cobra.Command {
	var file string
	var start, agents bool
	cmd := &cobra.Command{
		Use: "doctor [RUN]", Short: "Check the environment and suggest fixes",
		Long: `Check the Temporal server, workers, browser, agents, disks and open runs, with one line per check and a fix
for each problem. With RUN, check only that run; otherwise every open run of this machine. Nothing is started without
--start, nothing is changed, and no agent is called. What cannot be found out this way is shown as not checked, which
is not a problem.

With --agents, check only the version and the login of each agent. The worker of this machine asks them as it would call
them: in their sandbox, with the environment of RUN, of this terminal, or, if the store is a bucket, of the worker. If
no worker runs, this process asks them; --start starts one. No call is paid for.

Exit codes: 0 no problem; 1 error; 2 wrong usage; 3 a warning or a problem.`,
	}
	target := runFlag(cmd)
	asJSON := jsonFlag(cmd)
	cmd.Flags().StringVar(&file, "config", "",
		"check the agents of this pipeline definition (default: claude, codex and gemini, if installed)")
	cmd.Flags().BoolVar(&start, "start", false, "first start the embedded server and the background worker")
	cmd.Flags().BoolVar(&agents, "agents", false, "check only the agents")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o, err := a.doctorOptions(file, target(args))
		if err != nil {
			return err
		}
		o.OnlyAgents = agents
		if start {
			s, err := a.connect(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer s.Close()
		}
		r := host.Examine(cmd.Context(), o)
		if err = show(a, *asJSON, r, a.printReport); err == nil && !r.OK {
			err = silentExit(exitAttention)
		}
		return err
	}
	return cmd
}

func (a *app) doctorOptions(file, target string) (host.DoctorOptions, error) {
	o := host.DoctorOptions{Settings: a.settings, Program: program(), Version: build.Version(), By: host.User()}
	if self, err := os.Executable(); err == nil {
		o.Build = build.ID(self)
	}
	if file != "" {
		def, err := a.host().LoadFile(file)
		if err != nil {
			return o, err
		}
		o.Agents = append([]pipeline.Agent{}, def.Plan.Agents...)
	}
	if target != "" {
		d, err := a.find(target)
		if err != nil {
			return o, err
		}
		o.Run = &d
	}
	return o, nil
}

// printReport prints a line per check, with the fix below.
func (a *app) printReport(r host.Report) {
	words := map[host.CheckState]string{
		host.OK: "ok", host.Warning: "WARNING", host.Problem: "PROBLEM", host.Unchecked: "not checked",
	}
	counts := map[host.CheckState]int{}
	width := widthOf(a.out)
	const indent = 26
	for _, c := range r.Checks {
		counts[c.State]++
		lines := wrap(c.Detail, width-indent)
		fmt.Fprintf(a.out, "%-11s  %-11s  %s\n", words[c.State], c.Name, lines[0])
		for _, l := range lines[1:] {
			fmt.Fprintf(a.out, "%*s%s\n", indent, "", l)
		}
		if c.Fix == "" {
			continue
		}
		for i, l := range wrap(c.Fix, width-indent-2) {
			mark := "→ "
			if i > 0 {
				mark = "  "
			}
			fmt.Fprintf(a.out, "%*s%s%s\n", indent, "", mark, l)
		}
	}
	fmt.Fprintf(a.out, "\n%d checks. Ok: %d, warnings: %d, problems: %d, not checked: %d.\n",
		len(r.Checks), counts[host.OK], counts[host.Warning], counts[host.Problem], counts[host.Unchecked])
}

// wrap breaks a text between words into lines of at most width characters. A width of 0 or less means no limit.
func wrap(text string, width int) []string {
	text = strings.Join(strings.Fields(text), " ")
	if width <= 0 {
		return []string{text}
	}
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case len([]rune(*last))+1+len([]rune(word)) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
