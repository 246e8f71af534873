package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/passbook-run/passbook/internal/lazyregexp"
	"github.com/passbook-run/passbook/pipeline/template"
	"github.com/passbook-run/passbook/run"
)

// Input is a value of the start of a run. Prompts have it as {{NAME}}.
type Input struct {
	Name string `json:"name" yaml:"-"`
	Type string `json:"type" is:"string|number|boolean|list" default:"string"` // Type of the value; string.
	// The value of a run whose start names none; without it, such a start is refused.
	Default     *string `json:"default,omitempty" is:"value" eg:"src/"`
	Description string  `json:"description,omitempty" is:"text" eg:"folder to work in"` // What it is, for messages.
	Value       *string `json:"value,omitempty" yaml:"-"`                               // of a run; a list has an item on each line

	listed bool // the default is written as a list
}

// Types of inputs.
const (
	InputString  = "string"
	InputNumber  = "number"
	InputBoolean = "boolean"
	InputList    = "list" // of words
)

// finish reads the default of a list, which can be a list or words in a text.
func (i *Input) finish(d *decoder, at location) {
	n := d.get(at.key("default"))
	if i.listed = n != nil && n.Kind == yaml.SequenceNode; i.listed {
		*i.Default = strings.Join(d.texts(at.key("default")), "\n")
	} else if i.Default != nil && i.Type == InputList {
		*i.Default = listOf(*i.Default)
	}
}

// refuses returns why a text is no value of the input, or "".
func (i Input) refuses(text string) string {
	switch i.Type {
	case InputNumber:
		if _, err := strconv.ParseFloat(text, 64); err != nil {
			return fmt.Sprintf("is %q; write a number", text)
		}
	case InputBoolean:
		if text != "true" && text != "false" {
			return fmt.Sprintf("is %q; write true or false", text)
		}
	}
	return ""
}

// listOf separates the words of a list by line feeds.
func listOf(text string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(text, ",", " ")), "\n")
}

// nameOfInput is the form of the names that prompts can have between braces.
var nameOfInput = lazyregexp.New(`^[A-Za-z]`)

// checkInputs reports inputs whose names or defaults cannot be used.
func (d *decoder) checkInputs() {
	for _, in := range d.def.Inputs {
		at := location{"inputs", in.Name}
		if reserved := template.Reserved(); slices.Contains(reserved, in.Name) {
			key, _, _ := d.find(at)
			d.problem(key, "inputs: %q is a placeholder of every prompt ({{%[1]s}}); choose another name", in.Name)
		}
		if !nameOfInput.MatchString(in.Name) || strings.HasPrefix(in.Name, "with.") {
			key, _, _ := d.find(at)
			d.problem(key, "inputs: %q cannot be a placeholder; begin with a letter, and not with with.", in.Name)
		}
		if in.Default == nil {
			continue
		}
		if in.listed && in.Type != InputList {
			d.wrong(at.key("default"), "is a list; write type: list, or one text")
			continue
		}
		if why := in.refuses(*in.Default); why != "" {
			d.wrong(at.key("default"), "%s", why)
		}
	}
}

func (d *Definition) inputNames() (names []string) {
	for _, in := range d.Inputs {
		names = append(names, in.Name)
	}
	return names
}

// Give sets the inputs of a run, by name. All problems are returned together; then the plan is as it was.
func (p *Plan) Give(values map[string]string) (problems []string) {
	given := slices.Clone(p.Inputs)
	var names []string
	for i, in := range given {
		names = append(names, in.Name)
		text, ok := values[in.Name]
		switch {
		case !ok && in.Default == nil:
			about := in.Description
			if about != "" {
				about = " (" + about + ")"
			}
			problems = append(problems, fmt.Sprintf("input %s has no value%s: add --input %[1]s=VALUE", in.Name, about))
			continue
		case !ok:
			text = *in.Default
		case in.Type == InputList:
			text = listOf(text)
		}
		if why := in.refuses(text); why != "" {
			problems = append(problems, fmt.Sprintf("input %s %s", in.Name, why))
		}
		given[i].Value = &text
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(names, name) {
			problems = append(problems, fmt.Sprintf("the pipeline has no input %s; %s", name, suggest(name, names)))
		}
	}
	if len(problems) == 0 {
		p.Inputs = given
	}
	return problems
}

// ByStart is what asked for an unattended run, where its definition does not.
const ByStart = "start"

// KeepGiven takes over what a run was given at its start for another version of its plan, which was given nothing.
func (p *Plan) KeepGiven(old *Plan) {
	if p.Unattended == "" && old.Unattended == ByStart {
		p.Unattended = ByStart
	}
	for i, in := range p.Inputs {
		j := slices.IndexFunc(old.Inputs, func(o Input) bool { return o.Name == in.Name })
		if in.Value == nil && j >= 0 {
			p.Inputs = slices.Clone(p.Inputs)
			p.Inputs[i].Value = old.Inputs[j].Value
		}
	}
}

// ByDefinition is what asked for an unattended run, where its definition does.
const ByDefinition = "definition"

func (d *Definition) unattended() string {
	if d.Unattended {
		return ByDefinition
	}
	return ""
}

// Acts reports whether steps reach an external action before they ask; decides is false if they reach neither.
func Acts(steps []PlanStep) (acts, decides bool) {
	for _, s := range steps {
		if s.Kind == KindAsk || s.Effect == run.EffectExternal {
			return s.Kind != KindAsk, true
		}
	}
	return false, false
}

// ActsFrom reports whether an external action comes before a question, from the beginning of a stage.
func (p *Plan) ActsFrom(stage int) bool {
	for _, s := range p.Stages[stage:] {
		for _, r := range s.Rounds {
			if acts, decides := Acts(r.Steps); decides {
				return acts
			}
		}
	}
	return false
}
