package pipeline

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// titles returns a step's long description and its title in the log. In a repeated stage, {n} is left to be filled in.
func titles(w string, s Stage, step int, set Set, order Order) (description, logTitle string) {
	p := s.Steps[step]
	what := p.title()
	round, rotation := "Round", "Order"
	if w == WordingCorpus {
		round, rotation = "Cycle", "Rotation"
	}
	switch {
	case s.ForEach == "" && s.Repeat != nil:
		description = fmt.Sprintf("[%s] %s {n} — %s", s.Name, round, what)
		return description, description
	case s.ForEach == "":
		description = fmt.Sprintf("[%s] Step %d/%d — %s", s.Name, step+1, len(s.Steps), what)
		return description, description
	}
	head := fmt.Sprintf("[%s] %s", set.ID, passOf(s, step))
	long, short := "", ""
	if order.Name != "" {
		short = " — " + rotation + " " + order.Name
		long = short
	}
	if order.Label != "" {
		long += " (" + order.Label + ")"
	}
	theme, _, _ := strings.Cut(set.Theme, " + ")
	return join(head+long, what, set.Theme), join(head+short, what, theme)
}

func join(parts ...string) string { return strings.Join(parts, " — ") }

// passOf counts the role steps of a round: "Pass 3/8". Other steps are counted among all steps.
func passOf(s Stage, step int) string {
	if s.Steps[step].Role == "" {
		return fmt.Sprintf("Step %d/%d", step+1, len(s.Steps))
	}
	number, total := 0, 0
	for pi, p := range s.Steps {
		if p.Role == "" {
			continue
		}
		total++
		if pi <= step {
			number++
		}
	}
	return fmt.Sprintf("Pass %d/%d", number, total)
}

func (p Step) title() string {
	switch p.kind() {
	case KindRole:
		return words(p.Role)
	case KindTogether:
		titles := make([]string, len(p.Together))
		for i, role := range p.Together {
			titles[i] = words(role)
		}
		return strings.Join(titles, ", ")
	case KindRun:
		return oneLine(p.Run)
	case KindScreenshots:
		return "Screenshots"
	default:
		return oneLine(p.Ask.Question)
	}
}

// stageTitle is the name of a stage for display: "PA hardening" for pa-hardening in the corpus wording (requirement 002
// §7.2), whose PA is an abbreviation.
func stageTitle(wording, name string) string {
	title := words(name)
	if rest, ok := strings.CutPrefix(title, "Pa "); ok && wording == WordingCorpus {
		return "PA " + rest
	}
	return title
}

// words turns a name into words for display: "auditor-A" into "Auditor A".
func words(name string) string {
	name = strings.NewReplacer("-", " ", "_", " ").Replace(name)
	first, size := utf8.DecodeRuneInString(name)
	return string(unicode.ToUpper(first)) + name[size:]
}

// Fill puts a set's ID and a round's number into a name of the plan: cp-{set}, screenshots/cycle-{n}. An empty set, or
// a round below 1, leaves its slot unchanged.
func Fill(template, set string, n int) string {
	var pairs []string
	if set != "" {
		pairs = append(pairs, "{set}", set)
	}
	if n > 0 {
		pairs = append(pairs, "{n}", strconv.Itoa(n))
	}
	return strings.NewReplacer(pairs...).Replace(template)
}

// DescriptionOf returns the description of one member's call in a group, or of the whole step if member is "". n is the
// round, from 1.
func (s PlanStep) DescriptionOf(member string, n int) string {
	text := s.Description
	if member != "" && s.Kind == KindTogether {
		text = strings.Replace(text, Step{Together: s.Members}.title(), words(member), 1)
	}
	return Fill(text, "", n)
}
