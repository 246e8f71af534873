package pipeline

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

// Bounds of lanes.
const (
	MaxLanes     = 10000 // items of a list
	defaultLanes = 4
)

// Sources of the list of a stage with lanes.
const (
	ItemsOfRole    = "items" // the reply of a role that returns a list
	ItemsOfCommand = "lines" // the output of a command
	ItemsOfGlob    = "glob"  // the files of the workspace that a glob fits
)

// Lanes is the list of a stage in a plan.
type Lanes struct {
	Each
	Source string `json:"source"`         // Items…
	From   string `json:"from,omitempty"` // key of the step with the list
}

// Continues reports whether a lane that fails is left out without a question.
func (l Lanes) Continues() bool { return l.IfFailing == "continue" }

var listName = lazyregexp.New(`^([A-Za-z0-9][A-Za-z0-9._-]*)\.(items|lines)$`)

// listStep returns the step that a list names by its `as`; false: the list is a glob.
func listStep(in string) (as, source string, named bool) {
	m := listName.FindStringSubmatch(in)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}

// lanes returns the list of a stage; nil: it has no lanes.
func (e *expander) lanes(si int) *Lanes {
	each := e.def.Stages[si].Each
	if each == nil {
		return nil
	}
	l := Lanes{Each: *each, Source: ItemsOfGlob}
	as, source, named := listStep(each.In)
	for i := range si {
		for j, p := range e.def.Stages[i].Steps {
			if named && p.As == as {
				l.Source, l.From = source, e.keys[i][0][j]
			}
		}
	}
	return &l
}

// listed reports whether the output of a command is the list of a later stage.
func (e *expander) listed(p Step) bool {
	return p.Run != "" && p.As != "" && slices.ContainsFunc(e.def.Stages, func(s Stage) bool {
		return s.Each != nil && s.Each.In == p.As+"."+ItemsOfCommand
	})
}

// checkLanes checks the stages with lanes.
func (d *decoder) checkLanes() {
	for si, s := range d.def.Stages {
		at := location{"stages"}.item(si)
		if s.Each == nil {
			if s.Merge != nil {
				d.wrong(at.key("merge"), "merges lanes, and the stage has no each; add each, or remove merge")
			}
			continue
		}
		for _, key := range []string{"for_each", "repeat", "orders", "quality_gate", "checkpoint", "dir"} {
			if d.get(at.key(key)) != nil {
				d.wrong(at.key(key), "does not go with each; leave it out, or put it into a separate stage")
			}
		}
		d.checkList(at.key("each").key("in"), si, s.Each.In)
		for pi, p := range s.Steps {
			d.checkLaneStep(d.steps(at, s).item(pi), p)
		}
	}
}

// checkList checks where a list comes from.
func (d *decoder) checkList(at location, stage int, in string) {
	as, source, named := listStep(in)
	if !named {
		d.checkGlob(at, in)
		return
	}
	var known []string
	for i, s := range d.def.Stages {
		for _, p := range s.Steps {
			r, isRole := d.roleNamed(p.Role)
			gives := map[string]bool{ItemsOfRole: isRole && r.Gives == GivesList, ItemsOfCommand: p.Run != ""}
			if p.As != "" && gives[source] && i < stage {
				known = append(known, p.As+"."+source)
			}
			if p.As != as {
				continue
			}
			switch {
			case i >= stage:
				d.wrong(at, "is %q, a step that has not run by then; name one of an earlier stage", in)
			case s.ForEach != "" || s.Each != nil:
				d.wrong(at, "is %q, a step with a reply for each round; name a step that runs once", in)
			case source == ItemsOfRole && p.Run != "":
				d.wrong(at, "is %q, and its step runs a command; write %s.lines", in, as)
			case source == ItemsOfRole && !gives[source]:
				d.wrong(at, "is %q, and its step has no role that gives: list; write gives: list in the role", in)
			case !gives[source]:
				d.wrong(at, "is %q, and its step runs no command; write %s.items", in, as)
			}
			return
		}
	}
	d.wrong(at, "is %q, and no step is called %q; %s", in, as, suggest(in, known))
}

