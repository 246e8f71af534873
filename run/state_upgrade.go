package run

import "encoding/json"

// UnmarshalJSON reads a state of this version or of an earlier one, which it upgrades.
func (s *State) UnmarshalJSON(raw []byte) error {
	type members State
	read := struct {
		*members
		stateV1
	}{members: (*members)(s)}
	err := json.Unmarshal(raw, &read)
	if s.Version == 1 {
		read.upgrade(s)
	}
	return err
}

// stateV1 is what version 1 had in other places: a hand-off apart from the other questions, and the kind of the last
// decision in its type.
type stateV1 struct {
	Handoff  *Question `json:"handoff"`
	Question *Question `json:"question"`
}

func (old stateV1) upgrade(s *State) {
	s.Version, s.Questions = StateVersion, nil
	if old.Handoff != nil {
		old.Handoff.Kind = QuestionHandoff
		s.Questions = append(s.Questions, *old.Handoff)
	}
	if old.Question != nil {
		s.Questions = append(s.Questions, *old.Question)
	}
	if d := s.Decided; d != nil {
		d.Kind = QuestionHandoff
		if kind := QuestionKind(d.Type); kind.Spec().Requested != "" {
			d.Kind, d.Type = kind, ""
		}
	}
}
