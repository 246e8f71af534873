package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/pipeline/expression"
)

// ConfigHash returns the first 16 hex digits of the SHA-256 of the significant fields, as canonical JSON: members in
// this order, lists in the order of the file. Two definitions with the same hash have the same passes with the same
// files. It excludes limits, budget, the number of repetitions and their thresholds, labels and themes for display, and
// everything that only observes (pauses, tallies, scores).
func ConfigHash(d *Definition) string {
	text, err := json.Marshal(append(optional("Kind", d.Kind), append(append(optional("Delivery", d.Delivery),
		significantProjects(d.Projects)...), object{
		{"Agents", each(d.Agents, func(a Agent) object {
			return object{{"Name", a.Name}, {"Run", a.Run}, {"Reply", a.Reply}}
		})},
		{"Artifact", d.Artifact}, {"Workspace", d.Workspace}, {"AlwaysRead", d.AlwaysRead},
		{"Roles", each(d.Roles, func(r Role) object {
			more := slices.Concat(optional("Unprotected", !r.Protected()), optional("Schema", r.Schema),
				optional("SchemaText", r.SchemaText))
			return append(object{{"Name", r.Name}, {"Prompt", r.Prompt}, {"Gives", r.Gives}, {"Agent", r.Agent},
				{"Checks", r.Checks}}, more...)
		})},
		{"Corpus", each(d.Corpus, func(s Set) object { return object{{"ID", s.ID}, {"Files", s.Files}} })},
		{"Stages", each(d.Stages, significantStage)},
	}...)...))
	if err != nil {
		panic(err) // plain data always marshals
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:16]
}

// significantProjects is left out of definitions without projects.
func significantProjects(all []Project) object {
	if len(all) == 0 {
		return nil
	}
	return object{{"Projects", each(all, func(p Project) object {
		return object{{"Alias", p.Alias}, {"Source", p.Source}, {"Pipeline", p.Pipeline}, {"Needs", p.Needs}}
	})}}
}

func significantStage(s Stage) object {
	until, otherwise := "", ""
	if s.Repeat != nil {
		otherwise = s.Repeat.Otherwise
		until = shapeOf(s.Repeat.Until)
	}
	in := ""
	if s.Each != nil {
		in = s.Each.In
	}
	return append(append(optional("Each", in), optional("When", shapeOf(s.When))...), object{
		{"Name", s.Name}, {"ForEach", s.ForEach}, {"Checkpoint", s.Checkpoint}, {"Dir", s.Dir},
		{"Repeats", s.Repeat != nil}, {"Until", until}, {"Otherwise", otherwise},
		{"Orders", each(s.Orders, func(o Order) object {
			return object{{"Name", o.Name}, {"Num", o.Num},
				{"Den", o.Den}}
		})},
		{"Steps", each(s.Steps, significantStep)},
	}...)
}

func significantStep(p Step) object {
	ask := Ask{}
	if p.Ask != nil {
		ask = *p.Ask
	}
	out := object{{"Role", p.Role}, {"Run", p.Run}, {"Ask", ask.Question}, {"ID", p.ID}, {"See", p.See}, {"Order", p.Order}}
	if ask.Type != AskAlways {
		out = append(out, optional("AskType", ask.Type)...)
	}
	if p.IfFailing == "ask" {
		out = append(out, member{"IfFailing", p.IfFailing})
	}
	out = append(append(out, optional("Effect", p.Effect)...), optional("When", shapeOf(p.When))...)
	shots := Screenshots{}
	if p.Screenshots != nil {
		shots = *p.Screenshots
	}
	return append(out, object{{"Together", p.Together}, {"Sizes", shots.Sizes}, {"Kinds", shots.Kinds}}...)
}

// shapeOf is a condition without its thresholds; empty: there is none.
func shapeOf(condition string) string {
	e, err := expression.Parse(condition)
	if err != nil {
		return ""
	}
	return e.Shape()
}

// object is a JSON object with its members in this order.
type object []member

type member struct {
	name  string
	value any
}

func (o object) MarshalJSON() ([]byte, error) {
	members := make([]string, len(o))
	for i, m := range o {
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		members[i] = `"` + m.name + `":` + string(value)
	}
	return []byte("{" + strings.Join(members, ",") + "}"), nil
}

// optional is a member that is left out if it is the zero value.
func optional[T comparable](name string, value T) object {
	if value == *new(T) {
		return nil
	}
	return object{{name, value}}
}

// each returns null for an empty list, as the encoding of a nil slice.
func each[T any](things []T, of func(T) object) []object {
	var out []object
	for _, t := range things {
		out = append(out, of(t))
	}
	return out
}
