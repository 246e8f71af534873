package run

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What pauses, resumes and ends of epochs leave of a run's failures and needs.
func TestFailuresOverPausesAndResumes(t *testing.T) {
	failed := &FailedPass{Step: "1", Member: "a", Category: CategoryAgentTimeout}
	s := newStream(t, State{})
	s.Wording = WordingStages
	pause := func(f *FailedPass) {
		s.add(KindRunPaused, "", RunPaused{Reason: PassFailed, Detail: "late", By: "ann", Failed: f})
	}
	resume := func(p RunResumed) { s.add(KindRunResumed, "", p) }
	pause(failed)
	require.Equal(t, &Failure{FailedPass: FailedPass{"1", "a", "agent-timeout"}, Message: "late", Starts: 1},
		s.State.Failure)
	resume(RunResumed{Epoch: 1})
	pause(failed)
	require.Equal(t, 2, s.State.Failure.Starts)
	resume(RunResumed{Epoch: 1})
	pause(&FailedPass{Step: "1", Member: "b"})
	require.Equal(t, 1, s.State.Failure.Starts)
	s.Need, s.Review = &Need{USD: 1}, "S1"
	resume(RunResumed{Epoch: 1, Force: true})
	require.Nil(t, s.State.Failure)
	require.Nil(t, s.Need)
	require.Equal(t, 3, s.Starts)
	s.add(KindRunPaused, "", RunPaused{Reason: UserRequested})
	require.Equal(t, "S1", s.Review)
	resume(RunResumed{Epoch: 1})
	s.add(KindRunPaused, "", RunPaused{Reason: UserReview})
	require.Empty(t, s.Review)
	resume(RunResumed{Epoch: 1})

	pause(failed)
	s.Need = &Need{USD: 1}
	s.add(KindRunEnd, "", RunEnd{Status: Failed, Reason: "why", Type: "type"})
	require.Equal(t, "type", s.Markers.Failure.Type)
	kept := s.State
	resume(RunResumed{Epoch: 2})
	require.Equal(t, State{Status: Running, Epoch: 2}, pick(s.State, "Status", "Reason", "Epoch", "FinishedAt"))
	require.NotNil(t, s.State.Failure)
	require.Nil(t, s.Need)
	s.State = kept
	resume(RunResumed{Epoch: 2, Force: true})
	require.Nil(t, s.State.Failure)
	s.State = kept
	resume(RunResumed{Epoch: 3, State: &State{Failure: kept.Failure, Task: "carried", Status: Failed}})
	require.Equal(t, State{Status: Running, Epoch: 3, Task: "carried", Starts: 1},
		pick(s.State, "Status", "Epoch", "Task", "Starts"))

	s = newStream(t, State{})
	s.add(KindRunReplaying, "", Source{})
	before := s.Starts
	resume(RunResumed{Epoch: 1})
	require.Equal(t, before, s.Starts, "the end of the recorded part is not a start")
	s.add(KindBudgetExceeded, "", BudgetEvent{Need: &Need{Role: "w", USD: 2}, Budget: Budget{CapUSD: 3}, TotalUSD: 2})
	require.Equal(t, &Need{Role: "w", USD: 2}, s.Need)
}

// What belongs to a pass moves the head behind it; a named checkpoint stays.
func TestHeadIsBehindWhatFollows(t *testing.T) {
	s := newStream(t, State{})
	s.add(KindPassEnd, "p", PassEnd{Pass: Pass{Number: 3}, Outcome: CategoryOK, Validation: Validation{Passed: true}})
	require.EqualValues(t, 2, s.Checkpoint.Seq)
	s.add(KindArtifactUpdated, "p", ArtifactUpdated{Artifact: *named("a")})
	s.add(KindNoteAppended, "p", NoteAppended{Note: "n"})
	require.Equal(t, &CheckpointRef{ID: "cp-4", Seq: 4, TS: s.TS, AtPass: 3, Artifact: "a"}, s.Checkpoint)
	s.add(KindPhaseStart, "p", PhaseStart{Key: "p"})
	s.add(KindArtifactUpdated, "p", ArtifactUpdated{Artifact: *named("b")})
	require.EqualValues(t, 4, s.Checkpoint.Seq, "something came between")
	score := 2.5
	s.add(KindCheckpointCreated, "p", CheckpointCreated{ID: "cp-S1", AtPass: 3, AtRound: 1, USD: 2, Score: &score})
	want := CheckpointRef{ID: "cp-S1", Seq: 7, TS: s.TS, AtPass: 3, AtRound: 1, USD: 2, Score: &score, Artifact: "b"}
	require.Equal(t, []CheckpointRef{want}, s.Checkpoints)
	s.add(KindArtifactUpdated, "p", ArtifactUpdated{Artifact: *named("c")})
	require.Equal(t, &want, s.Checkpoint)
	require.True(t, KindArtifactUpdated.PartOfPass())
	require.False(t, KindPassEnd.PartOfPass())
	require.False(t, Kind("unknown").PartOfPass())
	for range keptCheckpoints {
		s.add(KindCheckpointCreated, "p", CheckpointCreated{ID: "x"})
	}
	require.Len(t, s.Checkpoints, keptCheckpoints)
	require.Equal(t, "x", s.Checkpoints[0].ID)
}

