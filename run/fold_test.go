package run_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// row is one event over a state, and what must have changed. Everything else must not have.
type row struct {
	name    string
	kind    run.Kind
	phase   string
	payload any
	before  func(*run.State) // changes the state of a running run
	want    func(*run.State) // changes that to what is expected
	illegal bool             // the status is kept, and the event named
}

const now = "2026-01-02T04:00:00.000Z"

func running(t testing.TB) run.State {
	return fold(run.State{}, passes(t, 0).events[:1])
}

func checkRows(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) { check(t, r) })
	}
}

func check(t *testing.T, r row) {
	t.Helper()
	s := running(t)
	if r.before != nil {
		r.before(&s)
	}
	raw, err := run.Payload(r.payload)
	require.NoError(t, err)
	e := run.Event{Seq: 9, TS: now, Kind: r.kind, Payload: raw}
	if r.phase != "" {
		e.Phase = &r.phase
	}
	got := run.Apply(s, e)
	want := s
	want.Seq, want.TS, want.Used = 9, now, got.Used // see TestUsedOfBudgets
	// see TestSubjectOfQuestions
	want.Decisions, want.About, want.Judged, want.Files = got.Decisions, got.About, got.Judged, got.Files
	if r.want != nil {
		r.want(&want)
	}
	if r.illegal {
		require.NotEmpty(t, got.InvalidTransition)
		want.InvalidTransition = got.InvalidTransition
	}
	require.Equal(t, picture(t, want), picture(t, got))
}

func becomes(to run.Status) func(*run.State) { return func(s *run.State) { s.Status = to } }

// headed is the checkpoint that every settling event makes.
func headed(s *run.State) {
	s.Checkpoint = &run.CheckpointRef{ID: "cp-9", Seq: 9, TS: now, AtPass: s.Passes.LastSettled, AtRound: s.Rounds,
		USD: s.Total(), Score: s.Score}
	if s.Artifact != nil {
		s.Checkpoint.Artifact = s.Artifact.Digest
	}
}

func halted(s *run.State, reason string) {
	s.Markers.HaltReason, s.Markers.HaltedAt, s.Markers.Halt = reason, now, &run.Halt{Reason: reason}
}