// checkGlob checks a list that names no step.
func (d *decoder) checkGlob(at location, in string) {
	if strings.TrimSpace(in) == "" {
		return // reported as a text
	}
	name, _, _ := strings.Cut(in, ".")
	for _, s := range d.def.Stages {
		for _, p := range s.Steps {
			switch {
			case p.As == "" || p.As != name:
			case p.Run != "":
				d.wrong(at, "is %q, and %q is a step; write %s.lines for the lines of its output", in, name, name)
				return
			case p.Role != "":
				d.wrong(at, "is %q, and %q is a step; write %s.items for the list in its reply", in, name, name)
				return
			}
		}
	}
	if d.def.Workspace == nil {
		d.wrong(at, "is %q, and the pipeline has no workspace with such files; write NAME.items or NAME.lines of an "+
			"earlier step, or add a workspace", in)
	} else if err := CheckPath(in); err != nil {
		d.wrong(at, "%v", err)
	}
}

// checkLaneStep reports what a lane cannot do.
func (d *decoder) checkLaneStep(at location, p Step) {
	step := d.get(at)
	switch {
	case p.Screenshots != nil:
		d.problem(step, "%s takes screenshots of the artifact, and lanes do not change it; move it out of each", d.name(at))
	case p.Ask != "":
		d.problem(step, "%s asks, and a lane asks only about a failure or a conflict; ask in a later stage", d.name(at))
	}
	for _, name := range append(slices.Clone(p.Together), p.Role) {
		r, ok := d.roleNamed(name)
		switch {
		case !ok:
		case r.Gives == GivesArtifact || r.Gives == GivesList:
			d.problem(step, "role %q outputs %s, and roles in lanes output changes or reports; use another role", name, r.Gives)
		case len(r.Notes) > 0:
			d.problem(step, "role %q adds to notes, and lanes share none; remove notes from the role", name)
		case r.Session != "":
			d.problem(step, "role %q continues its session, and lanes cannot; remove session from the role", name)
		case r.Score != nil:
			d.problem(step, "role %q has a score, and a stage with each has no loop for it; remove the score", name)
		}
	}
}

// checkSchema reads the JSON Schema of the list that a role returns.
func (d *decoder) checkSchema(at location, r *Role) {
	if d.get(at) == nil {
		return
	}
	if r.Gives != GivesList {
		d.wrong(at, "describes a list, and the role outputs %s; remove the schema, or write gives: list", r.Gives)
		return
	}
	clean, ok := d.existing(at)
	if r.Schema = clean; !ok {
		return
	}
	raw, err := fs.ReadFile(d.folder, r.Schema)
	if err == nil {
		_, err = listSchema(string(raw))
	}
	if err != nil {
		d.wrong(at, "names %s, which is not a JSON Schema: %s; correct it", r.Schema, schemaFault(err))
		return
	}
	r.SchemaText = string(raw)
}

// CheckList checks a JSON list against its JSON Schema.
func CheckList(schema, list string) error {
	compiled, err := listSchema(schema)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(list))
	if err != nil {
		return err
	}
	if err := compiled.Validate(value); err != nil {
		return errors.New(schemaFault(err))
	}
	return nil
}

// listSchema compiles the JSON Schema of a list.
func listSchema(text string) (*jsonschema.Schema, error) {
	source, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // it refers to nothing else
	const url = "https://passbook.invalid/list.json"
	if err := c.AddResource(url, source); err != nil {
		return nil, err
	}
	return c.Compile(url)
}

// schemaFault is what a JSON Schema does not allow, with the place in the value, without the addresses of schemas.
func schemaFault(err error) string {
	if load := (*jsonschema.LoadURLError)(nil); errors.As(err, &load) {
		return "it refers to " + load.URL + ", and a schema has all its parts in its own file"
	}
	if invalid := (*jsonschema.SchemaValidationError)(nil); errors.As(err, &invalid) {
		err = invalid.Err
	}
	var faults []string
	deeper := func(l string) int { return len(l) - len(strings.TrimLeft(l, " ")) }
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	for i, l := range lines {
		fault, place := strings.CutPrefix(strings.TrimSpace(l), "- ")
		if place && (i+1 == len(lines) || deeper(lines[i+1]) <= deeper(l)) { // it has no causes
			faults = append(faults, fault)
		}
	}
	if len(faults) == 0 {
		return strings.Join(strings.Fields(err.Error()), " ")
	}
	if more := len(faults) - maxFaults; more > 0 {
		faults = append(faults[:maxFaults], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(faults, ", ")
}

// maxFaults is the maximum number of faults of a list that a message names.
const maxFaults = 5