func TestStartTakesWhatItIsGiven(t *testing.T) {
	workspace := Workspace{Tree: Blob{Digest: "t"}, Base: "base", Branch: "b"}
	start := RunStart{RunID: "r", ThreadID: "th", RunKind: "k", Pipeline: "p", Task: "x", Epoch: 1, CreatedAt: "c",
		Plan:       "plan",
		Definition: "d", TotalPasses: 4, MaxRounds: 9, Budget: Budget{CapUSD: 2}, Stages: []StageRef{{Name: "a"}},
		Workspace: &workspace, From: &Place{Stage: 1, Round: 2}, Notes: []NoteRef{{Name: "n", File: "n.md"}},
		Artifact: &ArtifactRef{File: "f", Seed: *named("seed")}, Replies: []Reply{{Step: "s"}},
		Found: []ErrorNoted{{Context: "ctx", Category: CategoryFileIO, Message: "m", Attempt: 2}}}
	s := &stream{t, State{TS: "2026-01-02T03:00:00.000Z"}}
	s.add(KindRunStart, "", start)
	require.Equal(t, State{RunID: "r", ThreadID: "th", RunKind: "k", Pipeline: "p", Task: "x", Epoch: 1, CreatedAt: "c",
		StartedAt: s.TS, Starts: 1, Status: Running, Passes: PassCount{Total: 4}, Next: Place{Stage: 1, Round: 2},
		Commit: "base"}, pick(s.State, "RunID", "ThreadID", "RunKind", "Pipeline", "Task", "Epoch", "CreatedAt", "StartedAt",
		"Starts", "Status", "Passes", "Next", "Commit"))
	require.Equal(t, "t", s.Tree.Digest)
	require.Equal(t, "seed", s.Artifact.Digest)
	require.Nil(t, s.Stages, "a run of corpus wording that names none has none")
	require.Equal(t, &CurrentPlan{PlanRef: start.PlanRef()}, s.Plan)
	require.Equal(t, []Notes{{Name: "n", File: "n.md"}}, s.Notes)
	require.Equal(t, start.Replies, s.Replies)
	require.Equal(t, &Problem{TS: s.TS, Context: "ctx", Category: CategoryFileIO, Message: "m", Attempt: 2}, s.Problem)
	require.EqualValues(t, 1, s.Checkpoint.Seq)

	workspace.Commit = "commit"
	start.Wording, start.State, start.Plan = WordingStages, &State{Passes: PassCount{Total: 1, Invalid: 2},
		StartedAt: "then",
		Next:      Place{Step: 7}}, ""
	s = &stream{t, State{TS: "2026-01-02T03:00:00.000Z"}}
	s.add(KindRunStart, "", start)
	require.Equal(t, State{Commit: "commit", StartedAt: "then", Passes: PassCount{Total: 4, Invalid: 2},
		Next: Place{Step: 7}, Stages: start.Stages},
		pick(s.State, "Commit", "StartedAt", "Passes", "Next", "Stages", "Plan"))
	ended := s.State
	ended.Status = Failed
	require.NotEmpty(t, Apply(ended, Event{Seq: 9, Kind: KindRunStart, Payload: []byte(`{"epoch":1}`)}).InvalidTransition)
	require.Equal(t, 2, Apply(ended, Event{Seq: 9, Kind: KindRunStart, Payload: []byte(`{"epoch":2}`)}).Epoch)
}

// Totals keep calls, tokens and costs apart.
func TestTotalsOfCalls(t *testing.T) {
	var sum Totals
	sum.Add(Spend{USD: 1, Tokens: Tokens{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4}})
	require.Empty(t, sum.Known, "of an earlier version")
	sum.Add(Spend{USD: 0.5, Estimated: true, Known: CostAtLeast, Tokens: Tokens{Input: 10}})
	sum.Add(Spend{Known: CostUnknown})
	require.Equal(t, Totals{Calls: 3, Tokens: Tokens{Input: 11, Output: 2, CacheRead: 3, CacheWrite: 4}, USD: 1.5,
		EstimatedUSD: 0.5, Unknown: 2, Known: CostAtLeast}, sum)
	sum.Add(Spend{USD: 1, Covers: 5})
	require.Zero(t, sum.Unknown)
	require.Equal(t, CostExact, sum.Known)
	require.Equal(t, 4, sum.Calls)
	line := Line{Bytes: []byte("one")}
	require.Equal(t, Chain("a").Then("one"), line.Chain("a"))
	require.Equal(t, Chain("b").Then("one"), line.Chain("b"), "the buffer is used again")
}
