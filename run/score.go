package run

import "slices"

// RoundScore is the score of one round of a loop.
type RoundScore struct {
	Phase string  `json:"phase"`
	Round int     `json:"round"`
	Score float64 `json:"score"`
}

// keptScores bounds the scores of a state.
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

// LoopScores lists the scores of the rounds of the loop at work, the newest last.
func (s State) LoopScores() (all []float64) {
	for _, r := range s.Scores {
		if r.Phase == s.Phase {
			all = append(all, r.Score)
		}
	}
	return all
}
