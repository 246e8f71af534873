package pipeline

import (
	"fmt"
	"slices"
	"strings"
)

// FreshStage is the name of the last stage of a plan that delivers. It runs the commands that decided about the work
// once more, in a folder that has nothing but what is delivered.
const FreshStage = "fresh"

// checkFresh adds commands that run once more in a fresh folder: at the end of each loop those of its condition, and
// before a delivery all that decided. The folder in which agents worked may have what the delivered files lack.
func (e *expander) checkFresh() {
	p := e.plan
	if p.Workspace == nil || !p.Delivery.ChecksFresh() {
		return
	}
	final := PlanRound{Steps: []PlanStep{}}
	for si := range p.Stages {
		s := &p.Stages[si]
		for ri := range s.Rounds {
			r := &s.Rounds[ri]
			for _, step := range r.Steps {
				if !s.decides(step) || p.lists(step) {
					continue
				}
				if s.Repeat != nil && step.ID != "" && slices.Contains(s.decidedBy(), step.ID) {
					r.Fresh = append(r.Fresh, step.fresh(s.Name, " Round {n}", len(r.Steps)+len(r.Fresh)+1))
				}
				again := step.fresh(FreshStage, "", 1)
				again.ID, again.IfFailing, again.Questions = "", "ask", step.Questions
				if again.Questions == nil && e.def.Questions != (Questions{}) {
					again.Questions = &e.def.Questions
				}
				final.Fresh = append(slices.DeleteFunc(final.Fresh, again.sameCommand), again)
			}
		}
	}
	if len(final.Fresh) == 0 || !p.Delivery.Delivers() {
		return
	}
	for i := range final.Fresh {
		final.Fresh[i].Key, final.Fresh[i].InRound = fmt.Sprintf("%s/%d", FreshStage, i+1), i+1
	}
	p.Stages = append(p.Stages, PlanStage{Name: FreshStage, Title: "Fresh folder", Kind: StageOnce,
		Rounds: []PlanRound{final}})
}

// decides reports whether the work is accepted only if a command succeeds. One of a lane is about its item, and one with
// an effect outside is not repeated.
func (s PlanStage) decides(step PlanStep) bool {
	named := step.ID != "" && slices.Contains(s.decidedBy(), step.ID)
	return step.Kind == KindRun && s.Lanes == nil && step.Effect == "" && (step.IfFailing == "ask" || named)
}

// decidedBy lists what the conditions of a stage need.
func (s PlanStage) decidedBy() []string { return slices.Concat(s.GateNeeds, s.Needs) }

// lists reports whether the output of a step is the list of a stage with lanes.
func (p *Plan) lists(step PlanStep) bool {
	return slices.ContainsFunc(p.Stages, func(s PlanStage) bool { return s.Lanes != nil && s.Lanes.From == step.Key })
}

func (s PlanStep) sameCommand(other PlanStep) bool {
	return s.Run == other.Run && slices.Equal(s.Env, other.Env)
}

// fresh returns the step that runs the command once more in a fresh folder.
func (s PlanStep) fresh(stage, round string, n int) PlanStep {
	again := s
	again.Key, again.InRound, again.Number = fmt.Sprintf("%s/%d", stage, n), n, 0
	again.Fresh, again.IfFailing, again.When = s.Key, "", ""
	again.Description = fmt.Sprintf("[%s]%s — %s in a fresh folder", stage, round, oneLine(s.Run))
	again.LogTitle = again.Description
	return again
}

// At returns a step of the round: those that run in a fresh folder follow the others.
func (r PlanRound) At(step int) (PlanStep, bool) {
	switch n := step - len(r.Steps); {
	case step < 0 || n >= len(r.Fresh):
		return PlanStep{}, false
	case n >= 0:
		return r.Fresh[n], true
	}
	return r.Steps[step], true
}

// freshSentence describes whether the work is checked in a fresh folder; empty: it is not delivered.
func (p *Plan) freshSentence() string {
	var commands []string
	for _, s := range p.Stages {
		for _, r := range s.Rounds {
			for _, step := range r.Fresh {
				if name := oneLine(step.Run); !slices.Contains(commands, name) {
					commands = append(commands, name)
				}
			}
		}
	}
	switch {
	case len(commands) > 0:
		return "before the work is accepted, these pass there too (" + strings.Join(commands, ", ") + ")"
	case p.Workspace == nil || !p.Delivery.Delivers():
		return ""
	case !p.Delivery.ChecksFresh():
		return "not checked in a fresh folder (delivery.fresh is false)"
	}
	return "not checked in a fresh folder (no command outside lanes decides about the work)"
}
