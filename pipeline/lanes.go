package pipeline

import (
	"slices"
	"strings"

	"github.com/passbook-run/passbook/pipeline/expression"
)

// MaxLanes bounds the items of the list of a stage with lanes.
const MaxLanes = 10000

// Sources of the list of a stage with lanes.
const (
	ItemsOfOutput  = "output" // a list in the output of a role
	ItemsOfCommand = "lines"  // the output of a command
	ItemsOfGlob    = "glob"   // the files of the workspace that a glob fits
)

// Lanes is the list of a stage in a plan.
type Lanes struct {
	Each
	Source string   `json:"source"`         // Items…
	From   string   `json:"from,omitempty"` // key of the step with the list
	ID     string   `json:"id,omitempty"`   // of that step
	Path   []string `json:"path,omitempty"` // of the list in the output of a role
}

// Continues reports whether a lane that fails is left out without a question.
func (l Lanes) Continues() bool { return l.IfFailing == "continue" }

// listPath splits the name of a list: the id of a step, and the members that lead to the list; nil: it is a glob.
func listPath(in string) []string {
	path := strings.Split(in, ".")
	for _, name := range path {
		if !expression.Name(name) {
			return nil
		}
	}
	return path
}

// listOutput returns the output that a list names; false: the list is a glob.
func (d *Definition) listOutput(in string) (o output, path []string, named bool) {
	path = listPath(in)
	if path == nil {
		return output{}, nil, false
	}
	all := d.outputs()
	i := slices.IndexFunc(all, func(o output) bool { return o.id == path[0] })
	if i < 0 {
		return output{}, path, false
	}
	return all[i], path[1:], true
}

// lanes returns the list of a stage; nil: it has no lanes.
func (e *expander) lanes(si int) *Lanes {
	each := e.def.Stages[si].Each
	if each == nil {
		return nil
	}
	l := Lanes{Each: *each, Source: ItemsOfGlob}
	if o, path, named := e.def.listOutput(each.In); named {
		l.From, l.ID = e.keys[o.stage][0][o.step], o.id
		if l.Source, l.Path = ItemsOfOutput, path; e.def.Stages[o.stage].Steps[o.step].Run != "" {
			l.Source, l.Path = ItemsOfCommand, nil
		}
	}
	return &l
}

// listed reports whether the output of a command is the list of a later stage.
func (e *expander) listed(p Step) bool {
	return p.Run != "" && p.ID != "" && slices.ContainsFunc(e.def.Stages, func(s Stage) bool {
		return s.Each != nil && s.Each.In == p.ID+"."+ItemsOfCommand
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
	o, path, named := d.def.listOutput(in)
	if !named {
		d.checkGlob(at, in, path)
		return
	}
	if why, _ := o.seenFrom(d.def, where{stage, ofStage}); why != "" {
		d.wrong(at, "is %q: %s, %s", in, o.id, why)
		return
	}
	command := d.def.Stages[o.stage].Steps[o.step].Run != ""
	lines := len(path) == 1 && path[0] == ItemsOfCommand
	member, ok := expression.Member(o.typ, path)
	switch {
	case command && !lines:
		d.wrong(at, "is %q, and its step runs a command; write %s.%s", in, o.id, ItemsOfCommand)
	case command:
	case !ok:
		d.wrong(at, "is %q, which is not in the output of %s; %s", in, o.id, suggest(path[len(path)-1], sortedMembers(o.typ)))
	case !expression.IsList(member):
		d.wrong(at, "is %q, which is not a list; name a list in the schema of its role", in)
	}
}

// checkGlob checks a list that names no step.
func (d *decoder) checkGlob(at location, in string, path []string) {
	if strings.TrimSpace(in) == "" {
		return // reported as a text
	}
	if path == nil && d.def.Workspace == nil {
		d.wrong(at, "is %q, and the pipeline has no workspace with such files; write a list in the output of an earlier step, "+
			"such as plan.files, ID.lines of a command, or add a workspace", in)
		return
	}
	if d.def.Workspace == nil || len(path) > 1 && (path[len(path)-1] == ItemsOfCommand || path[len(path)-1] == "items") {
		d.wrong(at, "is %q, and no step is called so; write a list in the output of an earlier step, such as plan.files, "+
			"ID.lines of a command, or a glob of files in the workspace", in)
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
	case p.Ask != nil:
		d.problem(step, "%s asks, and a lane asks only about a failure or a conflict; ask in a later stage", d.name(at))
	}
	for _, name := range append(slices.Clone(p.Together), p.Role) {
		r, ok := d.roleNamed(name)
		switch {
		case !ok:
		case r.Gives == GivesArtifact:
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