func TestFoldOfStatuses(t *testing.T) {
	flying := func(s *run.State) { s.InFlight = []run.InFlightCall{{Step: "001"}} }
	question := func(to run.Status) func(*run.State) {
		return func(s *run.State) { s.Status, s.Questions = to, []run.Question{{Kind: run.QuestionHandoff, ID: "h1"}} }
	}
	checkRows(t, []row{
		{name: "a second start", kind: run.KindRunStart, payload: opening(), illegal: true},
		{name: "start after done", kind: run.KindRunStart, payload: run.RunStart{Epoch: 2}, before: becomes(run.Done),
			illegal: true},
		{name: "start after failed, same epoch", kind: run.KindRunStart, payload: run.RunStart{Epoch: 1},
			before: becomes(run.Failed), illegal: true},
		{name: "replaying", kind: run.KindRunReplaying, want: becomes(run.Replaying)},
		{name: "paused", kind: run.KindRunPaused, payload: run.RunPaused{Reason: run.DiskFull, Detail: "no space left"},
			before: flying, want: func(s *run.State) {
				s.Status, s.Reason, s.InFlight = run.Paused, run.DiskFull, nil
				s.Problem = &run.Problem{TS: now, Context: "run", Category: "file-io", Message: "no space left"}
				headed(s)
			}},
		{name: "paused when done", kind: run.KindRunPaused,
			before: func(s *run.State) { s.Status = run.Done; flying(s) }, illegal: true},
		{name: "resumed in place", kind: run.KindRunResumed, payload: run.RunResumed{Epoch: 1},
			before: becomes(run.Paused), want: func(s *run.State) {
				s.Status, s.Starts = run.Running, 2
			}},
		{name: "a failed run is not resumed in place", kind: run.KindRunResumed, payload: run.RunResumed{Epoch: 1},
			before: becomes(run.Failed), illegal: true},
		{name: "a new epoch without a state", kind: run.KindRunResumed, payload: run.RunResumed{Epoch: 2},
			before: func(s *run.State) {
				s.Status, s.FinishedAt = run.Failed, now
			}, want: func(s *run.State) { s.Status, s.Epoch, s.Starts, s.FinishedAt = run.Running, 2, 2, "" }},
		{name: "a new epoch with its state", kind: run.KindRunResumed,
			payload: run.RunResumed{Epoch: 2, State: &run.State{Status: run.Halted, Rounds: 3}},
			before:  becomes(run.Halted), want: func(s *run.State) {
				*s = run.State{Status: run.Running, Rounds: 3, Epoch: 2, Starts: 1, Seq: 9, TS: now}
			}},
		{name: "an epoch of a run that waits", kind: run.KindRunResumed, payload: run.RunResumed{Epoch: 2, Waits: true},
			before: becomes(run.Paused), want: func(s *run.State) { s.Epoch = 2 }},
		{name: "no epoch after done", kind: run.KindRunResumed, payload: run.RunResumed{Epoch: 2, State: &run.State{}},
			before: becomes(run.Done), illegal: true},
		{name: "an epoch twice", kind: run.KindRunResumed, payload: run.RunResumed{Epoch: 1, State: &run.State{}},
			before: becomes(run.Failed), illegal: true},
		{name: "reverted", kind: run.KindRunReverted,
			payload: run.RunReverted{State: &run.State{Status: run.Running, Rounds: 2}}, want: func(s *run.State) {
				*s = run.State{Status: run.Running, Rounds: 2, Seq: 9, TS: now}
				headed(s)
			}},
		{name: "reverted to nothing", kind: run.KindRunReverted, payload: run.RunReverted{}},
		{name: "ended", kind: run.KindRunEnd, payload: run.RunEnd{Status: run.Done}, before: question(run.Running),
			want: func(s *run.State) {
				s.Status, s.FinishedAt, s.Questions = run.Done, now, nil
				headed(s)
			}},
		{name: "failed keeps the question", kind: run.KindRunEnd,
			payload: run.RunEnd{Status: run.Failed, Reason: "why"}, before: question(run.AwaitingPhaseHandoff),
			want: func(s *run.State) {
				s.Status, s.Reason, s.FinishedAt = run.Failed, "why", now
				s.Markers.Failure = &run.RunFailure{Error: "why"}
				headed(s)
			}},
		{name: "ended twice", kind: run.KindRunEnd, payload: run.RunEnd{Status: run.Done}, before: becomes(run.Done),
			illegal: true},
		{name: "ended with an unknown word", kind: run.KindRunEnd, payload: run.RunEnd{Status: "perfect"}},
		{name: "halted, then its end", kind: run.KindRunEnd, payload: run.RunEnd{Status: run.Halted},
			before: becomes(run.Halted), want: headed},
		{name: "interrupted keeps the question", kind: run.KindRunInterrupted,
			payload: map[string]any{"reason": "terminated", "interrupted_at": "2026-01-02T03:59:00.000Z"},
			before: func(s *run.State) {
				question(run.AwaitingPhaseHandoff)(s)
				flying(s)
			}, want: func(s *run.State) {
				s.Status, s.Reason, s.FinishedAt, s.InFlight = run.Interrupted, "terminated", now, nil
				s.Markers.InterruptedAt = "2026-01-02T03:59:00.000Z"
			}},
		{name: "interrupted after done", kind: run.KindRunInterrupted, before: becomes(run.Done), illegal: true},
		{name: "gate decided", kind: run.KindGateDecided, before: becomes(run.AwaitingGateDecision),
			want: becomes(run.Running)},
		{name: "delivery halted", kind: run.KindDeliveryDecided, payload: map[string]any{"action": "halt"},
			before: becomes(run.AwaitingGateDecision),
			want: func(s *run.State) {
				s.Status, s.Reason, s.FinishedAt = run.Halted, "delivery_halt", now
				halted(s, "delivery_halt")
			}},
		{name: "review decided when nothing was asked", kind: run.KindReviewDecided, illegal: true},
	})
}

