package run

import (
	"math"
	"slices"
	"strconv"
)

// RoundScore is the score of one round of a loop.
type RoundScore struct {
	Phase string  `json:"phase"`
	Round int     `json:"round"`
	Score float64 `json:"score"`
}

// keptScores bounds the scores of a state: as many as a condition can compare.
const keptScores = 17

// keepScore keeps the score of the current round, and those of the rounds before it in the same loop.
func (f *folder) keepScore(score *float64) {
	f.Scores = slices.DeleteFunc(list(f, f.Scores), func(s RoundScore) bool {
		return s.Phase != f.Phase || s.Round >= f.Round
	})
	if score != nil {
		f.Scores = newest(append(f.Scores, RoundScore{Phase: f.Phase, Round: f.Round, Score: *score}), keptScores)
	}
}

// ScoreGain is what the score of the loop has gained over its last rounds, as text; null: this round, or the one that
// it is compared with, has no score.
func (s State) ScoreGain(rounds int) string {
	of := func(round int) (float64, bool) {
		at := slices.IndexFunc(s.Scores, func(r RoundScore) bool { return r.Phase == s.Phase && r.Round == round })
		if at < 0 {
			return 0, false
		}
		return s.Scores[at].Score, true
	}
	now, scored := of(s.Round)
	before, known := of(s.Round - rounds)
	if !scored || !known {
		return scoreText(nil)
	}
	gain := math.Round((now-before)*1e6) / 1e6
	return strconv.FormatFloat(gain, 'f', -1, 64)
}
