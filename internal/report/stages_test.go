package report_test

import (
	"testing"

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
	unknown := s.settle(run.Pass{Step: "judge", Role: "judge", Gives: "report", Round: 1, Title: "Judge",
		Description: "judges", Dir: "steps/judge"}, 1, 0, 1000)
	unknown.Spend.Known = run.CostUnknown
	s.add(run.KindPassEnd, unknown)
	review(1, "rejected", true)
	review(2, "rejected", false)
	s.phase = ""
	s.add(run.KindDeliveryCompleted, run.DeliveryCompleted{Message: "an operator decided not to deliver"})
	s.add(run.KindRunEnd, run.RunEnd{Status: run.Done})
	return s
}

// lanesStory reviews two files in parallel, one of them in vain.
func lanesStory(t testing.TB) *story {
	s := workspaceStory(t)
	s.changes(1, 0, change{kind: "added", path: "a.txt", after: []byte("a\n")})
	s.add(run.KindPhaseEnd, run.PhaseEnd{Key: "fix", Title: "Fix", Outcome: "ok", Round: 1,
		Next: &run.Place{Stage: 1, Round: 1}})
	s.phase = "review"
	s.add(run.KindPhaseStart, run.PhaseStart{Key: "review", Title: "Review", Round: 1, Dir: "steps/review"})
	s.add(run.KindChildrenListed, run.ChildrenListed{Stage: "review", Count: 2, Digest: s.blobs.keep([]byte("[]")).Digest})
	for i, key := range []string{"a", "b"} {
		s.lane(run.LanePlace{Index: i, Key: key, Name: key + ".go"})
	}
	b := s.lanes["lanes/review/b"]
	s.add(run.KindChildEnded, run.ChildEnd{RunID: b.state.RunID, LanePlace: b.state.LaneOf.LanePlace,
		Outcome: run.ChildFailed, Reason: "it is broken", Cost: *b.state.ChildCost()})
	s.add(run.KindChildSkipped, run.ChildSkip{Index: 1, Key: "b", Name: "b.go", Reason: "it is broken"})
	return s
}

// lane starts a lane, which has reviewed its file.
func (s *story) lane(p run.LanePlace) {
	id := p.ChildRunID(s.state.RunID, s.state.Next.Stage)
	s.add(run.KindChildStarted, run.ChildStart{RunID: id, LanePlace: p})
	l := newStory(s.t)
	l.add(run.KindRunStart, run.RunStart{Task: "Fix it", Pipeline: "fix", RunID: id, ThreadID: "run-1", Epoch: 1,
		CreatedAt: moment(0), Wording: run.WordingStages, Stages: s.state.Stages,
		Definition: l.blobs.keep([]byte("stages: []\n")).Digest, Plan: l.blobs.keep([]byte("{}")).Digest,
		Inputs: l.blobs.keep([]byte(`{"version":1}`)).Digest,
		Lane:   &run.LaneOf{RunID: s.state.RunID, Stage: s.phase, LanePlace: p}})
	l.add(run.KindPassEnd, l.settle(run.Pass{Step: "review/1", Role: "reviewer", Gives: "report", Round: 1,
		Title: "Reviewer", Dir: "steps/review", Description: "reviews", Item: p.Name}, 1, 0.25, 5000))
	if s.lanes == nil {
		s.lanes = map[string]*story{}
	}
	s.lanes[p.Dir(s.phase)] = l
}
