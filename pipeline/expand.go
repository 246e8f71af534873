package pipeline

import "fmt"

// StageKind is the kind of a stage.
type StageKind string

// Kinds of stages.
const (
	StageEach   StageKind = "each"
	StageOnce   StageKind = "once"
	StageRepeat StageKind = "repeat"
	StageLanes  StageKind = "lanes"
)

// expander numbers the steps of a definition. keys contains each step's key by stage, round and step.
type expander struct {
	def  *Definition
	plan *Plan
	keys [][][]string
}

// Expand turns a checked definition into its plan. It is deterministic.
func Expand(d *Definition) *Plan {
	e := &expander{def: d, plan: &Plan{
		Version: PlanVersion, Pipeline: d.Name, Wording: d.Wording, ConfigHash: ConfigHash(d),
		Agents: d.Agents, Budget: d.Budget, TimeScale: d.Limits.TimeScale, AtOnce: d.Limits.AtOnce,
		Artifact: d.Artifact, Workspace: d.Workspace, Snapshots: d.Snapshots,
		Kind: d.Kind, Inputs: d.Inputs, Unattended: d.unattended(), Questions: d.Questions, Notify: d.Notify, Delivery: d.Delivery, After: d.After,
		Notes: d.Notes, AlwaysRead: d.AlwaysRead, Roles: d.Roles, Sets: d.Corpus,
		Projects: d.ordered(), Stages: []PlanStage{}, Kept: d.kept(),
	}}
	e.number()
	for si := range d.Stages {
		e.plan.Stages = append(e.plan.Stages, e.stage(si))
	}
	e.checkFresh()
	return e.plan
}

// number assigns every step its key, before any step refers to another.
func (e *expander) number() {
	e.keys = make([][][]string, len(e.def.Stages))
	for si, s := range e.def.Stages {
		e.keys[si] = make([][]string, e.rounds(s))
		for ri := range e.keys[si] {
			for pi, p := range s.Steps {
				e.keys[si][ri] = append(e.keys[si][ri], e.key(s, ri, pi, p))
			}
		}
	}
}

func (e *expander) rounds(s Stage) int {
	if s.ForEach != "" {
		return len(e.def.Corpus)
	}
	return 1
}

func (e *expander) key(s Stage, round, step int, p Step) string {
	switch {
	case p.Role != "" && s.Repeat == nil && s.Each == nil:
		e.plan.Total++
		if r, _ := e.plan.Role(p.Role); r.Builds() {
			e.plan.Builders++
		}
		return fmt.Sprintf("%03d", e.plan.Total)
	case s.ForEach != "":
		return fmt.Sprintf("%s/%s/%d", s.Name, e.def.Corpus[round].ID, step+1)
	default:
		return fmt.Sprintf("%s/%d", s.Name, step+1)
	}
}

// Builds reports whether a role's passes change the artifact or the workspace.
func (r Role) Builds() bool { return r.Gives == GivesArtifact || r.Gives == GivesChanges }

func (e *expander) stage(si int) PlanStage {
	s := e.def.Stages[si]
	ps := PlanStage{
		Name: s.Name, Title: stageTitle(e.def.Wording, s.Name), Kind: stageKind(s), Repeat: s.Repeat,
		Checkpoint: s.Checkpoint, Dir: s.Dir, PauseAfter: s.PauseAfter, Gate: s.Gate,
		When: s.When, GateNeeds: e.def.needs(si, s.Gate), Lanes: e.lanes(si),
	}
	if s.Repeat != nil {
		e.plan.MaxRounds = s.Repeat.Max
		ps.Needs = e.def.needs(si, s.Repeat.Until)
		ps.Threshold = thresholdOf(s.Repeat.Until)
	}
	for ri := range e.keys[si] {
		ps.Rounds = append(ps.Rounds, e.round(si, ri))
	}
	return ps
}

func stageKind(s Stage) StageKind {
	switch {
	case s.ForEach != "":
		return StageEach
	case s.Repeat != nil:
		return StageRepeat
	case s.Each != nil:
		return StageLanes
	default:
		return StageOnce
	}
}

func (e *expander) round(si, ri int) PlanRound {
	s := e.def.Stages[si]
	r := PlanRound{Checkpoint: s.Checkpoint}
	var set Set
	if s.ForEach != "" {
		set = e.def.Corpus[ri]
		r.Set, r.Theme = set.ID, set.Theme
		r.Checkpoint = Fill(s.Checkpoint, set.ID, 0)
	}
	for pi := range s.Steps {
		r.Steps = append(r.Steps, e.step(place{si, ri, pi}, set))
	}
	return r
}
