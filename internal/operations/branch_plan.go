package operations

import (
	"fmt"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// otherAgent returns a command with another program or model.
func otherAgent(argv, program []string, model string) []string {
	if len(program) > 0 {
		argv = program
	}
	if model == "" {
		return slices.Clone(argv)
	}
	out := slices.Clone(argv)
	for i, word := range out {
		switch {
		case word == "--model" && i+1 < len(out):
			out[i+1] = model
			return out
		case strings.HasPrefix(word, "--model="):
			out[i] = "--model=" + model
			return out
		}
	}
	return append(out, "--model", model)
}

// sameUpTo refuses a plan with other steps before a place.
func sameUpTo(old, other *pipeline.Plan, at run.Place) error {
	steps := func(p *pipeline.Plan) (out []string) {
		for i, stage := range p.Stages {
			if i > at.Stage {
				break
			}
			for r, round := range stage.Rounds {
				for j, step := range round.Steps {
					before := i < at.Stage || r+1 < at.Round || r+1 == at.Round && j < at.Step
					if stage.Repeat != nil {
						before = i < at.Stage || j < at.Step
					}
					if before {
						out = append(out, stage.Name+" "+step.Key)
					}
				}
			}
		}
		return out
	}
	a, b := steps(old), steps(other)
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return fmt.Errorf("the other pipeline is not the same up to the checkpoint: it has no step %s there", a[i])
		}
	}
	if len(b) > len(a) {
		return fmt.Errorf("the other pipeline is not the same up to the checkpoint: its step %s is new there",
			b[len(a)])
	}
	if at.Stage > len(other.Stages) {
		return fmt.Errorf("the other pipeline ends before the checkpoint")
	}
	return nil
}
