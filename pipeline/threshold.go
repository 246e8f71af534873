package pipeline

import (
	"regexp"
	"strconv"
)

var scoreBound = regexp.MustCompile(`\bscore\s*>=?\s*([0-9]+(?:\.[0-9]+)?)`)

// Threshold is the score that a loop waits for, or nil when its condition names none.
func (r Repeat) Threshold() *float64 {
	m := scoreBound.FindStringSubmatch(r.Until)
	if m == nil {
		return nil
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return nil
	}
	return &v
}
