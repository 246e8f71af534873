package run_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// waiting is a running run that asked for a hand-off, h1.
func waiting(s *run.State) {
	s.Status, s.Phase = run.AwaitingPhaseHandoff, "plan"
	s.Questions = []run.Question{{Kind: run.QuestionHandoff, ID: "h1", Phase: "validate",
		Type: run.HandoffFeedbackOnReject, Trigger: run.TriggerRejected}}
}

func asks(status run.Status, kind run.QuestionKind, trigger string) func(*run.State) {
	return func(s *run.State) {
		s.Status, s.Questions = status, append(s.Questions, run.Question{Kind: kind, ID: "q1", Trigger: trigger})
	}
}

func goesOn(s *run.State) { s.Status, s.Questions = run.Running, nil }

func haltedIn(phase, reason string) func(*run.State) {
	return func(s *run.State) {
		s.Status, s.Reason, s.FinishedAt, s.Questions = run.Halted, reason, now, nil
		s.Markers.HaltReason, s.Markers.HaltedAt, s.Markers.Halt = reason, now, &run.Halt{Reason: reason, Phase: phase}
	}
}

func TestFoldOfHandoffs(t *testing.T) {
	yes := true
	answer := func(id, action string) map[string]any {
		return map[string]any{"handoff_id": id, "action": action, "feedback": "shorter", "note": "n",
			"decided_by": "ops", "decided_at": "2026-01-02T03:59:00.000Z"}
	}
	closed := func(status run.Status) func(*run.State) {
		return func(s *run.State) { waiting(s); s.Status = status }
	}
	as := func(action string, want func(*run.State)) func(*run.State) { // and the decision is remembered
		return func(s *run.State) {
			want(s)
			s.Decided = &run.Decided{Kind: run.QuestionHandoff, ID: "h1", Type: run.HandoffFeedbackOnReject,
				Phase: "validate", Action: action, Feedback: "shorter", Note: "n"}
			if action == "retry_feedback" {
				s.Feedback = "shorter"
			}
		}
	}
	checkRows(t, []row{
		{name: "asked, with all that is shown", kind: run.KindHandoffRequested, phase: "PLAN",
			payload: run.QuestionRequested{
				Kind: run.QuestionHandoff,
				ID:   "h2", Type: run.HandoffFeedbackAlways, Trigger: run.TriggerApproved, Round: 2, LoopMaxRounds: 3,
				Verdict: "APPROVED", Approved: &yes,
				Actions: []string{"continue"}, Artifacts: []run.Attached{{Name: "plan", Digest: "d1"}},
				LastOutput: "d2", Digest: "d3",
			}, want: func(s *run.State) {
				s.Status = run.AwaitingPhaseHandoff
				s.Questions = []run.Question{{
					Kind: run.QuestionHandoff, ID: "h2", Phase: "PLAN", Type: "human_feedback_always",
					Trigger: "approved", Round: 2, LoopMaxRounds: 3, Verdict: "APPROVED", Approved: &yes,
					Actions: []string{"continue"}, Artifacts: []run.Attached{{Name: "plan", Digest: "d1"}},
					LastOutput: "d2", Digest: "d3", RequestedAt: now,
				}}
				headed(s)
			}},
		{name: "continue", kind: run.KindHandoffDecided, payload: answer("h1", "continue"), before: waiting,
			want: as("continue", goesOn)},
		{name: "retry", kind: run.KindHandoffDecided, payload: answer("h1", "retry_feedback"), before: waiting,
			want: as("retry_feedback", goesOn)},
		{name: "waiver", kind: run.KindHandoffDecided, payload: answer("h1", "continue_with_waiver"), before: waiting,
			want: as("continue_with_waiver", func(s *run.State) {
				goesOn(s)
				s.Markers.Waiver = &run.Waiver{
					HandoffID: "h1", Phase: "validate", Feedback: "shorter", Note: "n", DecidedBy: "ops",
					DecidedAt: "2026-01-02T03:59:00.000Z",
				}
			})},
		{name: "halt", kind: run.KindHandoffDecided, payload: answer("h1", " Halt "), before: waiting,
			want: as("halt", haltedIn("validate", "phase_handoff_halt"))},
		{name: "no id: the one that is open", kind: run.KindHandoffDecided, payload: answer("", "continue"),
			before: waiting, want: as("continue", goesOn)},
		{name: "stale", kind: run.KindHandoffDecided, payload: answer("h0", "continue"), before: waiting,
			illegal: true},
		{name: "stale halt", kind: run.KindHandoffDecided, payload: answer("h0", "halt"), before: waiting,
			illegal: true},
		{name: "no such action", kind: run.KindHandoffDecided, payload: answer("h1", "perhaps"), before: waiting,
			illegal: true},
		{name: "nothing asked", kind: run.KindHandoffDecided, payload: answer("h1", "continue"), illegal: true},
		{name: "nothing asked, halt", kind: run.KindHandoffDecided, payload: answer("h1", "halt"), illegal: true},
		{name: "failed: first an epoch", kind: run.KindHandoffDecided, payload: answer("h1", "halt"),
			before: closed(run.Failed), illegal: true},
		{name: "undecided across an epoch", kind: run.KindHandoffDecided, payload: answer("h1", "continue"),
			before: closed(run.Running), want: as("continue", goesOn)},
		{name: "undecided in a pause: the pause stays", kind: run.KindHandoffDecided, payload: answer("h1", "continue"),
			before: closed(run.Paused),
			want:   as("continue", func(s *run.State) { s.Questions = nil })},
		{name: "the decision names where to continue", kind: run.KindHandoffDecided, payload: run.QuestionDecided{
			Kind: run.QuestionHandoff,
			ID:   "h1", Action: "continue", Feedback: "shorter", Note: "n", Next: &run.Place{Stage: 2, Round: 1},
		}, before: waiting, want: as("continue", func(s *run.State) {
			goesOn(s)
			s.Next = run.Place{Stage: 2,
				Round: 1}
		})},
		{name: "the words end with the next question", kind: run.KindHandoffRequested, phase: "PLAN",
			payload: run.QuestionRequested{Kind: run.QuestionHandoff, ID: "h2"},
			before:  func(s *run.State) { s.Feedback = "shorter" }, want: func(s *run.State) {
				s.Status, s.Feedback = run.AwaitingPhaseHandoff, ""
				s.Questions = []run.Question{{Kind: run.QuestionHandoff, ID: "h2", Phase: "PLAN", Actions: []string{},
					RequestedAt: now}}
				headed(s)
			}},
		{name: "a review keeps the hand-off", kind: run.KindReviewRequested, payload: run.QuestionRequested{ID: "q1"},
			before: closed(run.Running), want: func(s *run.State) {
				asks(run.AwaitingHumanReview, run.QuestionReview, "")(s)
				s.Questions[1].Actions, s.Questions[1].RequestedAt = []string{}, now
				headed(s)
			}},
		{name: "a review as the end", kind: run.KindRunEnd,
			payload: run.RunEnd{Status: run.AwaitingHumanReview}, before: closed(run.Running),
			want: func(s *run.State) {
				s.Status = run.AwaitingHumanReview
				headed(s)
			}},
		{name: "across projects a failure keeps none", kind: run.KindRunEnd,
			payload: run.RunEnd{Status: run.Failed, Reason: "r", Type: "timeout"},
			before:  func(s *run.State) { waiting(s); s.RunKind = "cross_project" }, want: func(s *run.State) {
				s.Status, s.Reason, s.FinishedAt, s.Questions = run.Failed, "r", now, nil
				s.Markers.Failure = &run.RunFailure{Phase: "validate", Error: "r", Type: "timeout"}
				headed(s)
			}},
		{name: "across projects an interruption keeps it", kind: run.KindRunInterrupted,
			before: func(s *run.State) { waiting(s); s.RunKind = "cross" },
			want:   func(s *run.State) { s.Status, s.FinishedAt, s.Markers.InterruptedAt = run.Interrupted, now, now }},
		{name: "the program leaves while the run waits", kind: run.KindRunEnd,
			payload: run.RunEnd{Status: run.AwaitingPhaseHandoff}, before: waiting},
	})
}

