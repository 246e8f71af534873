package run_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestSubjectOfQuestions: a question carries what it is about, and its answer what it is an answer to.
func TestSubjectOfQuestions(t *testing.T) {
	no := false
	s := running(t)
	s.Phase, s.Spent.USD = "review", 2.5
	end := func(step, role, reply string, more func(*run.PassEnd)) run.Event {
		p := run.PassEnd{Pass: run.Pass{Step: step, Role: role, Round: 2}, Outcome: "ok", Reply: ptr(blob(reply))}
		more(&p)
		return event(t, run.KindPassEnd, "review", p)
	}
	judges := func(p *run.PassEnd) {
		p.Verdict, p.Approved, p.Findings = "rejected", &no, &run.Findings{Digest: "v", Findings: 3, Blockers: 1}
	}
	changes := func(p *run.PassEnd) { p.Tree = ptr(blob("tree")) }
	s = fold(s, []run.Event{
		end("1", "implementer", "done", changes),
		event(t, run.KindWorkspaceUpdated, "review", run.WorkspaceUpdated{Tree: blob("tree"), Changed: 2,
			Files: []run.FileChange{{Path: "a.go"}, {Path: "b.go"}}}),
		end("2", "reviewer", "no good", judges),
		end("3", "command", "tests", func(p *run.PassEnd) { p.ID, p.Value = "tests", "ok" }),
	})
	about := s.Subject()
	require.Equal(t, &run.Output{Role: "implementer", Digest: blob("done").Digest}, about.Work)
	require.Equal(t, "rejected by reviewer, 1 blocker, 3 findings", about.Judged.Text())
	require.Equal(t, blob("no good").Digest, about.Judged.Reply)
	require.Equal(t, "a.go, b.go", about.Change.Text())
	require.Equal(t, []run.Value{{Name: "verdict", Text: "rejected"}, {Name: "tests", Text: "ok"}}, about.Checks)
	require.Equal(t, 2.5, about.USD)

	ask := run.QuestionRequested{Kind: run.QuestionHandoff, ID: "h", Phase: "review", Question: "Good?",
		Trigger: run.TriggerRejected, Actions: []string{"retry_feedback"}, Subject: about}
	s = fold(s, []run.Event{event(t, run.KindHandoffRequested, "review", ask)})
	q, open := s.Asks()
	require.True(t, open)
	require.Equal(t, about, q.Subject)
	decided := run.QuestionDecided{Kind: run.QuestionHandoff, ID: "h", Action: "retry_feedback",
		Feedback: strings.Repeat("é", 700), DecidedBy: "ada", DecidedAt: now}
	s = fold(s, []run.Event{event(t, run.KindHandoffDecided, "review", decided)})
	require.Equal(t, &run.About{Question: "Good?", Verdict: "rejected", Work: about.Work,
		Review: &run.Output{Role: "reviewer", Digest: about.Judged.Reply}}, s.About)
	require.Len(t, s.Decisions, 1)
	require.Equal(t, strings.Repeat("é", 600)+" …", s.Decisions[0].Feedback)
	require.Equal(t, []string{"h"}, s.Subject().Earlier)

	s = fold(s, []run.Event{end("1", "implementer", "again", changes)})
	require.Nil(t, s.CurrentVerdict(), "the verdict was on other work")
	require.Equal(t, []run.Fact{{Name: "Verdict", Text: "none on the work as it is"}},
		s.Facts(run.Question{Subject: s.Subject()})[:1])
	require.NotNil(t, s.About, "the feedback is for the steps after the change, too")
	s = fold(s, []run.Event{event(t, run.KindPhaseEnd, "review", run.PhaseEnd{Key: "review", Next: &run.Place{Stage: 5}})})
	require.Nil(t, s.About)
}

func TestRoundAfterTheLast(t *testing.T) {
	at := func(round int, d *run.Decided) string {
		s := run.State{Wording: run.WordingStages, Phase: "review", Round: round, Decided: d,
			Stages: []run.StageRef{{Name: "review", Rounds: 2}}}
		return s.Progress()
	}
	requested := &run.Decided{Phase: "review", Round: 3, Action: run.ActionRetryFeedback}
	require.Equal(t, "stage 1 of 1 (review), round 2 of at most 2", at(2, nil))
	require.Equal(t, "stage 1 of 1 (review), closing check after 2 rounds", at(3, nil))
	require.Equal(t, "stage 1 of 1 (review), closing check after 2 rounds",
		at(3, &run.Decided{Phase: "review", Round: 1, Action: run.ActionRetryFeedback}), "an earlier request")
	require.Equal(t, "stage 1 of 1 (review), requested round 4 after 2", at(4, requested))
}

func TestMeaningOfAnswersInReplay(t *testing.T) {
	for _, spec := range run.QuestionKinds() {
		offer, asks := spec.Offer(run.TriggerEffect)
		if !asks {
			continue
		}
		for _, action := range offer.Operator {
			replay := run.Question{Kind: spec.Kind, Trigger: run.TriggerEffect}.Meaning(action)
			other := run.Question{Kind: spec.Kind}.Meaning(action)
			require.NotEmpty(t, replay)
			require.NotEqual(t, other, replay, "%s %s", spec.Kind, action)
		}
	}
}
