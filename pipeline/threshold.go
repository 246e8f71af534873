package pipeline

// Threshold returns the score that ends a loop: the number of the first comparison score >= or score > in its
// condition, or nil if there is none.
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
