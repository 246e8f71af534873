package rundir_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// header folds a run of a workspace, and returns meta.json without what the state and the history hold.
func (j *journal) header() rundir.Meta {
	j.head.Derive()
	m := j.head.Meta
	m.State, m.History = run.State{}, run.History{}
	return m
}

func treeRun() run.RunStart {
	start := corpus()
	start.Artifact, start.Wording, start.Project, start.Snapshots = nil, run.WordingStages, "/project", run.SnapshotsFull
	start.Workspace = &run.Workspace{Kind: run.WorkspaceGit, Source: "/source", Base: "base", Branch: "branch",
		Tree: run.Blob{Digest: "tree-0"}}
	start.Parent = &run.Parent{RunID: "parent", Mode: "follow_up"}
	start.Stages = []run.StageRef{{Name: "write", Kind: "once"}}
	return start
}

// TestHeader compares meta.json at the start, in a pass, after it, and at the end.
func TestHeader(t *testing.T) {
	j := newJournal(t)
	j.add(run.KindRunStart, treeRun())
	want := rundir.Meta{
		Version: 1, RunID: "run-1", ThreadID: "thread-1", SkillID: "book", SkillVersion: "definition", Status: "running",
		RFCStatus: "running", CreatedAt: at(0), StartedAt: at(1), CheckpointHead: pointer("cp-1"),
		TraceID: "7d211724ef82698b899af4196e7781bf", TenantID: "tenant", Environment: "test",
		Versions:         rundir.Versions{Capabilities: []string{"claude 2.1"}, Bindings: "build", RegistryRef: "definition"},
		PolicySnapshotID: "policy", Task: "page", RunKind: "pipeline", Project: "/project", Profile: "work", Epoch: 1,
		Workspace: &rundir.Workspace{Kind: "git", Source: "/source", Base: "base", Branch: "branch", Commit: "base",
			Start: "tree-0", Tree: "tree-0", Snapshots: "full"},
		Parent: &run.Parent{RunID: "parent", Mode: "follow_up"},
	}
	first := j.header()
	require.Equal(t, want, first)

	j.phase = "write"
	j.add(run.KindPhaseStart, run.PhaseStart{Key: "write", Title: "Write", Round: 1})
	j.begin(run.Pass{Step: "fix", Role: "worker", Gives: "changes", Round: 1}, "")
	require.Equal(t, pointer("fix"), j.header().CurrentStepID)
	j.begin(run.Pass{Step: "other", Role: "worker", Gives: "changes", Round: 1}, "")
	want.CurrentStepID = pointer("fix")
	require.Equal(t, want, j.header())
	j.add(run.KindPassEnd, endedPass(run.Pass{Step: "fix", Role: "worker", Gives: "changes", Round: 1}, 1))
	j.add(run.KindPassEnd, endedPass(run.Pass{Step: "other", Role: "worker", Gives: "changes", Round: 1}, 1))
	j.add(run.KindWorkspaceUpdated, run.WorkspaceUpdated{Step: "fix", Tree: run.Blob{Digest: "tree-1"}, Commit: "c1"})
	got := j.header()
	require.Equal(t, "tree-1", got.Workspace.Tree)
	require.Equal(t, "c1", got.Workspace.Commit)
	require.Equal(t, "tree-0", got.Workspace.Start)
	require.Nil(t, got.CurrentStepID)
	require.Equal(t, "tree-0", first.Workspace.Tree, "what was read does not change")

	j.add(run.KindRunEnd, run.RunEnd{Status: run.Done, Reason: "because"})
	got = j.header()
	require.Equal(t, pointer("tree-1"), got.Result)
	require.Nil(t, got.Error)
	require.Equal(t, pointer(at(8)), got.FinishedAt)
	require.Equal(t, "because", got.Reason)
	require.Equal(t, "completed", got.RFCStatus)
}

// TestHeaderOfEarlierStarts lacks what an earlier version did not write.
func TestHeaderOfEarlierStarts(t *testing.T) {
	start := corpus()
	start.Project, start.Agents = "/project", nil
	j := newJournal(t)
	j.add(run.KindRunStart, start)
	m := j.header()
	require.Empty(t, m.Project)
	require.Empty(t, m.Profile)
	require.Nil(t, m.Workspace)
	require.Equal(t, []string{}, m.Versions.Capabilities)
	j.add(run.KindWorkspaceUpdated, run.WorkspaceUpdated{Tree: run.Blob{Digest: "tree"}})
	require.Nil(t, j.header().Workspace)
	j.head.Workspace, j.head.State.Tree = &rundir.Workspace{Tree: "old"}, nil
	require.Equal(t, "old", j.header().Workspace.Tree)

	start.Wording, start.Kind = run.WordingCorpus, "planning"
	j = newJournal(t)
	j.add(run.KindRunStart, start)
	require.Equal(t, "planning", j.header().Profile)
}

// TestResultOfARun is its artifact, or its tree; a failed run has an error.
func TestResultOfARun(t *testing.T) {
	j := newJournal(t)
	j.start()
	require.Nil(t, j.header().Result, "it is not done")
	j.add(run.KindRunEnd, run.RunEnd{Status: run.Done})
	require.Equal(t, pointer("seed"), j.header().Result)

	j = newJournal(t)
	j.start()
	j.add(run.KindRunEnd, run.RunEnd{Status: run.Failed, Reason: "why"})
	m := j.header()
	require.Equal(t, pointer("why"), m.Error)
	require.Nil(t, m.Result)
	require.Equal(t, "why", m.State.Reason+m.Reason)
	j.add(run.KindRunResumed, run.RunResumed{Epoch: 2, From: run.Failed})
	m = j.header()
	require.Nil(t, m.Error)
	require.Nil(t, m.FinishedAt)
	require.Equal(t, 2, m.Epoch)
}

