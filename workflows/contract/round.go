package contract

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/passbook-run/passbook/pipeline"
)

type roundFields Round // with the usual encoding

// encodedRound is a round in JSON: each role once.
type encodedRound struct {
	*roundFields
	Roles []Role        `json:"roles,omitempty"`
	Steps []encodedStep `json:"steps"`
}

type encodedStep struct {
	pipeline.PlanStep
	Kind pipeline.StepKind `json:"kind,omitempty"` // empty: role
	Uses []int             `json:"uses,omitempty"` // indices of its roles; empty: the only one with its role name
}

// encoded returns a step in JSON.
func encoded(s Step, uses []int, roles []Role) encodedStep {
	out := encodedStep{PlanStep: s.PlanStep, Kind: s.Kind, Uses: uses}
	if out.Kind == pipeline.KindRole {
		out.Kind = ""
	}
	if slices.Equal(uses, named(roles, s.Role)) {
		out.Uses = nil
	}
	return out
}

// decoded returns a step without its roles.
func (s encodedStep) decoded() Step {
	step := Step{PlanStep: s.PlanStep}
	if step.Kind = s.Kind; s.Kind == "" && s.Role != "" {
		step.Kind = pipeline.KindRole
	}
	return step
}

// named returns the index of the only role with a name; nil: it has no name, or several roles have it.
func named(roles []Role, name string) (uses []int) {
	for i, r := range roles {
		if name != "" && r.Name == name {
			uses = append(uses, i)
		}
	}
	if len(uses) != 1 {
		return nil
	}
	return uses
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
		out.Steps = append(out.Steps, encoded(s, roles.uses[i], roles.all))
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

// EncodedRoles lists the roles of the round, for [RoundInput].
func (r Round) EncodedRoles() ([]string, error) {
	roles, err := r.roles()
	return roles.encoded, err
}

// LeaveRoles marks the roles as known if they are those that the workflow has. The JSON lacks them then.
func (r *Round) LeaveRoles(known []string) error {
	mine, err := r.EncodedRoles()
	r.KnownRoles = len(mine) > 0 && slices.Equal(mine, known)
	return err
}

// Complete adds the roles that the JSON lacked, from the round whose roles the input had.
func (r *Round) Complete(known Round) error {
	if !r.KnownRoles {
		return nil
	}
	roles, err := known.roles()
	if err != nil {
		return err
	}
	for i, s := range r.Steps {
		if r.Steps[i].Roles, err = used(roles.all, r.uses[i], s.PlanStep); err != nil {
			return err
		}
	}
	r.KnownRoles, r.uses = false, nil
	return nil
}

// used returns the roles that a step uses.
func used(all []Role, uses []int, s pipeline.PlanStep) (roles []Role, err error) {
	if len(uses) == 0 {
		uses = named(all, s.Role)
	}
	for _, at := range uses {
		if at < 0 || at >= len(all) {
			return nil, fmt.Errorf("step %s: the round has no role %d, only %d roles", s.Key, at, len(all))
		}
		roles = append(roles, all[at])
	}
	if s.Role != "" && len(roles) == 0 {
		return nil, fmt.Errorf("step %s: the round has no role %s", s.Key, s.Role)
	}
	return roles, nil
}

// UnmarshalJSON decodes a round.
func (r *Round) UnmarshalJSON(data []byte) (err error) {
	*r = Round{}
	in := encodedRound{roundFields: (*roundFields)(r)}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	for _, s := range in.Steps {
		step := s.decoded()
		if r.KnownRoles {
			r.uses = append(r.uses, s.Uses)
		} else if step.Roles, err = used(in.Roles, s.Uses, s.PlanStep); err != nil {
			return err
		}
		r.Steps = append(r.Steps, step)
	}
	return nil
}
