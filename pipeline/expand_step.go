package pipeline

import (
	"slices"
	"strconv"
)

// place is the position of a step: the indexes of its stage, its round and itself.
type place struct{ stage, round, step int }

func (e *expander) step(at place, set Set) PlanStep {
	s := e.def.Stages[at.stage]
	p := s.Steps[at.step]
	step := PlanStep{
		Key: e.keys[at.stage][at.round][at.step], InRound: at.step + 1, Kind: p.kind(),
		Role: p.Role, Members: p.Together, Run: p.Run, Shots: p.Screenshots, ID: p.ID, When: p.When, Limits: p.Limits,
	}
	if p.Ask != nil {
		step.Ask, step.AskType = p.Ask.Question, p.Ask.Type
		if p.Ask.Questions != (Questions{}) {
			step.Questions = &p.Ask.Questions
		}
	}
	step.Env, step.Confinement, step.Effect = p.Env, p.Confinement, p.Effect
	if p.IfFailing == "ask" || p.IfFailing == "" && e.listed(p) { // its output is not a list if it fails
		step.IfFailing = "ask"
	}
	if q := e.def.Questions; step.Questions == nil && q != (Questions{}) && (p.Ask != nil || step.IfFailing != "") {
		step.Questions = &q
	}
	if p.Run != "" && p.Limits == nil {
		limits := e.def.Limits
		step.Limits = &limits
	}
	if p.Role != "" && s.Repeat == nil && s.Each == nil {
		step.Number, _ = strconv.Atoi(step.Key)
	}
	order := e.order(s, p, set, &step)
	if p.answers() {
		e.parts(at, &step)
	}
	step.Description, step.LogTitle = titles(e.def.Wording, s, at.step, set, order)
	return step
}

func (p Step) kind() StepKind {
	switch {
	case p.Role != "":
		return KindRole
	case len(p.Together) > 0:
		return KindTogether
	case p.Run != "":
		return KindRun
	case p.Screenshots != nil:
		return KindScreenshots
	default:
		return KindAsk
	}
}

// order puts the set's files in the step's reading order.
func (e *expander) order(s Stage, p Step, set Set, step *PlanStep) Order {
	var order Order
	if i := slices.IndexFunc(s.Orders, func(o Order) bool { return o.Name == p.Order }); p.Order != "" && i >= 0 {
		order = s.Orders[i]
	}
	step.Order, step.OrderLabel = order.Name, order.Label
	if !p.answers() {
		return order
	}
	n := len(set.Files)
	shift := 0
	if order.Den > 0 {
		shift = n * order.Num / order.Den
	}
	for i := range n {
		step.Files = append(step.Files, set.Files[(i+shift)%n].Label)
	}
	return order
}

// parts sets which parts the step's prompt contains and whose reply it includes.
func (e *expander) parts(at place, step *PlanStep) {
	s := e.def.Stages[at.stage]
	p := s.Steps[at.step]
	gets, from := e.usual(at.stage, at.step)
	if p.See != "" {
		if t, err := e.def.seen(at.stage, at.step); err == nil {
			from = &t
		}
	}
	if from != nil {
		gets = append(gets, PartReplies)
		e.sees(at, *from, step)
	}
	if p.Role != "" {
		r, _ := e.plan.Role(p.Role)
		gets = append(gets, r.Places...)
	}
	step.Gets = inOrder(gets)
}

func (e *expander) sees(at place, t target, step *PlanStep) {
	switch {
	case t.step < 0:
		step.SeesStage = e.def.Stages[t.stage].Name
	case t.stage == at.stage:
		step.Sees = e.keys[t.stage][at.round][t.step]
	default:
		step.Sees = e.keys[t.stage][0][t.step]
	}
}

// usual returns the parts of a step without `see`, and whose reply it includes. After screenshots in the same round,
// the first step and groups get only the pictures. A step whose previous reply is a group's gets the pictures and the
// group's replies, any other step the previous reply and the artifact.
func (e *expander) usual(stage, step int) (gets []string, from *target) {
	s := e.def.Stages[stage]
	before := lastAnswer(s, step)
	switch {
	case !pictured(s, step):
		return e.plain(s), nil
	case len(s.Steps[step].Together) > 0, before < 0:
		return []string{PartContext, PartPictures, PartTask}, nil
	case len(s.Steps[before].Together) > 0:
		return []string{PartContext, PartPictures, PartTask}, &target{stage, before}
	default:
		return []string{PartContext, PartReferences, PartArtifact, PartContent, PartTask}, &target{stage, before}
	}
}

func (e *expander) plain(s Stage) []string {
	gets := []string{PartContext, PartReferences, PartNotes, PartContent, PartTask}
	if e.def.Artifact != nil {
		gets = append(gets, PartArtifact)
	}
	if s.ForEach != "" {
		gets = append(gets, PartFiles)
	}
	return gets
}

// pictured reports whether screenshots are taken before the step in its round.
func pictured(s Stage, step int) bool {
	return slices.ContainsFunc(s.Steps[:step], func(p Step) bool { return p.Screenshots != nil })
}

// lastAnswer is the nearest earlier step, since the last screenshots, in which a role replies; -1 if there is none.
func lastAnswer(s Stage, step int) int {
	for pi := step - 1; pi >= 0 && s.Steps[pi].Screenshots == nil; pi-- {
		if s.Steps[pi].answers() {
			return pi
		}
	}
	return -1
}

// inOrder keeps each part once, in the order of the prompt.
func inOrder(gets []string) []string {
	all := []string{PartContext, PartReferences, PartNotes, PartReplies, PartPictures, PartArtifact, PartFiles,
		PartContent, PartTask}
	return slices.DeleteFunc(all, func(part string) bool { return !slices.Contains(gets, part) })
}