// TestResumeFromCheckpoint names what the current epoch continues from.
func TestResumeFromCheckpoint(t *testing.T) {
	j := newJournal(t)
	j.start()
	j.add(run.KindPassEnd, endedPass(builder(1), 1))
	require.Nil(t, j.header().ResumeFromCheckpointID)
	j.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
	j.add(run.KindRunResumed, run.RunResumed{Epoch: 1, From: run.Paused})
	require.Nil(t, j.header().ResumeFromCheckpointID, "the same epoch")
	head := j.head.State.Checkpoint.ID
	j.add(run.KindRunInterrupted, run.RunInterrupted{Reason: "terminated", At: at(9)})
	j.add(run.KindRunResumed, run.RunResumed{Epoch: 2, From: run.Interrupted})
	require.Equal(t, pointer(head), j.header().ResumeFromCheckpointID)
	state := j.head.State.Clone()
	j.add(run.KindRunReverted, run.RunReverted{To: 3, Cause: "revert", Checkpoint: "cp-S1", State: &state})
	require.Equal(t, pointer("cp-S1"), j.header().ResumeFromCheckpointID)
	j.add(run.KindRunReverted, run.RunReverted{To: 3, Cause: "reset", State: &state})
	require.Equal(t, pointer("cp-3"), j.header().ResumeFromCheckpointID)

	bare := run.State{Version: run.StateVersion, Status: run.Failed, Epoch: 2}
	j.head = rundir.Header{Meta: rundir.Meta{State: bare, ResumeFromCheckpointID: pointer("old")}}
	j.add(run.KindRunResumed, run.RunResumed{Epoch: 3, From: run.Failed})
	require.Nil(t, j.head.ResumeFromCheckpointID, "nothing to continue from")

	start := corpus()
	start.Source = &run.Source{RunID: "source", Checkpoint: "cp-7", Mode: run.ModeFork}
	j = newJournal(t)
	j.add(run.KindRunStart, start)
	m := j.header()
	require.Equal(t, pointer("cp-7"), m.ResumeFromCheckpointID)
	require.Equal(t, start.Source, m.Source)
}

// TestReviewIsAHandoffOfTheHeader: a plan-only run that awaits its review keeps it, also interrupted (requirement 000).
func TestReviewIsAHandoffOfTheHeader(t *testing.T) {
	j := newJournal(t)
	j.start()
	j.add(run.KindReviewRequested, run.QuestionRequested{
		Kind: run.QuestionReview, ID: "r1", Phase: "plan", Question: "Do you approve its result?", Round: 1,
		Trigger: run.TriggerPlanReady, Actions: []string{"approve", "halt"},
		Artifacts: []run.Attached{{Name: "result", Digest: "plan"}}, Digest: "plan",
	})
	want := &rundir.PhaseHandoff{
		ID: "r1", Phase: "plan", Question: "Do you approve its result?", Trigger: run.TriggerPlanReady, Round: 1,
		Actions: []string{"approve", "halt"}, Artifacts: []run.Attached{{Name: "result", Digest: "plan"}}, Digest: "plan",
		RequestedAt: at(3),
	}
	require.Equal(t, string(run.AwaitingHumanReview), j.header().Status)
	require.Equal(t, want, j.header().PhaseHandoff)
	j.add(run.KindRunInterrupted, run.RunInterrupted{Reason: "gone", At: at(5)})
	require.Equal(t, want, j.header().PhaseHandoff)
}

// TestHandoffOfTheHeader is the open hand-off.
func TestHandoffOfTheHeader(t *testing.T) {
	j := newJournal(t)
	j.start()
	require.Nil(t, j.header().PhaseHandoff)
	asked := run.QuestionRequested{
		Kind: run.QuestionHandoff, ID: "h1", Phase: "write", Question: "accept?", Type: run.HandoffFeedbackAlways,
		Trigger: "always", Round: 2, Actions: []string{"continue", "halt"}, Verdict: "REJECT", Approved: pointer(false),
		LoopMaxRounds: 3, Artifacts: []run.Attached{{Name: "report", Digest: "r"}}, LastOutput: "out", Digest: "judged",
		Deadlines: run.Deadlines{RemindMS: 60, ExpiresAt: at(900), OnExpiry: "halt"},
	}
	j.add(run.KindHandoffRequested, asked)
	want := &rundir.PhaseHandoff{
		ID: "h1", Phase: "write", Question: "accept?", Type: run.HandoffFeedbackAlways, Trigger: "always", Verdict: "REJECT",
		Approved: pointer(false), Round: 2, LoopMaxRounds: 3, Actions: []string{"continue", "halt"},
		Artifacts: []run.Attached{{Name: "report", Digest: "r"}}, LastOutput: "out", Digest: "judged", RequestedAt: at(3),
		Deadlines: asked.Deadlines,
	}
	require.Equal(t, want, j.header().PhaseHandoff)
	j.add(run.KindQuestionReminded, run.QuestionReminded{ID: "h1", Number: 1})
	want.Reminded = 1
	require.Equal(t, want, j.header().PhaseHandoff)

	j = newJournal(t)
	j.start()
	asked.Artifacts, asked.Actions = nil, nil
	j.add(run.KindHandoffRequested, asked)
	require.Equal(t, []run.Attached{}, j.header().PhaseHandoff.Artifacts, "a list is never null")
	require.Equal(t, []string{}, j.header().PhaseHandoff.Actions)
}