func TestFoldOfOtherQuestions(t *testing.T) {
	asked := run.QuestionRequested{ID: "q1", Digest: "d", Phase: "build", Round: 2, Trigger: run.TriggerCheckFailed,
		Actions: []string{"retry"}, Artifacts: []run.Attached{{Name: "log"}}}
	open := func(status run.Status, kind run.QuestionKind) func(*run.State) {
		return func(s *run.State) {
			s.Status = status
			s.Questions = []run.Question{{
				Kind: kind, ID: "q1", Digest: "d", Phase: "build", Round: 2, Trigger: "check_failed",
				Actions:   []string{"retry"},
				Artifacts: []run.Attached{{Name: "log"}}, RequestedAt: now,
			}}
			headed(s)
		}
	}
	gate := asks(run.AwaitingGateDecision, run.QuestionGate, run.TriggerCheckFailed)
	rejected := asks(run.AwaitingGateDecision, run.QuestionDelivery, run.TriggerRejected)
	review := asks(run.AwaitingHumanReview, run.QuestionReview, run.TriggerPlanReady)
	// and the decision is remembered
	as := func(kind run.QuestionKind, action string, want func(*run.State)) func(*run.State) {
		return func(s *run.State) {
			want(s)
			s.Decided = &run.Decided{Kind: kind, ID: "q1", Action: action}
		}
	}
	checkRows(t, []row{
		{name: "gate", kind: run.KindGateRequested, payload: asked,
			want: open(run.AwaitingGateDecision, run.QuestionGate)},
		{name: "delivery", kind: run.KindDeliveryRequested, payload: asked,
			want: open(run.AwaitingGateDecision, run.QuestionDelivery)},
		{name: "review", kind: run.KindReviewRequested, payload: asked,
			want: open(run.AwaitingHumanReview, run.QuestionReview)},
		{name: "asked after done", kind: run.KindGateRequested, payload: asked, before: becomes(run.Done),
			illegal: true},
		{name: "gate: retry", kind: run.KindGateDecided, payload: run.QuestionDecided{ID: "q1", Action: "retry"},
			before: gate,
			want:   as(run.QuestionGate, "retry", func(s *run.State) { goesOn(s); s.Again = "q1" })},
		{name: "gate: halt", kind: run.KindGateDecided, payload: run.QuestionDecided{ID: "q1", Action: "halt"},
			before: gate, want: as(run.QuestionGate, "halt", func(s *run.State) {
				q, _ := s.Asks()
				haltedIn("", "gate_halt")(s)
				s.Gate = &q // asked again by the next epoch
			})},
		{name: "gate: stale", kind: run.KindGateDecided, payload: run.QuestionDecided{ID: "q0", Action: "retry"},
			before: gate, illegal: true},
		{name: "an answer to another kind of question", kind: run.KindDeliveryDecided,
			payload: run.QuestionDecided{ID: "q1", Action: "skip"}, before: gate, illegal: true},
		{name: "gate: waiver", kind: run.KindGateDecided, payload: run.QuestionDecided{
			ID: "q1", Action: "continue_with_waiver", Feedback: "known", Note: "n", DecidedBy: "ops", DecidedAt: now,
			Next: &run.Place{Stage: 1, Round: 1, Step: 2},
		}, before: func(s *run.State) {
			gate(s)
			s.Questions[0].Phase, s.Questions[0].Round = "build", 2
			s.Markers.Waiver = &run.Waiver{HandoffID: "h0", Feedback: "older", Note: "m"}
		}, want: func(s *run.State) {
			goesOn(s)
			s.Next = run.Place{Stage: 1, Round: 1, Step: 2}
			s.Decided = &run.Decided{Kind: "gate", ID: "q1", Phase: "build", Round: 2, Action: "continue_with_waiver",
				Feedback: "known", Note: "n"}
			s.Waivers = []run.Waiver{{HandoffID: "h0", Feedback: "older"}}
			s.Markers.Waiver = &run.Waiver{HandoffID: "q1", Phase: "build", Feedback: "known", Note: "n",
				DecidedBy: "ops", DecidedAt: now}
		}},
		{name: "reminded", kind: run.KindQuestionReminded, payload: run.QuestionReminded{ID: "q1", Number: 2}, before: gate,
			want: func(s *run.State) {
				s.Questions[0].Reminded = 2
			}},
		{name: "a reminder of another question", kind: run.KindQuestionReminded,
			payload: run.QuestionReminded{ID: "q0", Number: 2}, before: gate},
		{name: "delivered", kind: run.KindDeliveryCompleted, payload: run.DeliveryCompleted{Delivered: true, To: "branch",
			Target: "b", Commit: "c", Diff: "d"},
			want: func(s *run.State) {
				s.Delivery = &run.Delivered{Delivered: true, To: "branch", Target: "b", Commit: "c"}
			}},
		{name: "a tree", kind: run.KindWorkspaceUpdated,
			payload: run.WorkspaceUpdated{Tree: run.Blob{Digest: "t"}, Commit: "c"},
			want:    func(s *run.State) { s.Tree, s.Commit = &run.Blob{Digest: "t"}, "c" }},
		{name: "delivered over a rejection", kind: run.KindDeliveryDecided,
			payload: run.QuestionDecided{ID: "q1", Action: "apply", DecidedBy: "ops"}, before: rejected,
			want: func(s *run.State) {
				goesOn(s)
				s.Markers.DeliveryOverride = &run.Override{Action: "apply", By: "ops", At: now}
				s.Decided = &run.Decided{Kind: "delivery", ID: "q1", Action: "apply"}
			}},
		{name: "a rejected delivery skipped", kind: run.KindDeliveryDecided,
			payload: run.QuestionDecided{ID: "q1", Action: "skip"}, before: rejected,
			want: as(run.QuestionDelivery, "skip", goesOn)},
		{name: "a dirty target skipped overrides nothing", kind: run.KindDeliveryDecided,
			payload: run.QuestionDecided{ID: "q1", Action: "apply"},
			before:  asks(run.AwaitingGateDecision, run.QuestionDelivery, run.TriggerDirtyTarget),
			want:    as(run.QuestionDelivery, "apply", goesOn)},
		{name: "review: retry", kind: run.KindReviewDecided, payload: run.QuestionDecided{ID: "q1", Action: "retry_feedback",
			Feedback: "more"}, before: review, want: func(s *run.State) {
			goesOn(s)
			s.Feedback = "more"
			s.Decided = &run.Decided{Kind: "review", ID: "q1", Action: "retry_feedback", Feedback: "more"}
		}},
		{name: "review: approve", kind: run.KindReviewDecided, payload: run.QuestionDecided{ID: "q1", Action: "approve"},
			before: func(s *run.State) {
				review(s)
				s.Questions = append([]run.Question{{Kind: run.QuestionHandoff, ID: "h1"}}, s.Questions...)
			}, want: func(s *run.State) {
				s.Status, s.Reason, s.FinishedAt, s.Questions = run.Done, "review_approved", now, nil
				s.Decided = &run.Decided{Kind: "review", ID: "q1", Action: "approve"}
			}},
		{name: "an approved run's end", kind: run.KindRunEnd, payload: run.RunEnd{Status: run.Done},
			before: func(s *run.State) {
				s.Status, s.Reason = run.Done, "review_approved"
			}, want: headed},
	})
}

