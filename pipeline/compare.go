package pipeline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Version is what a run was given, or is to be given.
type Version struct {
	Plan  *Plan
	Files map[string]string // digests of the files that the plan names, by path
}

// Position is how far a run has come: the next step, with its stage and step from 0 and its round from 1.
type Position struct {
	Stage int `json:"stage"`
	Round int `json:"round"`
	Step  int `json:"step"`
}

// Difference is one value in which two versions differ.
type Difference struct {
	Path []string `json:"path"`           // in the definition, such as budget and usd
	File string   `json:"file,omitempty"` // whose content differs; empty: the definition's value does
	Old  string   `json:"old"`
	New  string   `json:"new"`

	Refused string `json:"refused,omitempty"` // why a run cannot adopt it; empty: it can
}

// Name is how messages call the value: roles.critic.prompt.
func (d Difference) Name() string { return strings.Join(d.Path, ".") }

// Reasons why a run cannot adopt a difference.
const (
	RefusedStructure = "it changes what the plan consists of"
	RefusedCompleted = "every step that uses it has completed"
	RefusedInput     = "completed steps have used it"
)

// Compare lists the differences between two versions, in the order of the plan, for a run that has come to a position.
// A run can adopt budgets, limits, thresholds, notices, agents, the setup of the workspace, and prompts and commands of
// steps that have not completed. Stages, kinds of steps and their keys stay as they are. A step of a repeated stage completes with its
// stage. Texts that only people read are not compared.
func Compare(old, next Version, at Position) []Difference {
	c := comparer{old: old, next: next, at: at}
	a, b := old.Plan, next.Plan
	c.values([]string{"pipeline"}, a.Pipeline, b.Pipeline)
	c.values([]string{"kind"}, a.Kind, b.Kind)
	c.values([]string{"budget"}, a.Budget, b.Budget)
	c.values([]string{"limits", "time_scale"}, a.TimeScale, b.TimeScale)
	c.values([]string{"limits", "at_once"}, a.AtOnce, b.AtOnce)
	c.values([]string{"inputs"}, a.Inputs, b.Inputs)
	c.values([]string{"unattended"}, a.Unattended != "", b.Unattended != "")
	c.values([]string{"questions"}, a.Questions, b.Questions)
	c.values([]string{"notify"}, a.Notify, b.Notify)
	c.values([]string{"agents"}, a.Agents, b.Agents)
	c.values([]string{"artifact"}, a.Artifact, b.Artifact)
	c.values([]string{"workspace"}, c.workspace(a), c.workspace(b))
	c.values([]string{"snapshots"}, a.Snapshots, b.Snapshots)
	c.values([]string{"delivery"}, a.Delivery, b.Delivery)
	c.values([]string{"after"}, a.After, b.After)
	c.values([]string{"projects"}, a.Projects, b.Projects)
	c.values([]string{"notes"}, a.Notes, b.Notes)
	c.values([]string{"always_read"}, a.AlwaysRead, b.AlwaysRead)
	c.values([]string{"roles"}, c.roles(a), c.roles(b))
	c.values([]string{"corpus"}, a.Sets, b.Sets)
	c.stages()
	c.files()
	return c.found
}

// comparer collects the differences of two versions.
type comparer struct {
	old, next Version
	at        Position
	found     []Difference
}

func (c *comparer) add(d Difference) {
	if d.Refused == "" {
		d.Refused = c.refused(d.Path)
	}
	if !slices.ContainsFunc(c.found, func(o Difference) bool { return o.Name() == d.Name() && o.File == d.File }) {
		c.found = append(c.found, d) // every set of a stage has the same steps
	}
}

// workspace leaves out what only counts at the start of a run.
func (c *comparer) workspace(p *Plan) *Workspace {
	if p.Workspace == nil {
		return nil
	}
	w := *p.Workspace
	w.Dirty = ""
	return &w
}

// roles leaves out what follows from the texts of the prompts, and adds limits that no definition sets.
func (c *comparer) roles(p *Plan) []Role {
	all := slices.Clone(p.Roles)
	for i := range all {
		all[i].Places, all[i].Uses, all[i].Once, all[i].Limits = nil, nil, false, all[i].Limits.Complete()
	}
	return all
}