func TestFoldOfWork(t *testing.T) {
	spend := run.Spend{USD: 0.5, Tokens: run.Tokens{Input: 7}, Estimated: true}
	paid := run.Totals{Calls: 1, Tokens: run.Tokens{Input: 7}, USD: 0.5, EstimatedUSD: 0.5}
	builder := run.Pass{Step: "002", Number: 2, InRound: 2, Set: "S1", Role: "builder", Gives: "artifact"}
	flying := func(s *run.State) {
		s.InFlight = []run.InFlightCall{{Step: "002", Role: "builder"}, {Step: "audit", Member: "A"}}
	}
	count := func(s *run.State, role string) {
		s.Spent, s.ByRole, s.ByStage = paid, []run.Named{{Name: role, Totals: paid}},
			[]run.Named{{Name: "write", Totals: paid}}
	}
	checkRows(t, []row{
		{name: "phase begins", kind: run.KindPhaseStart, payload: run.PhaseStart{Key: "write", Round: 2},
			before: func(s *run.State) {
				s.Values, s.Pictures = []run.Value{{Name: "score"}}, ptr(blob("old"))
			}, want: func(s *run.State) {
				s.Phase, s.Round, s.PhaseOpen, s.Values, s.Pictures = "write", 2, true, nil, nil
			}},
		{name: "phase through", kind: run.KindPhaseEnd,
			payload: run.PhaseEnd{Key: "write", Outcome: " OK ", Round: 3, Repeats: true, Next: &run.Place{Stage: 1}},
			before:  func(s *run.State) { s.PhaseOpen, s.Settled = true, []string{"A"} },
			want: func(s *run.State) {
				s.PhaseOpen, s.Rounds, s.Next, s.Settled = false, 3, run.Place{Stage: 1}, nil
				s.Loops = []run.Loop{{Rounds: 3}}
			}},
		{name: "pass begins", kind: run.KindPassStart, payload: run.PassStart{Pass: builder, Call: "c", Attempt: 2},
			want: func(s *run.State) {
				s.Set, s.InFlight = "S1", []run.InFlightCall{{Step: "002", Role: "builder", Call: "c", Attempt: 2,
					StartedAt: now}}
				s.Started = []string{"c"}
			}},
		{name: "attempt fails", kind: run.KindPassAttempt, phase: "write",
			payload: run.PassAttempt{Pass: builder, Attempt: 2, Category: "output-empty", Message: "nothing",
				Judged: true, RetryInMS: 5, Spend: &spend},
			before: flying, want: func(s *run.State) {
				s.InFlight = s.InFlight[1:]
				s.Passes.Retries, s.Tries = 1, []run.Tries{{Judged: 1}}
				s.Problem = &run.Problem{TS: now, Context: "pass-2", Category: "output-empty", Message: "nothing",
					Attempt: 2}
				count(s, "builder")
			}},
		{name: "artifact", kind: run.KindArtifactUpdated, payload: run.ArtifactUpdated{Artifact: blob("new")},
			want: func(s *run.State) { s.Artifact = ptr(blob("new")) }},
		{name: "note", kind: run.KindNoteAppended, payload: run.NoteAppended{Note: "discovery", Whole: blob("whole")},
			want: func(s *run.State) {
				s.Notes = []run.Notes{s.Notes[0], {Name: "discovery", File: "discovery.md", Entries: 1,
					Whole: blob("whole")}}
			}},
		{name: "no such note", kind: run.KindNoteAppended, payload: run.NoteAppended{Note: "other"}},
		{name: "pictures", kind: run.KindScreenshots,
			payload: run.Screenshots{Count: 2, Manifest: blob("m"), Next: &run.Place{Step: 1}}, want: func(s *run.State) {
				s.Pictures, s.Next = ptr(blob("m")), run.Place{Step: 1}
				headed(s)
			}},
		{name: "no pictures", kind: run.KindScreenshots, payload: run.Screenshots{Degraded: true},
			before: func(s *run.State) { s.Pictures = ptr(blob("m")) },
			want: func(s *run.State) {
				s.Pictures = nil
				headed(s)
			}},
		{name: "score", kind: run.KindScoreRecorded, payload: run.ScoreRecorded{Score: ptr(3.5)}, want: func(s *run.State) {
			s.Score, s.Values = ptr(3.5), []run.Value{{Name: "score", Text: "3.5"}}
			s.Scores = []run.RoundScore{{Score: 3.5}}
		}},
		{name: "no score", kind: run.KindScoreRecorded, payload: run.ScoreRecorded{}, before: func(s *run.State) {
			s.Score, s.Values = ptr(1.0), []run.Value{{Name: "score", Text: "1"}}
		}, want: func(s *run.State) { s.Score, s.Values = nil, []run.Value{{Name: "score", Text: "null"}} }},
		{name: "warned", kind: run.KindBudgetWarning, want: func(s *run.State) { s.Warned = true }},
		{name: "exceeded is a problem; the pause is another event", kind: run.KindBudgetExceeded, phase: "write",
			payload: run.BudgetEvent{Budget: run.Budget{CapUSD: 2}, TotalUSD: 2.5}, want: func(s *run.State) {
				s.Problem = &run.Problem{TS: now, Context: "write", Category: "budget-exceeded",
					Message: "2.50 USD are spent, the budget is 2.00"}
			}},
		{name: "an attempt at pictures", kind: run.KindShotsAttempt, payload: run.ShotsAttempt{Round: 2, Dir: "d", Attempt: 1,
			Message: "it fell"}, want: func(s *run.State) {
			s.Problem = &run.Problem{TS: now, Context: "pa-cycle-2-screenshot", Category: "screenshot-failed",
				Message: "it fell", Attempt: 1}
		}},
		{name: "an error elsewhere", kind: run.KindErrorNoted, payload: run.ErrorNoted{Category: "file-io",
			Message: strings.Repeat("ä", 301), Attempt: 4}, want: func(s *run.State) {
			s.Problem = &run.Problem{TS: now, Context: "run", Category: "file-io",
				Message: strings.Repeat("ä", 100) + "…" + strings.Repeat("ä", 199), Attempt: 4}
		}},
		{name: "raised", kind: run.KindBudgetRaised, payload: run.BudgetEvent{Budget: run.Budget{CapUSD: 9, WarnUSD: 8}},
			before: func(s *run.State) { s.Warned = true },
			want:   func(s *run.State) { s.Budget, s.Warned = run.Budget{CapUSD: 9, WarnUSD: 8}, false }},
		{name: "many at once", kind: run.KindDecisionRefused, payload: run.DecisionRefused{Verb: "pause", Count: 1000},
			before: func(s *run.State) { s.Refused = 100 },
			want:   func(s *run.State) { s.Refused = 1100 }},
		{name: "unknown kind", kind: "weather.changed", payload: map[string]any{"status": "done"}},
	})
}

