package contract

import (
	"encoding/json"
	"fmt"
	"slices"

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
	out := encodedRound{roundFields: (*roundFields)(&r)}
	roles, err := r.roles()
	if err != nil {
		return nil, err
	}
	if !r.KnownRoles {
		out.Roles = roles.all
	}
	for i, s := range r.Steps {
		out.Steps = append(out.Steps, encodedStep{PlanStep: s.PlanStep, Uses: roles.uses[i]})
	}
	return json.Marshal(out)
}

// rolesOf lists the roles of a round once, in the order of its steps.
type rolesOf struct {
	all     []Role
	encoded []string
	uses    [][]int // by the steps
}

func (r Round) roles() (out rolesOf, err error) {
	for _, s := range r.Steps {
		var used []int
		for _, role := range s.Roles {
			raw, err := json.Marshal(role)
			if err != nil {
				return out, err
			}
			at := slices.Index(out.encoded, string(raw))
			if at < 0 {
				at, out.all, out.encoded = len(out.all), append(out.all, role), append(out.encoded, string(raw))
			}
			used = append(used, at)
		}
		out.uses = append(out.uses, used)
	}
	return out, nil
}

// LeaveRoles marks the roles as known if they are those of a round that the workflow has. The JSON lacks them then.
func (r *Round) LeaveRoles(known Round) error {
	mine, err := r.roles()
	if err != nil {
		return err
	}
	others, err := known.roles()
	r.KnownRoles = len(mine.all) > 0 && slices.Equal(mine.encoded, others.encoded)
	return err
}

// Complete adds the roles that the JSON lacked, from the round that RoundInput.Known names.
func (r *Round) Complete(known Round) error {
	if !r.KnownRoles {
		return nil
	}
	roles, err := known.roles()
	if err != nil {
		return err
	}
	for i := range r.Steps {
		if r.Steps[i].Roles, err = used(roles.all, r.uses[i], r.Steps[i].Key); err != nil {
			return err
		}
	}
	r.KnownRoles, r.uses = false, nil
	return nil
}

// used returns the roles that a step uses.
func used(all []Role, uses []int, key string) (roles []Role, err error) {
	for _, at := range uses {
		if at < 0 || at >= len(all) {
			return nil, fmt.Errorf("step %s: the round has no role %d, only %d roles", key, at, len(all))
		}
		roles = append(roles, all[at])
	}
	return roles, nil
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
		if r.KnownRoles {
			r.uses = append(r.uses, s.Uses)
		} else if len(s.Uses) > 0 {
			roles, err := used(in.Roles, s.Uses, s.Key)
			if err != nil {
				return err
			}
			step.Roles = append(step.Roles, roles...)
		}
		r.Steps = append(r.Steps, step)
	}
	return nil
}