func (c *comparer) stages() {
	names := func(p *Plan) (all []string) {
		for _, s := range p.Stages {
			all = append(all, s.Name)
		}
		return all
	}
	if a, b := names(c.old.Plan), names(c.next.Plan); !slices.Equal(a, b) {
		c.values([]string{"stages"}, strings.Join(a, ", "), strings.Join(b, ", "))
		return
	}
	for i, a := range c.old.Plan.Stages {
		if a.Name == FreshStage {
			continue
		}
		c.stage([]string{"stages", a.Name}, a, c.next.Plan.Stages[i])
	}
}

func (c *comparer) stage(at []string, a, b PlanStage) {
	c.values(under(at, "kind"), string(a.Kind), string(b.Kind))
	c.values(under(at, "repeat"), a.Repeat, b.Repeat)
	c.values(under(at, "each"), a.Lanes, b.Lanes)
	c.values(under(at, "checkpoint"), a.Checkpoint, b.Checkpoint)
	c.values(under(at, "dir"), a.Dir, b.Dir)
	c.values(under(at, "pause_after"), a.PauseAfter, b.PauseAfter)
	c.values(under(at, "quality_gate"), a.Gate, b.Gate)
	c.values(under(at, "when"), a.When, b.When)
	keys := func(s PlanStage) (all []string) {
		for _, r := range s.Rounds {
			for _, p := range r.Steps {
				all = append(all, fmt.Sprintf("%s %s", p.Key, p.Kind))
			}
		}
		return all
	}
	if ka, kb := keys(a), keys(b); !slices.Equal(ka, kb) {
		c.values(under(at, "steps"), strings.Join(ka, ", "), strings.Join(kb, ", "))
		return
	}
	for r := range a.Rounds {
		for i, p := range a.Rounds[r].Steps {
			c.step(under(at, "steps", strconv.Itoa(i)), p, b.Rounds[r].Steps[i])
		}
	}
}

// step compares what a definition sets in a step. The rest of it follows from other values.
func (c *comparer) step(at []string, a, b PlanStep) {
	c.values(under(at, "role"), a.Role, b.Role)
	c.values(under(at, "together"), a.Members, b.Members)
	c.values(under(at, "run"), a.Run, b.Run)
	c.values(under(at, "ask"), a.Ask, b.Ask)
	c.values(under(at, "type"), a.AskType, b.AskType)
	c.values(under(at, "questions"), a.Questions, b.Questions)
	c.values(under(at, "if_failing"), a.IfFailing, b.IfFailing)
	c.values(under(at, "effect"), a.Effect, b.Effect)
	c.values(under(at, "screenshots"), a.Shots, b.Shots)
	c.values(under(at, "id"), a.ID, b.ID)
	c.values(under(at, "when"), a.When, b.When)
	c.values(under(at, "order"), a.Order, b.Order)
	c.values(under(at, "see"), a.Sees+a.SeesStage, b.Sees+b.SeesStage)
	c.values(under(at, "limits"), completed(a.Limits), completed(b.Limits))
	c.values(under(at, "env"), a.Env, b.Env)
	c.values(under(at, "sandbox"), a.Sandbox, b.Sandbox)
	c.values(under(at, "network"), a.Network, b.Network)
}

// completed returns the limits of a step with their defaults.
func completed(l *Limits) *Limits {
	if l == nil {
		return nil
	}
	return new(l.Complete())
}

// files compares contents. A file whose path differs is a difference of the definition.
func (c *comparer) files() {
	a, b := c.old.Plan, c.next.Plan
	if a.Artifact != nil && b.Artifact != nil {
		c.file([]string{"artifact", "seed"}, a.Artifact.Seed, b.Artifact.Seed, RefusedInput)
	}
	for _, r := range b.Roles {
		if was, ok := a.Role(r.Name); ok {
			c.file([]string{"roles", r.Name, "prompt"}, was.Prompt, r.Prompt, "")
		}
	}
	input := ""
	if (c.at != Position{Round: 1}) {
		input = RefusedInput
	}
	labelled := func(at []string, a, b []File) {
		for i := range min(len(a), len(b)) {
			c.file(under(at, strconv.Itoa(i), b[i].Label), a[i].Path, b[i].Path, input)
		}
	}
	labelled([]string{"always_read"}, a.AlwaysRead, b.AlwaysRead)
	for i := range min(len(a.Sets), len(b.Sets)) {
		labelled([]string{"corpus", b.Sets[i].ID, "files"}, a.Sets[i].Files, b.Sets[i].Files)
	}
}

