package pipeline

import (
	"slices"
	"strings"

	"github.com/passbook-run/passbook/run"
)

// checkProjects reports names, needs and definitions of projects that cannot be used.
func (d *decoder) checkProjects() {
	if len(d.def.Projects) == 0 {
		return
	}
	aliases := d.keys(location{"projects"})
	for _, p := range d.def.Projects {
		at := location{"projects", p.Alias}
		key, _, _ := d.find(at)
		if slices.Contains(run.Reserved, p.Alias) || strings.HasPrefix(p.Alias, "cp-") {
			d.problem(key, "projects: project %q has the name of a file of the run directory; choose another", p.Alias)
		}
		d.existing(at.key("pipeline"))
		for _, n := range d.items(at.key("needs")) {
			switch {
			case n.Value == p.Alias:
				d.problem(n, "%s has the project itself; remove it", d.name(at.key("needs")))
			case !slices.Contains(aliases, n.Value):
				d.problem(n, "%s has %q, not one of projects; %s", d.name(at.key("needs")), n.Value,
					suggest(n.Value, aliases))
			}
		}
	}
	if rest := d.def.cycle(); len(rest) > 0 {
		d.wrong(location{"projects"}, "need each other in a circle (%s); remove one of their needs",
			strings.Join(rest, ", "))
	}
	for _, r := range d.def.Roles {
		if r.Gives != "" && r.Gives != GivesReport {
			d.wrong(location{"roles", r.Name, "gives"}, "is %s, and a pipeline with projects only judges their work; "+
				"write report", r.Gives)
		}
	}
}

// ordered lists the projects in the order of the file, with those that a project needs before it.
func (d *Definition) ordered() []Project {
	done, _ := d.sorted()
	return done
}

// cycle lists the projects that wait for each other; none: all can start.
func (d *Definition) cycle() []string {
	_, left := d.sorted()
	var names []string
	for _, p := range left {
		names = append(names, p.Alias)
	}
	return names
}

// sorted returns the projects that can be ordered, and those that cannot. A need without a project is ignored, because
// it is reported.
func (d *Definition) sorted() (done, left []Project) {
	left = slices.Clone(d.Projects)
	waits := func(p Project) bool {
		return slices.ContainsFunc(left, func(o Project) bool { return slices.Contains(p.Needs, o.Alias) })
	}
	for {
		i := slices.IndexFunc(left, func(p Project) bool { return !waits(p) })
		if i < 0 {
			return done, left
		}
		done, left = append(done, left[i]), slices.Delete(left, i, i+1)
	}
}
