package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/doctor"
	"github.com/passbook-run/passbook/pipeline"
)

func (a *app) doctor() *cobra.Command {
	var dir, file string
	var start, asJSON bool
	cmd := a.target(&cobra.Command{
		Use: "doctor [RUN]", Short: "Look at everything that a run needs, and say what mends what is wrong",
		Long: `Look at the Temporal server, the workers, the browser, the agents, the disks, and the runs that are open: one line each, and what mends it.
With RUN only that run is looked at, otherwise every one of this machine that its events leave open. Nothing is started, unless --start is given,
nothing is changed, and no agent is called. What cannot be known so is said to be not checked, which is no fault.

Exit codes: 0 all is well; 1 error; 2 usage; 3 a warning or a problem.`,
	}, &dir)
	cmd.Flags().StringVar(&file, "config", "", "look at the agents of this pipeline definition (default: those of claude, codex and gemini that are installed)")
	cmd.Flags().BoolVar(&start, "start", false, "first start the embedded server and the background worker, if they do not run")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o, err := a.doctorOptions(file, named(args, dir))
		if err != nil {
			return err
		}
		if start {
			s, err := a.connect(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer s.Close()
		}
		r := doctor.Examine(cmd.Context(), o)
		if asJSON {
			err = a.json(r)
		} else {
			a.printReport(r)
		}
		if err == nil && !r.OK {
			err = quiet(exitAttention)
		}
		return err
	}
	return cmd
}

func (a *app) doctorOptions(file, target string) (doctor.Options, error) {
	o := doctor.Options{Settings: a.settings, Program: program(), Version: version(), By: who()}
	if self, err := os.Executable(); err == nil {
		o.Build = buildID(self)
	}
	if file != "" {
		def, err := loadFile(file)
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

// printReport prints a line a check, with what mends it below.
func (a *app) printReport(r doctor.Report) {
	words := map[doctor.State]string{doctor.OK: "ok", doctor.Warning: "WARNING", doctor.Problem: "PROBLEM", doctor.Unchecked: "not checked"}
	counts := map[doctor.State]int{}
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
	fmt.Fprintf(a.out, "\n%d checks. Ok: %d, warnings: %d, problems: %d, not checked: %d.\n", len(r.Checks), counts[doctor.OK], counts[doctor.Warning],
		counts[doctor.Problem], counts[doctor.Unchecked])
}

// wrap breaks a text between words into lines of at most width characters. A width that is not positive is none.
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
