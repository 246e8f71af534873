package report_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/report"
	"github.com/passbook-run/passbook/run"
)

// stagesStory is a run of two stages: a plan with a question, and a loop of two rounds that is not approved.
func stagesStory(t testing.TB) *story {
	s := workspaceStory(t)
	review := func(round int, verdict string, passed bool) {
		s.add(run.KindPhaseStart, run.PhaseStart{Key: "review", Title: "Review", Round: round,
			Dir: "steps/review"})
		p := run.Pass{Step: "review/1", Role: "reviewer", Gives: "report", Round: round, Title: "Reviewer",
			Description: "reviews", Dir: "steps/review"}
		end := s.settle(p, 1, 0.25, 5000)
		end.Verdict, end.Validation.Passed, end.Validation.Checks[0].Passed = verdict, passed, passed
		s.add(run.KindPassEnd, end)
		s.add(run.KindPhaseEnd, run.PhaseEnd{Key: "review", Title: "Review", Outcome: "ok", Round: round, Repeats: true})
	}
	s.changes(1, 0, change{kind: "added", path: "a.txt", after: []byte("a\n")})
	s.add(run.KindHandoffRequested, run.QuestionRequested{Kind: run.QuestionHandoff, ID: "h-1", Phase: "fix",
		Type: run.HandoffFeedbackAlways, Trigger: "rejected", Round: 1, Question: "Is this right?",
		Actions: []string{"continue", "halt"}})
	s.add(run.KindHandoffDecided, run.QuestionDecided{Kind: run.QuestionHandoff, ID: "h-1", Action: "continue",
		DecidedBy: "op", DecidedAt: moment(s.state.Seq + 1)})
	s.phase = "review"
	s.add(run.KindPassEnd, s.unknownCost(run.Pass{Step: "judge", Role: "judge", Gives: "report", Round: 1,
		Title: "Judge", Description: "judges", Dir: "steps/judge"}))
	review(1, "rejected", true)
	review(2, "rejected", false)
	s.phase = ""
	s.add(run.KindDeliveryCompleted, run.DeliveryCompleted{Message: "an operator decided not to deliver"})
	s.add(run.KindRunEnd, run.RunEnd{Status: run.Done})
	return s
}

// unknownCost is a pass whose cost is not known.
func (s *story) unknownCost(p run.Pass) run.PassEnd {
	end := s.settle(p, 1, 0, 1000)
	end.Spend.Known = run.CostUnknown
	return end
}

func TestPageReportsStagesInTheirWords(t *testing.T) {
	s := stagesStory(t)
	page := write(t, s.workspaceDir().Dir, report.Options{Contents: s.blobs.copy})
	for _, row := range []struct{ section, want string }{
		{"summary", "3.0s a pass"}, // (1 + 1 + 5 + 5) / 4
		{"summary", "Checks passed 3/4"},
		{"cost", "Role Passes In Out Cost Share"},
		{"cost", "judge 1 100 20 unknown –"},
		{"changes", "Fix fixer a.txt added"},
		{"changes", "Review · round 2 reviewer rejected"},
		{"changes", "Nothing was delivered: an operator decided not to deliver."},
		{"decisions", "Is this right? Fix · asked"},
	} {
		require.Contains(t, section(t, page, row.section), row.want)
	}
	require.NotContains(t, section(t, page, "decisions"), "rejected", "a plain question is not a rejection")
}

func TestPageListsLanes(t *testing.T) {
	s := workspaceStory(t)
	s.changes(1, 0, change{kind: "added", path: "a.txt", after: []byte("a\n")})
	s.phase = "review"
	s.add(run.KindPhaseStart, run.PhaseStart{Key: "review", Title: "Review", Round: 1, Dir: "steps/review"})
	s.add(run.KindStageExpanded, run.StageExpanded{Stage: "review", Count: 2, Digest: s.blobs.keep([]byte("[]")).Digest})
	for i, key := range []string{"a", "b"} {
		s.lane = key
		s.add(run.KindLaneStarted, run.LaneStarted{Index: i, Name: key + ".go"})
		p := run.Pass{Step: "review/1", Role: "reviewer", Gives: "report", Round: 1, Title: "Reviewer", Dir: "steps/review",
			Description: "reviews", Lane: key, Item: key + ".go"}
		s.add(run.KindPassEnd, s.settle(p, 1, 0.25, 5000))
	}
	s.add(run.KindLaneEnded, run.LaneEnded{Index: 1, Name: "b.go", Outcome: run.LaneOutcomeFailed, Reason: "it is broken"})
	page := write(t, s.workspaceDir().Dir, report.Options{Contents: s.blobs.copy})
	require.Contains(t, section(t, page, "lanes"), "2 lanes: 1 failed, 1 active")
	require.Contains(t, section(t, page, "lanes"), "1 a.go active 1 $0.25 2 b.go failed: it is broken 1 $0.25")
	require.Contains(t, section(t, page, "passes"), "reviewer b.go")
}
