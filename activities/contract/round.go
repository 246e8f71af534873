package contract

import (
	"encoding/json"
	"fmt"

	"github.com/passbook-run/passbook/pipeline"
)

type roundFields Round // with the usual encoding

// encodedRound is a round in JSON: each role once. A round that an earlier release read has the roles in each step.
type encodedRound struct {
	*roundFields
	Roles []Role        `json:"roles,omitempty"`
	Steps []encodedStep `json:"steps"`
}

type encodedStep struct {
	pipeline.PlanStep
	Uses  []int  `json:"uses,omitempty"` // indices of its roles
	Roles []Role `json:"roles,omitempty"`
}

// MarshalJSON encodes the round.
func (r Round) MarshalJSON() ([]byte, error) {
	out, known := encodedRound{roundFields: (*roundFields)(&r)}, map[string]int{}
	for _, s := range r.Steps {
		step := encodedStep{PlanStep: s.PlanStep}
		for _, role := range s.Roles {
			raw, err := json.Marshal(role)
			if err != nil {
				return nil, err
			}
			at, ok := known[string(raw)]
			if !ok {
				at, out.Roles = len(out.Roles), append(out.Roles, role)
				known[string(raw)] = at
			}
			step.Uses = append(step.Uses, at)
		}
		out.Steps = append(out.Steps, step)
	}
	return json.Marshal(out)
}

// UnmarshalJSON decodes the round of any release.
func (r *Round) UnmarshalJSON(data []byte) error {
	*r = Round{}
	in := encodedRound{roundFields: (*roundFields)(r)}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	for _, s := range in.Steps {
		step := Step{PlanStep: s.PlanStep, Roles: s.Roles}
		for _, at := range s.Uses {
			if at < 0 || at >= len(in.Roles) {
				return fmt.Errorf("step %s: the round has no role %d, only %d roles", s.Key, at, len(in.Roles))
			}
			step.Roles = append(step.Roles, in.Roles[at])
		}
		r.Steps = append(r.Steps, step)
	}
	return nil
}