// TestVerdictOfAPass: a verdict counts until the next one, and none is one, too. See TestVerdictsOnChangedWork.
func TestVerdictOfAPass(t *testing.T) {
	yes, no := true, false
	judged := func(verdict string, approved *bool) run.PassEnd {
		return run.PassEnd{Pass: run.Pass{Step: "002"}, Outcome: "ok", Verdict: verdict, Approved: approved}
	}
	changed := run.PassEnd{Pass: run.Pass{Step: "001"}, Outcome: "ok", Tree: ptr(blob("tree"))}
	both := changed
	both.Verdict, both.Approved = "done", &yes
	for name, c := range map[string]struct {
		passes []run.PassEnd
		want   run.Verdict
	}{
		"approved":              {[]run.PassEnd{judged("good", &yes)}, run.Verdict{Word: "good", Approved: &yes}},
		"none after one":        {[]run.PassEnd{judged("good", &yes), judged("", &no)}, run.Verdict{Approved: &no}},
		"changed and judged":    {[]run.PassEnd{judged("good", &yes), both}, run.Verdict{Word: "done", Approved: &yes}},
		"of an earlier release": {[]run.PassEnd{judged("needs_work", nil), changed}, run.Verdict{Word: "needs_work"}},
		"no role judges":        {[]run.PassEnd{judged("", nil)}, run.Verdict{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := running(t)
			for _, p := range c.passes {
				s = fold(s, []run.Event{event(t, run.KindPassEnd, "work", p)})
			}
			require.Equal(t, c.want, s.Judgement())
			require.Equal(t, c.want, run.Checkpoint{State: s}.Branched().Judgement(), "a fork begins with it")
		})
	}
}

