package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/lazyregexp"
	"github.com/passbook-run/passbook/pipeline/expression"
	"github.com/passbook-run/passbook/pipeline/template"
)

// output is what a step leaves for conditions and prompts: the JSON of a role with a schema, the reply and the marks of
// another role, the result of a command.
type output struct {
	id          string
	stage, step int
	typ         expression.Type
}

// Members of the outputs of steps, beside those of a schema.
const (
	OutputOK   = "ok"     // of a command: it exited with code 0
	OutputExit = "exit"   // of a command: its exit code
	OutputText = "output" // of a command: what it printed
	OutputRole = "text"   // of a role without a schema: its reply
)

// maxKept bounds the outputs that a run keeps.
const maxKept = 40

var idShape = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_]*$`)

// idOf is the name of a step's output: its id, or its role if no other step calls it; empty: it has none.
func (d *Definition) idOf(p Step) string {
	if p.ID == "" && p.Role != "" && d.calls(p.Role) == 1 && !d.taken(p.Role) {
		return p.Role
	}
	return p.ID
}

// calls counts the steps that call a role.
func (d *Definition) calls(role string) (n int) {
	for _, s := range d.Stages {
		for _, p := range s.Steps {
			if p.Role == role || slices.Contains(p.Together, role) {
				n++
			}
		}
	}
	return n
}

// taken reports whether a name is that of a stage, of an input, or the id of a step.
func (d *Definition) taken(name string) bool {
	return slices.Contains(d.inputNames(), name) || slices.Contains(expression.Reserved(), name) ||
		slices.ContainsFunc(d.Stages, func(s Stage) bool {
			return s.Name == name || slices.ContainsFunc(s.Steps, func(p Step) bool { return p.ID == name })
		})
}

// outputs lists the outputs of all steps. A member of a group has its role as its name.
func (d *Definition) outputs() (all []output) {
	if d.left != nil {
		return d.left
	}
	defer func() { d.left = all }()
	for si, s := range d.Stages {
		for pi, p := range s.Steps {
			add := func(id string, typ expression.Type) {
				if expression.Name(id) {
					all = append(all, output{id, si, pi, typ})
				}
			}
			switch {
			case p.Run != "":
				add(p.ID, expression.Object(map[string]expression.Type{OutputOK: expression.Bool, OutputExit: expression.Whole,
					OutputText: expression.String}))
			case p.Role != "":
				add(d.idOf(p), d.outputOf(p.Role))
			}
			for _, member := range p.Together {
				if d.calls(member) == 1 && !d.taken(member) {
					add(member, d.outputOf(member))
				}
			}
		}
	}
	return all
}

// outputOf is the type of a role's output.
func (d *Definition) outputOf(name string) expression.Type {
	r, ok := d.role(name)
	if !ok {
		return expression.Any
	}
	if r.Schema != "" {
		return schemaType(r)
	}
	members := map[string]expression.Type{OutputRole: expression.String}
	if r.Verdict != nil {
		members[expression.Verdict], members[expression.Approved] = expression.String, expression.Bool
	}
	if r.Score != nil {
		members[expression.Score] = expression.Number
	}
	return expression.Object(members)
}

func (d *Definition) role(name string) (Role, bool) {
	i := slices.IndexFunc(d.Roles, func(r Role) bool { return r.Name == name })
	if i < 0 {
		return Role{}, false
	}
	return d.Roles[i], true
}

// where is a place that reads outputs: a step, or with untilEnd the conditions at the end of a round, or with ofStage what
// decides about the whole stage.
type where struct{ stage, step int }

const ofStage = -1

// untilEnd is after all steps of a round.
func (d *Definition) untilEnd(stage int) where { return where{stage, len(d.Stages[stage].Steps)} }

// seenFrom returns why an output has no value at a place, or whether it may have none.
func (o output) seenFrom(d *Definition, at where) (why string, maybe bool) {
	s := d.Stages[o.stage]
	step := s.Steps[o.step]
	switch {
	case o.stage > at.stage, o.stage == at.stage && o.step >= at.step && s.Repeat == nil, o.stage == at.stage && at.step < 0:
		return "which is the output of a step that has not run by then; name an earlier one", false
	case o.stage < at.stage && s.Each != nil:
		return "which is the output of a step in each lane; name another", false
	case o.stage < at.stage && s.ForEach != "":
		return "which is the output of a step in each set; name another", false
	case o.stage == at.stage:
		return "", step.When != "" || o.step >= at.step
	}
	return "", step.When != "" || s.When != "" || s.Repeat != nil && o.step > d.lastNeeded(o.stage)
}

// lastNeeded is the last step without which the loop of a stage does not end before its last round; -1: there is none.
func (d *Definition) lastNeeded(stage int) int {
	s := d.Stages[stage]
	last := -1
	for i, p := range s.Steps {
		for _, need := range d.needs(stage, s.Repeat.Until) {
			if d.provides(p, need) {
				last = max(last, i)
			}
		}
	}
	return last
}

// provides reports whether a step sets what a condition needs; see needs.
func (d *Definition) provides(p Step, need string) bool {
	if d.idOf(p) == need || slices.Contains(p.Together, need) {
		return true
	}
	for _, name := range append(slices.Clone(p.Together), p.Role) {
		r, ok := d.role(name)
		if ok && (need == expression.Verdict && r.Judges() || need == expression.Score && r.Score != nil && p.Role != "") {
			return true
		}
	}
	return false
}

// needs lists what the steps of a round must have set before a condition of their stage is evaluated: verdict, score, and
// ids of steps of the stage.
func (d *Definition) needs(stage int, condition string) (needs []string) {
	e, err := expression.Parse(condition)
	if err != nil {
		return nil
	}
	all := d.outputs()
	add := func(name string) {
		if !slices.Contains(needs, name) {
			needs = append(needs, name)
		}
	}
	for _, name := range e.Names() {
		switch name {
		case expression.Approved, expression.Verdict:
			add(expression.Verdict)
		case expression.Score, expression.Scores:
			add(expression.Score)
		default:
			if slices.ContainsFunc(all, func(o output) bool { return o.id == name && o.stage == stage }) {
				add(name)
			}
		}
	}
	return needs
}

func thresholdOf(condition string) *float64 {
	e, err := expression.Parse(condition)
	if err != nil {
		return nil
	}
	return e.Threshold()
}

// kept lists the ids of outputs that conditions, prompts and lists of lanes use.
func (d *Definition) kept() []string {
	used := map[string]bool{}
	add := func(condition string) {
		if e, err := expression.Parse(condition); err == nil {
			for _, name := range e.Names() {
				used[name] = true
			}
		}
	}
	for _, s := range d.Stages {
		add(s.When)
		add(s.Gate)
		if s.Repeat != nil {
			add(s.Repeat.Until)
		}
		if s.Each != nil {
			used[strings.Split(s.Each.In, ".")[0]] = true
		}
		for _, p := range s.Steps {
			add(p.When)
		}
	}
	for _, r := range d.Roles {
		for _, id := range r.Uses {
			used[id] = true
		}
	}
	var kept []string
	for _, o := range d.outputs() {
		if used[o.id] {
			kept = append(kept, o.id)
		}
	}
	return kept
}

// known are the types of all names that conditions can have.
func (d *Definition) known() expression.Types {
	known := expression.Types{expression.Approved: expression.Bool, expression.Verdict: expression.String,
		expression.Score: expression.Number, expression.Scores: expression.List(expression.Number),
		expression.Round: expression.Whole, expression.Task: expression.String}
	for _, in := range d.Inputs {
		typ, ok := map[string]expression.Type{InputString: expression.String, InputNumber: expression.Number,
			InputBoolean: expression.Bool, InputList: expression.List(expression.String)}[in.Type]
		if known[in.Name] = typ; !ok {
			known[in.Name] = expression.Any // another type is reported
		}
	}
	for _, o := range d.outputs() {
		known[o.id] = o.typ
	}
	return known
}

// checkOutputs reports ids that cannot be names, clash, or are too many, and placeholders of prompts without a value.
func (d *decoder) checkOutputs() {
	def := d.def
	owners := map[string]string{}
	for _, name := range expression.Reserved() {
		owners[name] = "a variable of every condition"
	}
	for _, in := range def.Inputs {
		owners[in.Name] = "an input"
	}
	for _, s := range def.Stages {
		owners[s.Name] = "a stage"
	}
	for si, s := range def.Stages {
		for pi, p := range s.Steps {
			at := d.steps(location{"stages"}.item(si), s).item(pi).key("id")
			if p.ID == "" {
				continue
			}
			if !idShape.MatchString(p.ID) {
				continue // reported by the schema
			}
			if !expression.Name(p.ID) {
				d.wrong(at, "is %q, a word of the language of conditions; choose another", p.ID)
			} else if owner := owners[p.ID]; owner != "" {
				d.wrong(at, "is %q, the name of %s too; choose another", p.ID, owner)
			}
			owners[p.ID] = "another step"
		}
	}
	if kept := def.kept(); len(kept) > maxKept {
		d.wrong(location{"stages"}, "use %d outputs of steps; a run keeps at most %d", len(kept), maxKept)
	}
}

// checkPlaceholders reports outputs in the prompt of a role that have no value in a step that uses the prompt.
func (d *decoder) checkPlaceholders(r Role, src string) {
	for _, piece := range template.Scan(src) {
		path := strings.Split(piece.Name, ".")
		for _, o := range d.def.outputs() {
			if o.id != path[0] {
				continue
			}
			if why := d.noValue(r, o, path); why != "" {
				d.found = append(d.found, Problem{File: r.Prompt, Line: piece.Line, What: piece.Text + " " + why})
			}
		}
	}
}

// noValue returns why a member of an output has no value in a prompt, or "".
func (d *decoder) noValue(r Role, o output, path []string) string {
	if _, ok := expression.Member(o.typ, path[1:]); !ok {
		return fmt.Sprintf("is not in the output of %s; %s", o.id, suggest(path[len(path)-1], sortedMembers(o.typ)))
	}
	for si, s := range d.def.Stages {
		for pi, p := range s.Steps {
			if p.Role != r.Name && !slices.Contains(p.Together, r.Name) {
				continue
			}
			if why, _ := o.seenFrom(d.def, where{si, pi}); why != "" {
				return "has no value in stage " + s.Name + ": " + o.id + ", " + why
			}
		}
	}
	return ""
}

func sortedMembers(t expression.Type) []string {
	return slices.Sorted(slices.Values(expression.Members(t)))
}

// promptNames lists what a prompt can have between braces besides the placeholders of every prompt: inputs, and outputs
// with their members.
func (d *Definition) promptNames() []string {
	names := d.inputNames()
	for _, o := range d.outputs() {
		names = append(names, o.id)
		for _, member := range sortedMembers(o.typ) {
			names = append(names, o.id+"."+member)
		}
	}
	return names
}

// namesOutput reports whether a placeholder names an output, or a member of one.
func (d *Definition) namesOutput(name string) bool {
	id, _, _ := strings.Cut(name, ".")
	return slices.ContainsFunc(d.outputs(), func(o output) bool { return o.id == id })
}

// usedBy lists the outputs in a prompt.
func (d *Definition) usedBy(src string) []string {
	ids := map[string]bool{}
	for _, piece := range template.Scan(src) {
		id, _, _ := strings.Cut(piece.Name, ".")
		if d.namesOutput(id) {
			ids[id] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}
