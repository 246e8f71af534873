package run

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Rounds that leave the work as an earlier one left it make no progress, and neither does one without a change that has the
// same findings.
func TestProgressOfRounds(t *testing.T) {
	var s State
	round := func(n int, tree, note, findings string) LoopProgress {
		s.Tree, s.Notes, s.Judged = &Blob{Digest: tree}, nil, nil
		if note != "" {
			s.Notes = []Notes{{Name: "log", Whole: Blob{Digest: note}}}
		}
		if findings != "" {
			s.Judged = &Judged{Findings: &Findings{Digest: findings}}
		}
		p := s.EndRound(n)
		s.LoopProgress = &p
		return p
	}
	for name, row := range map[string]struct {
		rounds [][3]string
		still  int
		why    string
	}{
		"other trees":          {[][3]string{{"a"}, {"b"}, {"c"}}, 0, ""},
		"the same tree":        {[][3]string{{"a"}, {"a"}, {"a"}}, 2, "round 5 left the work as round 3 had left it ("},
		"back and forth":       {[][3]string{{"a"}, {"b"}, {"a"}, {"b"}}, 2, "round 6 left the work as round 4 had left it ("},
		"the first tree again": {[][3]string{{"a"}, {"b"}, {"a"}}, 1, "round 5 left the work as round 3 had left it ("},
		"progress after it":    {[][3]string{{"a"}, {"a"}, {"b"}}, 0, ""},
		"notes grow":           {[][3]string{{"a", "1"}, {"a", "2"}, {"a", "3"}}, 0, ""},
		"notes grow, one finding": {[][3]string{{"a", "1", "f"}, {"a", "2", "f"}, {"a", "3", "f"}}, 2,
			"round 5 changed no file and has the same findings as round 4 ("},
		"other findings":                   {[][3]string{{"a", "1", "f"}, {"a", "2", "g"}}, 0, ""},
		"the same findings on other files": {[][3]string{{"a", "1", "f"}, {"b", "2", "f"}}, 0, ""},
	} {
		s = State{}
		var p LoopProgress
		for i, r := range row.rounds {
			p = round(i+3, r[0], r[1], r[2])
		}
		require.Equal(t, row.still, p.Still, name)
		require.Contains(t, p.Why, row.why, name)
		require.Equal(t, row.why == "", p.Why == "", name)
		require.Equal(t, p, s.EndRound(2+len(row.rounds)), "the same round once more, after a question about it")
	}
	s.LoopProgress = &LoopProgress{Still: 2, Ended: 3, Why: "why"}
	require.Equal(t, "stalled: 2 rounds without progress: why", s.Stalled())
	s.LoopProgress.Ended = 0
	require.Empty(t, s.Stalled())
}

func TestProgressIsOfALoop(t *testing.T) {
	s := newStream(t, State{})
	made := &LoopProgress{First: 1, Left: []string{"a", "a", "a"}, Still: 2, Ended: 3, Why: "why"}
	s.add(KindLoopStalled, "work", *made)
	require.Equal(t, made, s.LoopProgress)
	s.add(KindHandoffRequested, "work", QuestionRequested{Kind: QuestionHandoff, ID: "h1", Phase: "work"})
	s.add(KindHandoffDecided, "work", QuestionDecided{Kind: QuestionHandoff, ID: "h1", Action: ActionRetryFeedback, Feedback: "more"})
	require.Equal(t, &LoopProgress{First: 1, Left: []string{"a", "a", "a"}}, s.LoopProgress, "an operator has said more")
	s.add(KindPhaseEnd, "work", PhaseEnd{Key: "work", Repeats: true, Progress: made, Next: &Place{Round: 2}})
	require.Equal(t, made, s.LoopProgress)
	s.add(KindPhaseEnd, "work", PhaseEnd{Key: "work", Repeats: true, Progress: made, Next: &Place{Stage: 1, Round: 1}})
	require.Nil(t, s.LoopProgress)
}