// TestFoldOfAPassThatEnds counts a failed validation, and keeps the verdict over the stages after it.
func TestFoldOfAPassThatEnds(t *testing.T) {
	end := run.PassEnd{Pass: run.Pass{Step: "002", Number: 2}, Outcome: "ok", Verdict: "APPROVED",
		Validation: run.Validation{Warnings: []string{"a", "b"}}, Spend: run.Spend{USD: 1}}
	after := fold(running(t), []run.Event{event(t, run.KindPassEnd, "write", end)})
	require.Equal(t, run.PassCount{Total: 16, LastSettled: 2, Invalid: 1, Warnings: 2}, after.Passes)
	require.Equal(t, run.CheckpointRef{ID: "cp-9", Seq: 9, TS: now, AtPass: 2, USD: 1, Artifact: blob("seed").Digest},
		*after.Checkpoint)
	require.Equal(t, []run.Value{{Name: "verdict", Text: "APPROVED"}}, after.Values)
	next := fold(after, []run.Event{event(t, run.KindPhaseEnd, "write", run.PhaseEnd{Key: "write"}),
		event(t, run.KindPhaseStart, "check", run.PhaseStart{Key: "check"})})
	require.Equal(t, "APPROVED", next.Verdict)
}

// TestPassesWithoutANumberAreCountedTogether: requirement 002.
func TestPassesWithoutANumberAreCountedTogether(t *testing.T) {
	s := running(t)
	for _, role := range []string{"A", "B"} {
		end := run.PassEnd{Pass: run.Pass{Step: "audit", Member: role, Role: role}, Outcome: "ok"}
		s = fold(s, []run.Event{event(t, run.KindPassEnd, "audit", end)})
	}
	require.Equal(t, []run.Named{{Name: "pa", Totals: run.Totals{Calls: 2}}}, s.ByRole)
}

// TestTimeNeverGoesBack, and the lookups.
func TestTimeNeverGoesBack(t *testing.T) {
	s := running(t)
	at := s.TS
	s = run.Apply(s, run.Event{Seq: 2, TS: "2020-01-01T00:00:00.000Z"})
	require.Equal(t, at, s.TS)
	require.Equal(t, int64(2), s.Seq)

	s.Values = []run.Value{{Name: "score", Text: "3"}}
	text, ok := s.Value("score")
	require.True(t, ok)
	require.Equal(t, "3", text)
	_, ok = s.Value("verdict")
	require.False(t, ok)
	_, ok = s.Note("discovery")
	require.True(t, ok)
	_, ok = s.Note("other")
	require.False(t, ok)
}

func event(t *testing.T, kind run.Kind, phase string, payload any) run.Event {
	t.Helper()
	raw, err := run.Payload(payload)
	require.NoError(t, err)
	return run.Event{Seq: 9, TS: now, Kind: kind, Phase: &phase, Payload: raw}
}
