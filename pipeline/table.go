package pipeline

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// WriteTable prints the plan as text: one line for each step, one block for each stage, and a summary. ofHost is the
// sandbox of the host for commands that name none.
func WriteTable(w io.Writer, p *Plan, ofHost string) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s, configuration %s\n", p.Pipeline, p.ConfigHash)
	for i, s := range p.Stages {
		if s.Name == FreshStage {
			continue
		}
		if i > 0 {
			out.WriteString("\n")
		}
		fmt.Fprintf(&out, "%s: %s\n", s.Name, s.sentence())
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
	if text := p.freshSentence(); text != "" {
		fmt.Fprintf(&out, "Fresh folder: %s\n", text)
	}
	out.WriteString("Commands:\n")
	for _, u := range p.commands(ofHost) {
		about := strings.Join(u.by, ", ") + "; " + u.sandbox
		if len(u.command)+len(about) > maxLine {
			fmt.Fprintf(&out, "  %s\n    %s\n", u.command, about)
			continue
		}
		fmt.Fprintf(&out, "  %s (%s)\n", u.command, about)
	}
	_, err := w.Write(out.Bytes())
	return err
}

// commandLine joins the words of a command. Those with spaces or quotes are quoted.
func commandLine(argv []string) string {
	words := slices.Clone(argv)
	for i, word := range words {
		if word == "" || strings.ContainsAny(word, " \t\n'\"") {
			words[i] = strconv.Quote(word)
		}
	}
	return strings.Join(words, " ")
}

// maxLine is the maximum length of a command that is printed on one line with what uses it.
const maxLine = 110

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

// uses is what runs on the host: a command, what runs it, and its sandbox.
type uses struct {
	command, sandbox string
	by               []string
}

// commands lists the agents and the commands of all steps, each once with each sandbox. ofHost is the sandbox of a host
// for what names none.
func (p *Plan) commands(ofHost string) (all []uses) {
	add := func(command, by, where string, c Confinement) {
		u := uses{command: command, sandbox: where + c.words(ofHost)}
		i := slices.IndexFunc(all, func(o uses) bool { return o.command == u.command && o.sandbox == u.sandbox })
		if i < 0 {
			i, all = len(all), append(all, u)
		}
		if !slices.Contains(all[i].by, by) {
			all[i].by = append(all[i].by, by)
		}
	}
	for _, r := range p.Roles {
		for _, a := range p.Agents {
			if a.Name == r.Agent {
				add(commandLine(a.Run), r.Name, "", a.Confinement)
			}
		}
	}
	for _, s := range p.Stages {
		for _, r := range s.Rounds {
			for _, step := range r.Steps {
				if step.Kind == KindRun {
					add(strings.TrimPrefix(step.subject(), "run: "), "stage "+s.Name, p.commandFolder()+", ", step.Confinement)
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

// words describe a confinement: "sandbox workspace, network internet".
func (c Confinement) words(ofHost string) string {
	mode := cmp.Or(c.Sandbox, ofHost)
	switch mode {
	case "none":
		return "no sandbox: this command runs as you"
	case "own":
		return "the agent's own sandbox"
	}
	text := "sandbox " + mode
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
