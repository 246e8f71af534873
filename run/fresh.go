package run

import (
	"cmp"
	"slices"
	"strings"
)

// Checked is the last result of a command on the workspace.
type Checked struct {
	Step   string `json:"step"` // key in the plan
	Name   string `json:"name"`
	Passed bool   `json:"passed"`
	Fresh  bool   `json:"fresh,omitempty"` // in a fresh folder
	Tree   string `json:"tree"`
	Output *Blob  `json:"output,omitempty"` // in a fresh folder, failed: what both printed
}

// check keeps the result of a command.
func (f *folder) check(p *PassEnd) {
	if p.Role != commandRole || p.Outcome != CategoryOK || f.Tree == nil || len(f.Projects) > 0 || f.LaneOf != nil {
		return
	}
	c := Checked{Step: cmp.Or(p.Fresh, p.Step), Name: cmp.Or(p.ID, p.Title), Passed: p.Validation.Passed,
		Fresh: p.Fresh != "", Tree: f.Tree.Digest}
	if c.Fresh && !c.Passed {
		c.Output = p.Reply
	}
	if old, ran := f.Command(c.Step); ran {
		c.Name = old.Name
	}
	const most = 16
	kept := slices.DeleteFunc(list(f, f.Commands), func(old Checked) bool { return old.Step == c.Step })
	f.Commands = newest(append(kept, c), most)
}

// Command returns the last result of the command of a step.
func (s State) Command(step string) (Checked, bool) {
	i := slices.IndexFunc(s.Commands, func(c Checked) bool { return c.Step == step })
	if i < 0 {
		return Checked{}, false
	}
	return s.Commands[i], true
}

// OnlyInWorkspace returns the outputs of commands that fail in a fresh folder.
func (s State) OnlyInWorkspace() (all []Blob) {
	for _, c := range s.Commands {
		if c.Output != nil {
			all = append(all, *c.Output)
		}
	}
	return all
}

// FreshText describes whether the work passes in a fresh folder.
func (s State) FreshText() string {
	var passed, failed []string
	for _, c := range s.Commands {
		switch {
		case !c.Fresh:
		case !c.Passed:
			failed = append(failed, c.Name)
		case c.Tree == DigestOf(s.Tree):
			passed = append(passed, c.Name)
		}
	}
	switch {
	case len(failed) > 0:
		return "passes only in the workspace: " + strings.Join(failed, ", ")
	case len(passed) > 0:
		return "passes in a fresh folder: " + strings.Join(passed, ", ")
	}
	return "not checked in a fresh folder"
}

// freshStage is the name of the last stage of a plan that delivers; no definition has it.
const freshStage = "fresh"

// Stages counts the stages of a definition.
func Stages(all []StageRef) int {
	n := len(all)
	if n > 0 && all[n-1].Name == freshStage {
		n--
	}
	return n
}
