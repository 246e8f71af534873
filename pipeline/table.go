package pipeline

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// WriteTable prints the plan as text: one line for each step, one block for each stage, and a summary.
func WriteTable(w io.Writer, p *Plan) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s, configuration %s\n", p.Pipeline, p.ConfigHash)
	for _, s := range p.Stages {
		if s.Name == FreshStage {
			continue
		}
		fmt.Fprintf(&out, "\n%s: %s\n", s.Name, s.sentence())
		s.writeSteps(&out)
	}
	out.WriteString("\n")
	if text := p.sentence(); text != "" { // unknown with lanes
		fmt.Fprintln(&out, text)
	}
	if text := p.Budget.sentence(); text != "" {
		fmt.Fprintf(&out, "Budget: %s\n", text)
	}
	if w := p.Workspace; w != nil && len(w.Setup) > 0 {
		fmt.Fprintf(&out, "Setup: %s\n", strings.Join(w.Setup, "; "))
	}
	if w := p.Workspace; w != nil && len(w.Protect) > 0 {
		fmt.Fprintf(&out, "Protected: %s\n", strings.Join(w.Protect, ", "))
	}
	if commands := p.commands(); len(commands) > 0 {
		fmt.Fprintf(&out, "Commands: %s (%s)\n", p.commandFolder(), strings.Join(commands, ", "))
	}
	if text := p.freshSentence(); text != "" {
		fmt.Fprintf(&out, "Fresh folder: %s\n", text)
	}
	fmt.Fprintf(&out, "Sandbox: %s\n", p.confinements())
	_, err := w.Write(out.Bytes())
	return err
}

func (s PlanStage) sentence() string {
	switch s.Kind {
	case StageEach:
		return "once for each of " + count(len(s.Rounds), "set")
	case StageRepeat:
		sentence := fmt.Sprintf("repeated up to %s until %s", count(s.Repeat.Max, "time"), s.Repeat.Until)
		if s.Repeat.Otherwise != "" {
			sentence += ", otherwise " + s.Repeat.Otherwise
		}
		return sentence
	case StageLanes:
		return fmt.Sprintf("once for each of %s, up to %d at the same time", s.Lanes.In, s.Lanes.AtOnce)
	default:
		return "once"
	}
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func (s PlanStage) writeSteps(out *bytes.Buffer) {
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	columns := []string{"", "#", "set", "step", "role", "order", "files", "sees"}
	if s.Kind != StageEach {
		columns = []string{"", "#", "step", "role", "sees"}
	}
	fmt.Fprintln(w, strings.Join(columns, "\t"))
	for _, r := range s.Rounds {
		for _, step := range r.Steps {
			fmt.Fprintln(w, strings.Join(s.cells(r, step), "\t"))
		}
	}
	_ = w.Flush() // writes to memory
	for line := range strings.Lines(table.String()) {
		out.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
}

func (s PlanStage) cells(r PlanRound, step PlanStep) []string {
	number, sees := "", s.seen(step)
	if step.Number > 0 {
		number = fmt.Sprintf("%3d", step.Number)
	}
	place := fmt.Sprintf("%d/%d", step.InRound, len(r.Steps))
	if s.Kind != StageEach {
		return []string{"", number, place, step.subject(), sees}
	}
	return []string{"", number, r.Set, place, step.subject(), step.Order, strings.Join(step.Files, " → "), sees}
}

// seen names the step whose reply is included: a pass by its number, a step of the same stage by its position in the
// round.
func (s PlanStage) seen(step PlanStep) string {
	if place, same := strings.CutPrefix(step.Sees, s.Name+"/"); same && s.Kind != StageEach {
		return "step " + place
	}
	return cmp.Or(strings.TrimLeft(step.Sees, "0"), step.SeesStage)
}

// subject returns the role, command or question of a step.
func (s PlanStep) subject() string {
	switch s.Kind {
	case KindRole:
		return s.Role
	case KindTogether:
		return strings.Join(s.Members, " + ")
	case KindRun:
		return "run: " + oneLine(s.Run)
	case KindAsk:
		return "ask: " + oneLine(s.Ask)
	default:
		return string(s.Kind)
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// sentence summarizes the plan: "56 passes: 35 builder, 21 verifier; then up to 6 cycles of weaver, refine".
func (p *Plan) sentence() string {
	var parts []string
	round := "round"
	if p.Wording == WordingCorpus {
		round = "cycle"
	}
	if p.Total > 0 {
		passes := "passes"
		if p.Total == 1 {
			passes = "pass"
		}
		parts = append(parts, fmt.Sprintf("%d %s: %s", p.Total, passes, strings.Join(p.byRole(), ", ")))
	}
	for _, s := range p.Stages {
		if s.Kind != StageRepeat {
			continue
		}
		var subjects []string
		for _, step := range s.Rounds[0].Steps {
			subjects = append(subjects, step.subject())
		}
		parts = append(parts, fmt.Sprintf("up to %s of %s", count(s.Repeat.Max, round), strings.Join(subjects, ", ")))
	}
	return strings.Join(parts, "; then ")
}

// confinements summarizes the sandboxes: "default of the host (builder); strict, network none (reviewer, run: make)".
func (p *Plan) confinements() string {
	var order []string
	members := map[string][]string{}
	add := func(c Confinement, name string) {
		what := c.String()
		if !slices.Contains(order, what) {
			order = append(order, what)
		}
		if !slices.Contains(members[what], name) {
			members[what] = append(members[what], name)
		}
	}
	for _, a := range p.Agents {
		add(a.Confinement, cmp.Or(a.Name, "agent"))
	}
	for _, s := range p.Stages {
		for _, r := range s.Rounds {
			for _, step := range r.Steps {
				if step.Kind == KindRun {
					add(step.Confinement, step.subject())
				}
			}
		}
	}
	for i, what := range order {
		order[i] = fmt.Sprintf("%s (%s)", what, strings.Join(members[what], ", "))
	}
	return strings.Join(order, "; ")
}

// commands lists the commands of all steps, each once.
func (p *Plan) commands() (all []string) {
	for _, s := range p.Stages {
		for _, r := range s.Rounds {
			for _, step := range r.Steps {
				if step.Kind == KindRun && !slices.Contains(all, step.subject()) {
					all = append(all, step.subject())
				}
			}
		}
	}
	return all
}

// commandFolder describes where commands run.
func (p *Plan) commandFolder() string {
	if p.Workspace != nil || len(p.Projects) > 0 {
		return "in the workspace"
	}
	var files []string
	if p.Artifact != nil {
		files = append(files, p.Artifact.File)
	}
	for _, n := range p.Notes {
		files = append(files, n.File)
	}
	if len(files) == 0 {
		return "in an empty folder"
	}
	return "in a folder with " + strings.Join(files, ", ")
}

// String describes a confinement in a few words.
func (c Confinement) String() string {
	text := cmp.Or(c.Sandbox, "default of the host")
	if len(c.Network) > 0 {
		text += ", network " + strings.Join(c.Network, " ")
	}
	return text
}

// byRole counts the numbered passes of each role, in the order of the first pass.
func (p *Plan) byRole() []string {
	var order []string
	counts := map[string]int{}
	for _, s := range p.Stages {
		for _, r := range s.Rounds {
			for _, step := range r.Steps {
				if step.Number == 0 {
					continue
				}
				if counts[step.Role]++; counts[step.Role] == 1 {
					order = append(order, step.Role)
				}
			}
		}
	}
	for i, role := range order {
		order[i] = fmt.Sprintf("%d %s", counts[role], role)
	}
	return order
}
