package pipeline

// Threshold is the score that a loop waits for: the number of its first score >= or score >. It is nil when its condition names none.
func (r Repeat) Threshold() *float64 {
	u, err := ParseUntil(r.Until)
	if err != nil {
		return nil
	}
	for _, group := range u.groups {
		for _, c := range group {
			if v, ok := untilNumber(c.value); ok && c.name == "score" && c.op[0] == '>' {
				return &v
			}
		}
	}
	return nil
}
