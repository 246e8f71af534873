package pipeline

import (
	"fmt"
	"strconv"

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

// MaxGainRounds is the largest number of rounds over which a condition can compare scores.
const MaxGainRounds = 16

var gainName = lazyregexp.New(`^score_gain\(([1-9][0-9]?)\)$`)

// ScoreGain reads score_gain(N), the name of what the score of a loop has gained over its last N rounds. Before round
// N+1 it has no value, which meets no condition.
func ScoreGain(name string) (rounds int, ok bool) {
	m := gainName.FindStringSubmatch(name)
	if m == nil {
		return 0, false
	}
	rounds, err := strconv.Atoi(m[1])
	return rounds, err == nil && rounds <= MaxGainRounds
}

// checkGain returns why score_gain(N) never has a value in a stage, or "".
func checkGain(s Stage, rounds int) string {
	switch {
	case s.Repeat == nil:
		return "which compares rounds, and the stage has no repeat"
	case s.Repeat.Max > 0 && rounds >= s.Repeat.Max:
		return fmt.Sprintf("which needs %d rounds, and max is %d", rounds+1, s.Repeat.Max)
	}
	return ""
}
