package view_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/report"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func ptr[T any](v T) *T { return &v }

// TestRecordsHaveEachValue reads a run in which no two values are equal.
func TestRecordsHaveEachValue(t *testing.T) {
	j := &journal{t: t}
	start := run.RunStart{Task: "task", Pipeline: "pipe", RunID: "r-1", ThreadID: "thread", Epoch: 3, CreatedAt: "created",
		Definition: "definition", Build: "build", Parent: &run.Parent{RunID: "r-0", Mode: "follow_up"},
		Budget:   run.Budget{CapUSD: 9},
		Artifact: &run.ArtifactRef{File: "page.html", Seed: run.Blob{Digest: "seed"}},
		Workspace: &run.Workspace{Kind: run.WorkspaceGit, Source: "source", Base: "base", Branch: "branch",
			Commit: "commit-0",
			Tree:   run.Blob{Digest: "tree-0"}}}
	j.add(run.KindRunStart, start)
	j.stage = "work"
	j.add(run.KindPhaseStart, run.PhaseStart{Key: "key", Title: "Work", Round: 2})
	p := run.Pass{Step: "step", Number: 7, InRound: 8, OfRound: 9, Set: "S1", Round: 2, Member: "member", Role: "role",
		Gives: "changes", Title: "title", Description: "text"}
	artifact := p
	artifact.Gives, artifact.Step = "artifact", "page"
	j.add(run.KindPassStart, run.PassStart{Pass: artifact, Call: "call-0", Attempt: 1, Before: "before"})
	j.add(run.KindPassStart, run.PassStart{Pass: p, Call: "call-1", Attempt: 1, Before: "other"})
	cost := run.Spend{USD: 0.5, Known: run.CostAtLeast}
	for i, category := range []run.Category{run.CategoryAgentTimeout, run.CategorySpawnFailed, run.CategoryOutputEmpty,
		run.CategoryLost} {
		a := run.PassAttempt{Pass: p, Call: "call-1", Attempt: i + 1, Category: category, Message: "message"}
		if i == 2 {
			a.Spend = &cost
		}
		j.add(run.KindPassAttempt, a)
	}
	end := run.PassEnd{Pass: p, Call: "call-2", Outcome: run.CategoryOK, StartedAt: "from", CompletedAt: "until",
		DurationMS: 61, Attempts: 5, Reply: &run.Blob{Digest: "reply"}, Artifact: &run.Blob{Digest: "after"},
		Before:   "before",
		Modified: true, Reused: true, Validation: run.Validation{Passed: true, Checks: []run.Check{{Name: "a", Passed: true},
			{Name: "b"}, {Name: "c", Detail: "why"}}, Warnings: []string{"w"}},
		Tally: []run.Count{{Name: "n"}}, Score: ptr(2.5), Verdict: "verdict", Value: "value",
		Findings: &run.Findings{Digest: "f", Blockers: 2}, Found: &run.Found{Count: 1, Outside: []string{"o"}},
		Scope: &run.Scope{Role: "planner"}, Tree: &run.Blob{Digest: "tree-1"}, Spend: run.Spend{USD: 1.25, Tokens: run.Tokens{
			Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4}, Known: run.CostExact}}
	ended := j.add(run.KindPassEnd, end)
	files := []run.FileChange{{Path: "a.go", Kind: "added"}}
	j.add(run.KindWorkspaceUpdated, run.WorkspaceUpdated{Step: "step", Call: "call-2", Tree: run.Blob{Digest: "tree-1"},
		Commit: "commit-1", Changed: 4, Files: files})
	j.add(run.KindWorkspaceUpdated, run.WorkspaceUpdated{Step: "step", Call: "other", Tree: run.Blob{Digest: "tree-1"},
		Changed: 9})
	j.add(run.KindWorkspaceUpdated, run.WorkspaceUpdated{Step: "step", Call: "call-2", Cause: "edited", Changed: 8,
		Tree: run.Blob{Digest: "tree-2"}})
	tampered := run.Tampered{Step: "step", Call: "call-2", Role: "role", Count: 1}
	j.add(run.KindWorkspaceTampered, tampered)
	j.add(run.KindWorkspaceTampered, run.Tampered{Step: "other", Call: "call-2", Count: 5})
	failed := j.add(run.KindPassEnd, run.PassEnd{Pass: artifact, Call: "call-3", Outcome: run.CategoryOutputEmpty,
		Artifact: &run.Blob{Digest: "x"}, Before: "before"})
	j.add(run.KindScreenshots, run.Screenshots{Step: "shots", Count: 2})
	scored := j.add(run.KindScoreRecorded, run.ScoreRecorded{Name: "quality", Round: 2, Score: ptr(3.5),
		Threshold: ptr(4.0),
		Met:       true, Why: "why"})
	asked := j.add(run.KindGateRequested, run.QuestionRequested{Kind: run.QuestionGate, ID: "gate", Question: "Good?",
		Trigger: "trigger", Round: 2, Digest: "judged", Subject: run.Subject{USD: 1}})
	j.add(run.KindGateDecided, run.QuestionDecided{Kind: run.QuestionGate, ID: "gate", Action: "action",
		Feedback: "feedback",
		Note:     "note", DecidedBy: "ann", DecidedAt: "then"})
	second := j.add(run.KindGateRequested, run.QuestionRequested{Kind: run.QuestionGate, ID: "gate-2", Phase: "phase"})
	j.add(run.KindGateDecided, run.QuestionDecided{Kind: run.QuestionGate, ID: "gate-2", Action: "retry"})
	j.add(run.KindRunPaused, run.RunPaused{Reason: "user-requested", Detail: "detail", By: "bob"})
	j.add(run.KindRunResumed, run.RunResumed{Epoch: 3})
	closed := j.add(run.KindPhaseEnd, run.PhaseEnd{Key: "key", Title: "Work", Outcome: "ok", Round: 2})
	j.add(run.KindPhaseEnd, run.PhaseEnd{Key: "work", Outcome: "failed"})
	delivered := run.DeliveryCompleted{ID: "d", Action: "apply", Delivered: true, Diff: "diff", Commit: "commit-2",
		To:     "to",
		Target: "target", Files: 3}
	at2 := j.add(run.KindDeliveryCompleted, delivered)
	j.add(run.KindRunEnd, run.RunEnd{Status: run.Failed, Reason: "reason"})

	e, err := view.ReadRecord(j.dir())
	require.NoError(t, err)
	require.Equal(t, "r-1", e.RunID)
	require.Equal(t, "task", e.Task)
	require.Equal(t, "pipe", e.Pipeline)
	require.Equal(t, "definition", e.Definition)
	require.Equal(t, start.Parent, e.Parent)
	require.Equal(t, run.Failed, e.Status)
	require.Equal(t, "reason", e.Reason)
	require.Equal(t, "created", e.CreatedAt)
	require.Equal(t, at(1), e.StartedAt)
	require.Equal(t, at(j.seq), e.FinishedAt)
	require.Equal(t, 3, e.Epochs)
	require.Equal(t, "build", e.Build)
	require.Equal(t, &rundir.Workspace{Kind: run.WorkspaceGit, Source: "source", Base: "base", Branch: "branch",
		Commit: "commit-1", Start: "tree-0", Tree: "tree-2"}, e.Workspace)
	require.Equal(t, &view.Artifact{File: "page.html", Seed: "seed", Now: "seed"}, e.Artifact)
	require.Equal(t, view.Pass{Seq: ended, Number: 7, Step: "step", Call: "call-2", Stage: "work", Round: 2,
		Role:   "role",
		Member: "member", Title: "title", Outcome: run.CategoryOK, Attempts: 5, StartedAt: "from", CompletedAt: "until",
		DurationMS: 61, USD: 1.75, Unknown: 1, CostKnown: run.CostAtLeast,
		CostNote: "that of an earlier attempt is not fully known", Reused: true, Modified: true, Changed: 4,
		Files:  files,
		Commit: "commit-1", Checks: end.Validation, Verdict: "verdict", Findings: end.Findings, Score: end.Score,
		Value: "value", Tampered: &tampered, Found: end.Found, Scope: end.Scope, Set: "S1", Turn: 1, Tally: end.Tally,
		Prompt: rundir.PromptFile(p), Reply: rundir.ReplyFile(p), Frames: rundir.EnvelopeFile(p), Before: "before",
		After: "after"}, e.Passes[0])
	failure := e.Passes[1]
	require.Equal(t, failed, failure.Seq)
	require.Empty(t, failure.Reply+failure.Before+failure.After)
	require.Equal(t, run.CategoryOutputEmpty, failure.Outcome)
	require.Zero(t, failure.Turn)
	require.Zero(t, failure.USD)
	require.Zero(t, failure.Changed)
	require.Equal(t, run.CostExact, failure.CostKnown)
	var known []run.CostKnown
	for i, f := range e.Failures {
		require.Equal(t, view.Failure{Seq: int64(5 + i), Number: 7, Step: "step", Round: 2, Role: "role",
			Member:  "member",
			Attempt: i + 1, Category: f.Category, Message: "message", USD: f.USD, CostKnown: f.CostKnown}, f)
		known = append(known, f.CostKnown)
	}
	require.Equal(t, []run.CostKnown{run.CostUnknown, run.CostExact, run.CostAtLeast}, known, "a lost worker is no failed attempt")
	require.Equal(t, []view.Score{{Seq: scored, Name: "quality", Round: 2, Score: ptr(3.5), Threshold: ptr(4.0),
		Met: true,
		Why: "why"}}, e.Scores)
	require.Equal(t, []view.Decision{{Seq: asked, Kind: "gate", ID: "gate", Question: "Good?", Trigger: "trigger",
		Phase: "work", Round: 2, Judged: "judged", Subject: run.Subject{USD: 1}, RequestedAt: at(asked), Action: "action",
		Feedback: "feedback", Note: "note", By: "ann", DecidedAt: "then"},
		{Seq: second, Kind: "gate", ID: "gate-2", Phase: "phase", RequestedAt: at(second), Action: "retry",
			DecidedAt: at(second + 1)}}, e.Decisions)
	require.Contains(t, e.Actions, view.Action{Seq: second + 2, At: at(second + 2), What: "paused: user-requested",
		By:   "bob",
		Note: "detail"})
	require.Equal(t, []view.Phase{{Seq: closed, Name: "key", Round: 2, Outcome: "ok", EndedAt: at(closed)},
		{Seq: closed + 1, Name: "work", Outcome: "failed", EndedAt: at(closed + 1)}}, e.Phases)
	require.Equal(t, &view.Delivery{Seq: at2, At: at(at2), DeliveryCompleted: delivered,
		Fresh: "not checked in a fresh folder"}, e.Delivery)
	require.Equal(t, view.Spend{USD: 1.75, Unknown: 1, CostKnown: run.CostAtLeast, CapUSD: 9,
		Tokens: run.Tokens{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4},
		ByRole: []view.RoleCost{{Role: "role", Calls: 3,
			USD: 1.75, Unknown: 1}}}, e.Spend)
	h := e.History
	require.Equal(t, map[string]string{"before": rundir.BackupFile(artifact, "page.html")}, h.Backups)
	require.Equal(t, map[string]view.StageTitle{"work": {Title: "Work", Repeats: true}}, h.Stages)
	require.Equal(t, []view.Amount{{At: at(1), USD: 9}}, h.Budgets)
	require.Equal(t, []view.Amount{{At: at(7), USD: 0.5}, {At: at(ended), USD: 1.75}, {At: at(failed), USD: 1.75}},
		h.Costs)
	require.Len(t, h.Shots, 1)
	require.Equal(t, "shots", h.Shots[0].Step)
	require.Equal(t, "task", h.Start.Task)

	var page bytes.Buffer
	require.NoError(t, report.Markdown(&page, e))
	golden(t, "every-kind", page)
}

