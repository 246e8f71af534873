package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Kinds of a step: the key it is written with.
const (
	KindRole        = "role"
	KindTogether    = "together"
	KindRun         = "run"
	KindScreenshots = "screenshots"
	KindAsk         = "ask"
)

func kinds() []string {
	return []string{KindRole, KindTogether, KindRun, KindScreenshots, KindAsk}
}

func (d *decoder) steps(o object, s Stage) []Step {
	key, other := "steps", "passes"
	if s.ForEach != "" {
		key, other = other, key
	}
	n := o.values[key]
	switch {
	case o.has(other) && !o.has(key):
		d.problemAt(o.line(other), "%s has %s; a stage with for_each has passes, any other has steps: write %s", o.path, other, key)
		n = o.values[other]
	case o.has(other):
		d.problemAt(o.line(other), "%s has passes and steps; keep %s", o.path, key)
	}
	if n == nil {
		o.need(key, key+": [{role: ROLE}, ...]")
		return nil
	}
	var out []Step
	for i, item := range d.list(n, o.at(key)) {
		out = append(out, d.step(item, fmt.Sprintf("%s step %d", o.path, i+1), s))
	}
	return out
}

func (d *decoder) step(n *yaml.Node, path string, s Stage) Step {
	step := Step{Line: n.Line}
	o, ok := d.object(n, path, append(kinds(), extras()...)...)
	if !ok {
		return step
	}
	kind := d.stepKind(o)
	switch kind {
	case KindRole:
		step.Role = o.text(KindRole)
	case KindTogether:
		step.Together = o.texts(KindTogether)
	case KindRun:
		step.Run = o.text(KindRun)
	case KindScreenshots:
		step.Screenshots = d.screenshots(o)
	case KindAsk:
		d.ask(o, &step)
	}
	d.stepExtras(o, kind, s, &step)
	return step
}

func (d *decoder) stepKind(o object) string {
	found := slices.DeleteFunc(kinds(), func(k string) bool { return !o.has(k) })
	switch len(found) {
	case 0:
		d.problem(o.node, "%s says nothing to do; write one of: %s", o.path, strings.Join(kinds(), ", "))
		return ""
	case 1:
		return found[0]
	default:
		d.problem(o.node, "%s has %s; keep one, and make each of the others a step of its own", o.path, strings.Join(found, " and "))
		return found[0]
	}
}

// extras are the keys that go with some kinds of steps.
func extras() []string { return []string{"as", "see", "order", "limits", "if_failing"} }

// allowed says which of the extra keys each kind of step uses.
func allowed(kind string) []string {
	switch kind {
	case KindRole:
		return []string{"as", "see", "order", "limits", "if_failing"}
	case KindTogether:
		return []string{"as", "see", "limits"}
	case KindRun:
		return []string{"as", "limits", "if_failing"}
	default:
		return nil
	}
}

func (d *decoder) stepExtras(o object, kind string, s Stage, step *Step) {
	for _, key := range extras() {
		if kind != "" && o.has(key) && !slices.Contains(allowed(kind), key) {
			d.problemAt(o.line(key), "%s: %s does not go with %s; leave it out", o.path, key, kind)
		}
	}
	step.As, step.See = o.text("as"), o.text("see")
	if step.As != "" {
		d.checkAs(o, step.As)
	}
	if step.Order = o.text("order"); step.Order != "" {
		d.checkOrder(o, step.Order, s)
	}
	if o.has("if_failing") {
		step.IfFailing = o.oneOf("if_failing", "continue", "ask")
	}
	if o.has("limits") {
		base := d.def.Limits
		if r, ok := d.roleNamed(step.Role); ok {
			base = r.Limits
		}
		l := d.limits(o, base)
		step.Limits = &l
	}
}

func (d *decoder) checkAs(o object, as string) {
	if slices.Contains([]string{"last", "score", "verdict", "and", "or"}, as) || !untilName.MatchString(as) {
		d.problemAt(o.line("as"), "%s: as is %q, which until and see could not tell apart; begin with a letter, then letters, digits, dashes or underscores, and not last, score, verdict, and, or", o.path, as)
	}
	if line, dup := d.lines.steps[as]; dup {
		d.problemAt(o.line("as"), "%s: as %q is there twice, first on line %d; give each step a name of its own", o.path, as, line)
	}
	d.lines.steps[as] = o.line("as")
}

func (d *decoder) checkOrder(o object, order string, s Stage) {
	known := make([]string, len(s.Orders))
	for i, k := range s.Orders {
		known[i] = k.Name
	}
	if !slices.Contains(known, order) {
		d.problemAt(o.line("order"), "%s: order %q is not one of the stage's orders; %s", o.path, order, suggest(order, known))
	}
}

func (d *decoder) screenshots(o object) *Screenshots {
	s := &Screenshots{Attempts: 3}
	n := o.values[KindScreenshots]
	f, ok := d.object(n, o.path+" screenshots", "sizes", "kinds", "attempts", "if_failing", "install")
	if !ok {
		return s
	}
	if d.def.Artifact == nil {
		d.problem(n, "%s takes screenshots, and the pipeline has no artifact; write artifact: {file: NAME, seed: PATH} at the top", o.path)
	}
	s.Sizes = d.sizes(f)
	s.Kinds = d.shotKinds(f)
	f.whole("attempts", &s.Attempts, 1, 20)
	s.IfFailing = f.oneOf("if_failing", "continue", "stop")
	s.Install = f.texts("install")
	return s
}
