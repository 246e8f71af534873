package pipeline

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

func (d *decoder) stages(o object) {
	n := o.need("stages", "stages: [{name: NAME, steps: [{role: ROLE}]}]")
	if n == nil {
		return
	}
	lines, templates, folders := map[string]int{}, map[string]string{}, map[string]string{}
	for _, item := range d.list(n, "stages") {
		s, so := d.stage(item)
		if line, dup := lines[s.Name]; dup && s.Name != "" {
			d.problemAt(so.line("name"), "stage %q is there twice, first on line %d; give each stage a name of its own", s.Name, line)
		}
		lines[s.Name] = so.line("name")
		d.unique(so, "checkpoint", s.Checkpoint, "stage "+s.Name, templates)
		d.unique(so, "dir", s.Dir, "stage "+s.Name, folders)
		d.def.Stages = append(d.def.Stages, s)
	}
	d.checkReferences()
}

func (d *decoder) stage(n *yaml.Node) (Stage, object) {
	var s Stage
	o, ok := d.object(n, "a stage", "name", "for_each", "orders", "passes", "steps", "repeat", "checkpoint", "dir", "pause_after", "quality_gate")
	if !ok {
		return s, o
	}
	s.Name = o.needText("name", "name: NAME")
	if s.Name != "" {
		d.checkName(o.values["name"], "stage", s.Name)
		o.path = fmt.Sprintf("stage %q", s.Name)
	}
	if o.has("for_each") {
		s.ForEach = d.forEach(o)
	}
	s.Orders = d.orders(o)
	s.Repeat = d.repeat(o)
	s.Checkpoint = d.nameTemplate(o, "checkpoint", s)
	s.Dir = d.nameTemplate(o, "dir", s)
	s.PauseAfter = o.yesNo("pause_after")
	s.Gate = d.gate(o, s)
	s.Steps = d.steps(o, s)
	return s, o
}

func (d *decoder) forEach(o object) string {
	each := o.oneOf("for_each", "corpus")
	if len(d.def.Corpus) == 0 {
		d.problemAt(o.line("for_each"), "%s goes through the corpus, and the pipeline has none; write corpus: {NAME: {theme: ..., files: [...]}} at the top", o.at("for_each"))
	}
	if o.has("repeat") {
		d.problemAt(o.line("repeat"), "%s has for_each and repeat; keep one, and put the other in a stage of its own", o.path)
	}
	return each
}

// gate reads the condition that a round has to meet for the run to go on by itself.
func (d *decoder) gate(o object, s Stage) string {
	text := o.text("quality_gate")
	if text == "" {
		return ""
	}
	if s.ForEach != "" {
		d.problemAt(o.line("quality_gate"), "%s stands in a stage with for_each, whose passes give no score; put it into the stage that gives one", o.at("quality_gate"))
	}
	d.lines.gate[s.Name] = o.line("quality_gate")
	if _, err := ParseUntil(text); err != nil {
		d.problemAt(o.line("quality_gate"), "%s: %v", o.at("quality_gate"), err)
	}
	return text
}

func (d *decoder) repeat(o object) *Repeat {
	n := o.values["repeat"]
	if n == nil {
		return nil
	}
	r := &Repeat{Max: 1}
	f, ok := d.object(n, o.at("repeat"), "max", "until", "otherwise")
	if !ok {
		return r
	}
	if f.need("max", "max: how many rounds at most") != nil {
		f.whole("max", &r.Max, 1, 1000)
	}
	if f.has("otherwise") {
		r.Otherwise = f.oneOf("otherwise", "ask")
	}
	r.Until = f.needText("until", "until: score >= 3.5, or another condition")
	if r.Until == "" {
		return r
	}
	d.lines.until[o.text("name")] = f.line("until")
	if _, err := ParseUntil(r.Until); err != nil {
		d.problemAt(f.line("until"), "%s: %v", f.at("until"), err)
	}
	return r
}

var (
	slot     = regexp.MustCompile(`\{[^{}]*\}`)
	filledIn = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]*$`)
)

// nameTemplate reads `checkpoint` or `dir`: a name with the {set} or {n} that tells the rounds of the stage apart.
func (d *decoder) nameTemplate(o object, key string, s Stage) string {
	text := o.text(key)
	if text == "" {
		return ""
	}
	if key == "dir" {
		clean, ok := d.localPath(o.values[key], o.at(key), text)
		if !ok {
			return ""
		}
		text = clean
	} else if strings.Contains(text, "/") {
		d.problemAt(o.line(key), "%s is %q; write a name without folders", o.at(key), text)
	}
	if !filledIn.MatchString(slot.ReplaceAllString(text, "x")) {
		d.problemAt(o.line(key), "%s is %q; use letters, digits, dots, dashes and underscores, and {set} or {n}", o.at(key), text)
	}
	d.checkSlots(o, key, text, slotOf(s))
	return text
}

// slotOf is what tells the rounds of a stage apart: {set}, {n}, or nothing when there is one round.
func slotOf(s Stage) string {
	switch {
	case s.ForEach != "":
		return "{set}"
	case s.Repeat != nil:
		return "{n}"
	default:
		return ""
	}
}

func (d *decoder) checkSlots(o object, key, text, want string) {
	for _, found := range slot.FindAllString(text, -1) {
		if found != want {
			d.problemAt(o.line(key), "%s has %s, which nothing stands for here; %s", o.at(key), found, slotAdvice(want))
		}
	}
	if want != "" && !strings.Contains(text, want) {
		d.problemAt(o.line(key), "%s is %q for every round; %s", o.at(key), text, slotAdvice(want))
	}
}

func slotAdvice(want string) string {
	if want == "" {
		return "the stage has one round, so drop it"
	}
	return "write " + want + " where the rounds differ"
}
