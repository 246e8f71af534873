package run

// Reading is what was read in the reply of a call. It is part of the record of the call, and of the result of its
// activity.
type Reading struct {
	// Only CategoryOK settles a pass, even if checks failed (see Validation). Other outcomes require another attempt.
	Outcome    Category   `json:"outcome"`
	Message    string     `json:"message,omitempty"`  // if Outcome is not CategoryOK
	Modified   bool       `json:"modified,omitempty"` // the artifact differs, ignoring white space around it
	Validation Validation `json:"validation"`
	Tally      []Count    `json:"tally,omitempty"`
	Score      *float64   `json:"score,omitempty"`     // nil: none found, or out of range
	ScoreWhy   string     `json:"score_why,omitempty"` // there is none: "no match", "4.3 is outside 0..4"
	Verdict    string     `json:"verdict,omitempty"`
}

// Texts are the texts that come from an agent.
func (r *Reading) Texts() []*string {
	all := []*string{&r.Message, &r.ScoreWhy, &r.Verdict}
	for i := range r.Validation.Checks {
		all = append(all, &r.Validation.Checks[i].Detail)
	}
	for i := range r.Validation.Warnings {
		all = append(all, &r.Validation.Warnings[i])
	}
	return all
}
