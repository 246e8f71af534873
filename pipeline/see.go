package pipeline

import (
	"fmt"
	"slices"
)

// target is the step, or the whole stage, whose reply a step includes. Its fields are indexes into the definition.
type target struct {
	stage int
	step  int // -1: the stage's last reply
}

// seen resolves the `see` of a step. The error contains the correction.
func (d *Definition) seen(stage, step int) (target, error) {
	see := d.Stages[stage].Steps[step].See
	if see == "last" {
		return d.seenLast(stage, step)
	}
	for si, s := range d.Stages {
		if s.Name == see {
			return d.seenStage(stage, si)
		}
		for pi, p := range s.Steps {
			if d.idOf(p) == see {
				return d.seenStep(stage, step, target{si, pi})
			}
		}
	}
	return target{}, fmt.Errorf("see is %q, not a stage and not the id of a step; %s", see, suggest(see, d.visible()))
}

// seenLast returns the nearest earlier step with a reply; in a repeated stage that can be a step of the previous round.
func (d *Definition) seenLast(stage, step int) (target, error) {
	s := d.Stages[stage]
	for pi := step - 1; pi >= 0; pi-- {
		if s.Steps[pi].answers() || s.Steps[pi].Run != "" {
			return target{stage, pi}, nil
		}
	}
	if s.Repeat != nil {
		for pi := len(s.Steps) - 1; pi >= 0; pi-- {
			if s.Steps[pi].answers() {
				return target{stage, pi}, nil
			}
		}
	}
	return target{}, fmt.Errorf("see is last, and no step before it in the round has a reply; drop see, or name a " +
		"stage or the id of a step")
}

func (d *Definition) seenStage(from, stage int) (target, error) {
	if stage >= from {
		return target{}, fmt.Errorf("see is %q, a stage that has not finished by then; name an earlier one, or last",
			d.Stages[stage].Name)
	}
	if d.Stages[stage].Each != nil {
		return target{}, fmt.Errorf("see is %q, a stage with replies of each lane; name another", d.Stages[stage].Name)
	}
	if !slices.ContainsFunc(d.Stages[stage].Steps, Step.answers) {
		return target{}, fmt.Errorf("see is %q, a stage in which no role replies; name another", d.Stages[stage].Name)
	}
	return target{stage, -1}, nil
}

func (d *Definition) seenStep(stage, step int, t target) (target, error) {
	s := d.Stages[t.stage]
	as := d.idOf(s.Steps[t.step])
	switch {
	case t.stage > stage, t.stage == stage && t.step >= step && s.Repeat == nil:
		return target{}, fmt.Errorf("see is %q, a step that has not run by then; name an earlier one", as)
	case t.stage < stage && s.Each != nil:
		return target{}, fmt.Errorf("see is %q, a step with a reply of each lane; name another", as)
	case t.stage < stage && s.ForEach != "":
		return target{}, fmt.Errorf("see is %q, a step with one reply for each set; name its stage %q for the last", as,
			s.Name)
	default:
		return t, nil
	}
}

// answers reports whether a role replies in the step.
func (s Step) answers() bool { return s.Role != "" || len(s.Together) > 0 }

// visible lists what `see` may name.
func (d *Definition) visible() []string {
	names := []string{"last"}
	for _, s := range d.Stages {
		names = append(names, s.Name)
		for _, p := range s.Steps {
			if id := d.idOf(p); id != "" {
				names = append(names, id)
			}
		}
	}
	return names
}
