package pipeline

import "fmt"

// NotCarriedOut lists what a checked definition asks for and this release only plans. A run of it is refused before anything is paid for.
func (d *Definition) NotCarriedOut() Problems {
	var out Problems
	say := func(line int, what string) { out = append(out, Problem{File: d.File, Line: max(line, 1), What: what}) }
	if d.Workspace != nil {
		say(0, "workspace is planned, but agents cannot change a tree in place yet; use artifact instead")
	}
	for _, r := range d.Roles {
		if r.Gives == GivesChanges {
			say(0, fmt.Sprintf("role %s gives changes, which is planned, but not carried out yet; use gives: artifact or gives: report", r.Name))
		}
	}
	for _, st := range d.Stages {
		for _, s := range st.Steps {
			if s.Run != "" {
				say(s.Line, "run steps are planned, but not carried out yet; take the step out")
			}
		}
	}
	return out
}