// TestPageOfOpenRun shows what a run without an end, without files and with damage has.
func TestPageOfOpenRun(t *testing.T) {
	score := 1.5
	e := view.Record{StartedAt: at(1), Damaged: 2, Delivery: &view.Delivery{}, Reverted: 2,
		Artifact: &view.Artifact{File: "f"},
		Passes:   []view.Pass{{Step: "fix", Title: "Fix", Modified: true}, {Role: "r", Value: "v", Verdict: "v"}},
		Scores:   []view.Score{{Name: "q", Round: 1, Why: "no file"}, {Name: "q", Round: 2, Score: &score}},
		Decisions: []view.Decision{{Kind: "gate", Phase: "p", Round: 1, Trigger: "rejected",
			Subject: run.Subject{Unknown: 1,
				Judged: &run.Judged{Word: "no", Role: "r"}, Change: &run.Change{Files: []string{"a"}}}}}}
	var page bytes.Buffer
	require.NoError(t, report.Markdown(&page, e))
	golden(t, "open", page)
	page.Reset()
	require.NoError(t, report.Markdown(&page, view.Record{StartedAt: at(1), FinishedAt: "x", Delivery: &view.Delivery{
		DeliveryCompleted: run.DeliveryCompleted{Message: "skipped"}}, Passes: []view.Pass{{Role: "r"}},
		Inputs: make([]rundir.InputFile, 20)}))
	golden(t, "skipped", page)
	require.ErrorIs(t, report.Markdown(broken{}, view.Record{}), errBroken)
}

type broken struct{}

var errBroken = errors.New("broken")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

// TestLimitIsShownWhileRunWaits: a limit that the run no longer waits for is not part of the evidence.
func TestLimitIsShownWhileRunWaits(t *testing.T) {
	j := &journal{t: t}
	j.add(run.KindRunStart, run.RunStart{RunID: "r-1"})
	j.add(run.KindRunLimited, run.RunLimited{Limited: run.Limited{LimitedCall: run.LimitedCall{
		Limit: run.Limit{Kind: run.LimitPlan, Account: "max"}, Until: at(30), N: 1}}})
	e, err := view.ReadRecord(j.dir())
	require.NoError(t, err)
	require.Equal(t, "max", e.Limited.Account)
	var page bytes.Buffer
	require.NoError(t, report.Markdown(&page, e))
	require.Contains(t, page.String(), "| Limit | waits until 2026-01-02 03:30 (UTC) for account max (usage limit) |")
	j.add(run.KindRunUnlimited, run.RunUnlimited{Cause: run.LimitTimer})
	j.lines.WriteString("{damaged\n")
	e, err = view.ReadRecord(j.dir())
	require.NoError(t, err)
	require.Nil(t, e.Limited)
	require.Equal(t, 1, e.Damaged)
}