func (c *comparer) file(at []string, a, b, refused string) {
	was, is := c.old.Files[a], c.next.Files[b]
	if a != b || was == is || a == "" {
		return
	}
	d := Difference{Path: at, File: b, Old: was, New: is, Refused: refused}
	if at[0] == "always_read" || at[0] == "corpus" {
		if d.Refused == "" { // nothing has read it yet
			c.found = append(c.found, d)
			return
		}
	}
	c.add(d)
}

// refused returns why a run cannot adopt another value at a path; empty: it can.
func (c *comparer) refused(at []string) string {
	if slices.Contains(at, "limits") {
		return "" // of a completed step they have no effect
	}
	switch at[0] {
	case "budget", "questions", "unattended", "notify", "agent", "agents":
		return ""
	case "workspace":
		if len(at) > 1 && (at[1] == "setup" || at[1] == "env") {
			return ""
		}
	case "roles":
		return c.refusedRole(at)
	case "stages":
		return c.refusedStage(at)
	}
	return RefusedStructure
}

func (c *comparer) refusedRole(at []string) string {
	if len(at) < 3 { // added or removed; a step that has another role is another difference
		return ""
	}
	switch at[2] {
	case "prompt", "with", "agent", "session", "checks", "tally", "score", "verdict":
		return c.completed(func(s PlanStep) bool { return s.Role == at[1] || slices.Contains(s.Members, at[1]) })
	}
	return RefusedStructure
}

// amendableOfStep are the keys of a step that a run can adopt until the step has completed.
var amendableOfStep = []string{"run", "ask", "when", "questions", "env", "sandbox", "network"}

func (c *comparer) refusedStage(at []string) string {
	if len(at) < 3 {
		return RefusedStructure
	}
	i := slices.IndexFunc(c.old.Plan.Stages, func(s PlanStage) bool { return s.Name == at[1] })
	switch {
	case at[2] == "repeat" && len(at) > 3, at[2] == "pause_after", at[2] == "quality_gate", at[2] == "when":
		if i < c.at.Stage {
			return RefusedCompleted
		}
		return ""
	case at[2] == "steps" && len(at) > 4 && slices.Contains(amendableOfStep, at[4]):
		n, _ := strconv.Atoi(at[3])
		return c.completedIn(i, func(j int, _ PlanStep) bool { return j == n })
	}
	return RefusedStructure
}

// completed reports that there are such steps in the run's plan, and that none of them will run again.
func (c *comparer) completed(is func(PlanStep) bool) string {
	why := ""
	for i := range c.old.Plan.Stages {
		some := slices.ContainsFunc(c.old.Plan.Stages[i].Rounds, func(r PlanRound) bool {
			return slices.ContainsFunc(r.Steps, is)
		})
		if !some {
			continue
		}
		if why = c.completedIn(i, func(_ int, s PlanStep) bool { return is(s) }); why == "" {
			return ""
		}
	}
	return why
}

// completedIn is completed for the steps of one stage.
func (c *comparer) completedIn(stage int, is func(int, PlanStep) bool) string {
	s := c.old.Plan.Stages[stage]
	for r, round := range s.Rounds {
		for j, p := range round.Steps {
			if is(j, p) && !c.at.Passed(s, stage, r+1, j) {
				return ""
			}
		}
	}
	return RefusedCompleted
}

// Passed reports whether a step is before the position. A step of a repeated stage is when the whole stage is.
func (at Position) Passed(s PlanStage, stage, round, step int) bool {
	if stage != at.Stage || s.Repeat != nil {
		return stage < at.Stage
	}
	return round < at.Round || round == at.Round && step < at.Step
}

func under(at []string, keys ...string) []string { return slices.Concat(at, keys) }