func TestFoldOfOutcomes(t *testing.T) {
	end := func(o run.Outcome) run.RunEnd { return run.RunEnd{Status: run.Done, Outcome: o} }
	done := func(mark func(*run.Markers)) func(*run.State) {
		return func(s *run.State) {
			s.Status, s.FinishedAt = run.Done, now
			mark(&s.Markers)
			headed(s)
		}
	}
	marked := run.Markers{
		HaltReason: "r", HaltedAt: now, InterruptedAt: now, Halt: &run.Halt{}, Failure: &run.RunFailure{},
		Waiver:           &run.Waiver{Note: "n"},
		DeliveryOverride: &run.Override{}, RejectedOutcome: true, NoOpOutcome: true, NoChangeOutcome: true,
	}
	checkRows(t, []row{
		{name: "rejected", kind: run.KindRunEnd, payload: end(run.OutcomeRejected),
			want: done(func(m *run.Markers) { m.RejectedOutcome = true })},
		{name: "no-op", kind: run.KindRunEnd, payload: end(run.OutcomeNoOp),
			want: done(func(m *run.Markers) { m.NoOpOutcome = true })},
		{name: "no change", kind: run.KindRunEnd, payload: end(run.OutcomeNoChange),
			want: done(func(m *run.Markers) { m.NoChangeOutcome = true })},
		{name: "a failure's type from the last failed pass", kind: run.KindRunEnd,
			payload: run.RunEnd{Status: run.Failed, Reason: "r"}, before: func(s *run.State) {
				s.Phase, s.Failure = "write", &run.Failure{FailedPass: run.FailedPass{Category: "timeout"}}
			}, want: func(s *run.State) {
				s.Status, s.Reason, s.FinishedAt = run.Failed, "r", now
				s.Markers.Failure = &run.RunFailure{Phase: "write", Error: "r", Type: "timeout"}
				headed(s)
			}},
		{name: "an epoch clears all but the waiver", kind: run.KindRunResumed, payload: run.RunResumed{Epoch: 2},
			before: func(s *run.State) {
				s.Status, s.Markers = run.Halted, marked
			}, want: func(s *run.State) {
				s.Status, s.Epoch, s.Starts, s.Markers = run.Running, 2, 2, run.Markers{Waiver: &run.Waiver{Note: "n"}}
			}},
		{name: "an epoch of a failed run keeps what was decided about its delivery", kind: run.KindRunResumed,
			payload: run.RunResumed{Epoch: 2}, before: func(s *run.State) {
				s.Status, s.Markers = run.Failed, marked
			}, want: func(s *run.State) {
				s.Status, s.Epoch, s.Starts = run.Running, 2, 2
				s.Markers = run.Markers{Waiver: &run.Waiver{Note: "n"}, DeliveryOverride: &run.Override{}}
			}},
		{name: "a decided delivery does not count for other changes", kind: run.KindWorkspaceUpdated,
			payload: run.WorkspaceUpdated{Tree: run.Blob{Digest: "new"}}, before: func(s *run.State) {
				s.Status, s.Markers, s.Tree = run.Running, run.Markers{DeliveryOverride: &run.Override{}}, &run.Blob{Digest: "old"}
			}, want: func(s *run.State) { s.Tree, s.Markers = &run.Blob{Digest: "new"}, run.Markers{} }},
	})
}

// TestRunEndTakesEveryWord: each status of the table, as the end of a running run. Only those that the table of
// transitions refuses are named.
func TestRunEndTakesEveryWord(t *testing.T) {
	refused := map[run.Status]bool{run.Unknown: true, run.Pending: true, run.Running: true}
	for _, status := range statuses() {
		got := fold(running(t), []run.Event{event(t, run.KindRunEnd, "", run.RunEnd{Status: status, Reason: "r"})})
		if refused[status] {
			require.NotEmpty(t, got.InvalidTransition, status)
			require.Equal(t, run.Running, got.Status)
			continue
		}
		require.Empty(t, got.InvalidTransition, status)
		require.Equal(t, status, got.Status)
		require.Equal(t, "r", got.Reason)
		require.Equal(t, status.Closed(), got.FinishedAt != "", status)
	}
}

// TestOffered has the answers to questions that testdata/next-commands.txt does not show.
func TestOffered(t *testing.T) {
	for _, r := range []struct {
		kind    run.QuestionKind
		trigger string
		want    []string
	}{
		{"handoff", "approved", []string{"continue", "retry_feedback", "halt"}},
		{"handoff", "incomplete", []string{"retry_feedback", "continue_with_waiver", "halt"}},
		{"handoff", "scope_expansion", []string{"continue", "halt", "continue_with_waiver"}},
		{"handoff", "bypass", []string{"continue", "continue_with_waiver", "halt"}},
		{"delivery", "rejected", []string{"fix", "approve", "apply", "skip", "halt"}},
		{"delivery", "definition_changed", []string{"fix", "approve", "apply", "skip", "halt"}},
		{"delivery", "dirty_target", []string{"retry", "skip", "halt"}},
		{"gate", "rejected", nil},
	} {
		require.Equal(t, r.want, run.Offered(r.kind, r.trigger), "%s, %s", r.kind, r.trigger)
	}
}
