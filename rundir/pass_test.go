package rundir_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestStateOfAPass compares state.json after each event of a builder that needs two attempts.
func TestStateOfAPass(t *testing.T) {
	j := newJournal(t)
	j.add(run.KindRunStart, corpus())
	threshold := 3.5
	want := rundir.NewState()
	want.RunID, want.ConfigHash, want.StartedAt = "run-1", "0123456789abcdef", at(1)
	want.TotalCorpusPasses, want.MaxPACycles, want.PAScoreThreshold = 4, 6, &threshold
	want.CurrentArtifactPath, want.CurrentArtifactHash = "page.html", "seed"
	want.ConvictionLayerPath, want.DiscoveryLogPath = "_orchestrator/one.md", "_orchestrator/two.md"
	want.Cost.BudgetHardCapUSD, want.Cost.BudgetWarningThresholdUSD = 50, 40
	want.LastSeq, want.LastSavedAt = 1, at(1)
	require.Equal(t, want, j.state)

	j.phase = "write"
	j.add(run.KindPhaseStart, run.PhaseStart{Key: "write", Title: "Write", Round: 1})
	want.CurrentPhase, want.LastSeq, want.LastSavedAt = "write", 2, at(2)
	require.Equal(t, want, j.state)

	j.begin(builder(1), "seed")
	want.ArtifactBackups = []string{"_orchestrator/passes/pass-001/artifact-backup.html"}
	want.CurrentSubsetID, want.LastSeq, want.LastSavedAt = pointer("S1"), 3, at(3)
	want.InFlightPass = &rundir.InFlightPass{GlobalPassNumber: 1, StartedAt: at(3), AgentRole: "builder", SubsetID: "S1"}
	require.Equal(t, want, j.state)

	first := spentCalls(8)
	first.Estimated, first.Known = true, run.CostUnknown
	j.add(run.KindPassAttempt, run.PassAttempt{Pass: builder(1), Call: "call", Attempt: 1,
		Category: run.CategoryOutputTruncated, Message: "it ends early", Diagnostics: "the end", Output: &run.Blob{},
		Judged: true, RetryInMS: 5, Spend: &first})
	require.Nil(t, j.state.InFlightPass)
	require.Equal(t, map[string]int{"_orchestrator/passes/pass-001/raw-output-FAILED.txt": 1}, j.state.FailedOutputs)
	require.Equal(t, []rundir.PendingSpend{{Context: "pass-1", Spend: first}}, j.state.PendingSpend)
	failed := rundir.ErrorRecord{Timestamp: at(4), Context: "pass-1", Category: run.CategoryOutputTruncated,
		Message: "it ends early", Diagnostics: "the end"}
	require.Equal(t, []rundir.ErrorRecord{failed}, j.state.PendingErrors)
	require.Empty(t, j.state.ErrorHistory)

	j.begin(builder(1), "seed")
	require.Len(t, j.state.ArtifactBackups, 1, "it is listed once")
	end := endedPass(builder(1), 1)
	end.Attempts, end.Artifact, end.Modified = 2, &run.Blob{Digest: "page-1", Size: 99, Chars: 90}, true
	end.Before = "seed"
	end.Notes = []run.Added{{Name: "discovery", File: "two.md", Chars: 3}}
	end.Validation = run.Validation{Checks: []run.Check{{Name: "whole", Passed: true}, {Name: "long"}},
		Warnings: []string{"short"}}
	j.add(run.KindPassEnd, end)
	j.add(run.KindArtifactUpdated, run.ArtifactUpdated{Step: "001", Artifact: *end.Artifact})
	j.add(run.KindNoteAppended, run.NoteAppended{Note: "discovery", File: "two.md", Step: "001"})

	record := rundir.PassRecord{
		GlobalPassNumber: 1, SubsetPassNumber: 11, SubsetID: "S1", Rotation: "B", AgentRole: "builder",
		Description: "what it does", StartedAt: at(101), CompletedAt: at(201), DurationMS: 7001, RetryCount: 1,
		PromptPath:    "_orchestrator/passes/pass-001/prompt.md",
		RawOutputPath: "_orchestrator/passes/pass-001/raw-output.txt",
		BackupPath:    pointer("_orchestrator/passes/pass-001/artifact-backup.html"),
		ArtifactPath:  pointer("page.html"), ArtifactHash: pointer("page-1"),
		ValidationDetails: run.Validation{Checks: []run.Check{{Name: "whole", Passed: true}, {Name: "long"}},
			Warnings: []string{"short"}},
		Tokens: rundir.PassTokens{InputTokens: 9000, OutputTokens: 1800, CacheReadTokens: 270, CacheWriteTokens: 36,
			EstimatedCostUSD: 2.25, Estimated: true, UnknownCalls: 1},
		HasDiscoveryAddition: true, CorpusFilesLoaded: []string{"a.md", "b.md"}, ReferenceFilesLoaded: []string{"r.md"},
		Outcome: run.CategoryOK,
	}
	failed.Recovered, failed.RecoveredAtAttempt = true, pointer(2)
	want.PassRecords["1"], want.InFlightPass, want.LastCompletedCorpusPass = record, nil, 1
	want.ErrorHistory = []rundir.ErrorRecord{failed}
	want.FailedOutputs = map[string]int{"_orchestrator/passes/pass-001/raw-output-FAILED.txt": 1}
	want.CurrentArtifactHash, want.DiscoveryEntryCount, want.Turns = "page-1", 1, 1
	want.LastSeq, want.LastSavedAt = 8, at(8)
	cost := rundir.RoleCost{InputTokens: 9000, OutputTokens: 1800, CostUSD: 2.25, PassCount: 1, UnknownCalls: 1}
	want.Cost.ByRole["builder"], want.Cost.BySubset["S1"] = cost, cost
	want.Cost.TotalInputTokens, want.Cost.TotalOutputTokens = 9000, 1800
	want.Cost.TotalCacheReadTokens, want.Cost.TotalCacheWriteTokens, want.Cost.TotalEstimatedCostUSD = 270, 36, 2.25
	require.Equal(t, want, j.state)
}

// TestRecordOfAPass names the fields of pass records that depend on the kind of pass and on its outcome.
func TestRecordOfAPass(t *testing.T) {
	j := newJournal(t)
	j.start()
	j.begin(verifier(1), "seed")
	require.Empty(t, j.state.ArtifactBackups, "a verifier changes nothing")
	j.add(run.KindPassEnd, endedPass(verifier(1), 1))
	r := j.state.PassRecords["1"]
	require.Nil(t, r.BackupPath)
	require.Nil(t, r.ArtifactPath)
	require.Nil(t, r.ArtifactHash)
	require.Equal(t, []string{}, r.CorpusFilesLoaded, "a list is never null")
	require.Equal(t, []string{}, r.ReferenceFilesLoaded)
	require.True(t, r.ValidationPassed)
	require.Zero(t, r.RetryCount)
	require.False(t, r.HasConvictionAddition)
	require.Zero(t, j.state.Turns)

	j.begin(builder(2), "")
	require.Empty(t, j.state.ArtifactBackups, "there was no artifact")
	given := endedPass(builder(2), 2)
	given.Outcome = run.CategoryNoArtifact
	given.Notes = []run.Added{{Name: "conviction", File: "one.md"}}
	j.add(run.KindPassEnd, given)
	r = j.state.PassRecords["2"]
	require.Nil(t, r.BackupPath)
	require.Empty(t, r.RawOutputPath, "no attempt left an output")
	require.Equal(t, run.CategoryNoArtifact, r.Outcome)
	require.True(t, r.HasConvictionAddition)
	require.False(t, r.HasDiscoveryAddition)
	require.Equal(t, 1, j.state.Turns, "whatever its outcome")

	for range 3 {
		j.add(run.KindPassAttempt, run.PassAttempt{Pass: builder(3), Category: run.CategoryNoArtifact,
			Output: &run.Blob{}})
	}
	j.add(run.KindPassAttempt, run.PassAttempt{Pass: builder(3), Category: run.CategoryAgentTimeout}) // it output nothing
	j.add(run.KindPassAttempt, run.PassAttempt{Pass: builder(3), Category: run.CategorySuperseded, Output: &run.Blob{},
		Late: 1})
	last := endedPass(builder(3), 3)
	last.Outcome, last.Before, last.Attempts = run.CategoryNoArtifact, "seed", 4
	j.add(run.KindPassEnd, last)
	r = j.state.PassRecords["3"]
	require.Equal(t, "_orchestrator/passes/pass-003/raw-output-FAILED-3.txt", r.RawOutputPath)
	require.Equal(t, pointer("_orchestrator/passes/pass-003/artifact-backup.html"), r.BackupPath)
	require.Equal(t, 3, r.RetryCount)
}

// TestCategoriesOfTheWording: the records of a run of stages name the categories as its definition does.
func TestCategoriesOfTheWording(t *testing.T) {
	start := corpus()
	start.Wording = run.WordingStages
	j := newJournal(t)
	j.add(run.KindRunStart, start)
	j.phase = "write"
	j.add(run.KindPhaseStart, run.PhaseStart{Key: "write", Title: "Write", Round: 1})
	j.add(run.KindPassAttempt, run.PassAttempt{Pass: builder(1), Category: run.CategoryAgentExit})
	end := endedPass(builder(1), 1)
	end.Outcome = run.CategoryAgentExit
	j.add(run.KindPassEnd, end)
	require.Equal(t, run.Category("agent-exit-nonzero"), j.state.PassRecords["1"].Outcome)
	require.Equal(t, run.Category("agent-exit-nonzero"), j.state.ErrorHistory[0].Category)
}

// TestSpendOfAttempts adds the attempts of a pass to it, and those of no other pass.
func TestSpendOfAttempts(t *testing.T) {
	j := newJournal(t)
	j.start()
	other := spentCalls(16)
	j.add(run.KindPassAttempt, run.PassAttempt{Pass: verifier(2), Category: run.CategoryLost, Spend: &other})
	unknown := run.Spend{Known: run.CostUnknown}
	for range 2 {
		j.add(run.KindPassAttempt, run.PassAttempt{Pass: builder(1), Category: run.CategoryLost, Spend: &unknown})
	}
	end := endedPass(builder(1), 1)
	end.Spend.Covers, end.Spend.Known = 1, run.CostExact
	j.add(run.KindPassEnd, end)
	require.Equal(t, rundir.PassTokens{InputTokens: 1000, OutputTokens: 200, CacheReadTokens: 30, CacheWriteTokens: 4,
		EstimatedCostUSD: 0.25, UnknownCalls: 1}, j.state.PassRecords["1"].Tokens)
	require.Equal(t, []rundir.PendingSpend{{Context: "pass-2", Spend: other}}, j.state.PendingSpend)
	j.begin(verifier(2), "")
	second := endedPass(verifier(2), 4)
	second.Spend.Covers = 5 // more than are left
	j.add(run.KindPassEnd, second)
	require.Equal(t, rundir.PassTokens{InputTokens: 20000, OutputTokens: 4000, CacheReadTokens: 600,
		CacheWriteTokens: 80, EstimatedCostUSD: 5}, j.state.PassRecords["2"].Tokens)
	require.Empty(t, j.state.PendingSpend)
	require.Equal(t, rundir.RoleCost{InputTokens: 21000, OutputTokens: 4200, CostUSD: 5.25, PassCount: 2,
		UnknownCalls: 1}, j.state.Cost.BySubset["S1"])
	require.Equal(t, rundir.RoleCost{InputTokens: 1000, OutputTokens: 200, CostUSD: 0.25, PassCount: 1,
		UnknownCalls: 1}, j.state.Cost.ByRole["builder"])
	require.Equal(t, 1, j.state.Cost.ByRole["verifier"].PassCount)
}

// TestInFlightPass is set while a numbered pass runs, and only then.
func TestInFlightPass(t *testing.T) {
	j := newJournal(t)
	j.start()
	for _, step := range []string{"weaver", "000"} {
		p := inCycle(1, "", "weaver", "report")
		p.Step = step
		j.begin(p, "")
		require.Nil(t, j.state.InFlightPass, "it has no number")
	}
	member := builder(2)
	member.Member = "m"
	j.begin(member, "")
	require.Nil(t, j.state.InFlightPass, "a member of a group")
	j.begin(builder(2), "")
	require.Equal(t, 2, j.state.InFlightPass.GlobalPassNumber)
	j.add(run.KindScoreRecorded, run.ScoreRecorded{})
	require.Equal(t, 2, j.state.InFlightPass.GlobalPassNumber)
	j.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
	require.Nil(t, j.state.InFlightPass)
	j.add(run.KindRunResumed, run.RunResumed{Epoch: 1, From: run.Paused})
	for _, n := range []int{7, 42, 1234} {
		p := builder(1)
		p.Number, p.Step = n, map[int]string{7: "007", 42: "042", 1234: "1234"}[n]
		j.begin(p, "")
		require.Equal(t, n, j.state.InFlightPass.GlobalPassNumber)
	}
}

// TestBackupsAreListedOnce: of the pass under way it is among the newest, of a pass that ended anywhere.
func TestBackupsAreListedOnce(t *testing.T) {
	j := newJournal(t)
	j.start()
	p := func(n int) run.Pass {
		p := builder(1)
		p.Number = n
		return p
	}
	refine := inCycle(1, "", "refine", "artifact")
	j.begin(refine, "seed")
	for n := 1; n <= 70; n++ {
		j.begin(p(n), "seed")
		j.add(run.KindPassEnd, endedPass(p(n), int64(n)))
	}
	j.begin(p(1), "seed")
	j.begin(p(70), "seed")
	j.begin(refine, "seed")
	j.begin(p(71), "seed")
	j.begin(p(71), "seed")
	require.Len(t, j.state.ArtifactBackups, 72)
	require.Equal(t, "_orchestrator/screenshots/cycle-1/artifact-before-refine.html", j.state.ArtifactBackups[0])
	require.Equal(t, "_orchestrator/passes/pass-071/artifact-backup.html", j.state.ArtifactBackups[71])
}

// TestPhaseOfAStatus names currentPhase, phaseReason and pausedFrom of each way to stand.
func TestPhaseOfAStatus(t *testing.T) {
	type phase struct {
		phase, reason, from string
		completed           bool
	}
	rows := map[string]struct {
		kind    run.Kind
		payload any
		want    phase
	}{
		"paused": {run.KindRunPaused, run.RunPaused{Reason: run.UserRequested},
			phase{"paused", "user-requested", "write", false}},
		"paused for no reason": {run.KindRunPaused, run.RunPaused{}, phase{"paused", "paused", "write", false}},
		"done": {run.KindRunEnd, run.RunEnd{Status: run.Done, Reason: "unused"},
			phase{"complete", "", "", true}},
		"failed": {run.KindRunEnd, run.RunEnd{Status: run.Failed, Reason: "why"},
			phase{"failed", "why", "", true}},
		"halted": {run.KindRunEnd, run.RunEnd{Status: run.Halted}, phase{"failed", "halted", "", true}},
		"interrupted": {run.KindRunInterrupted, run.RunInterrupted{At: at(3)},
			phase{"failed", "interrupted", "", true}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			j := newJournal(t)
			j.start()
			j.add(row.kind, row.payload)
			got := phase{phase: j.state.CurrentPhase, completed: j.state.CompletedAt != nil}
			if r := j.state.PhaseReason; r != nil {
				got.reason = *r
			}
			if f := j.state.PausedFrom; f != nil {
				got.from = *f
			}
			require.Equal(t, row.want, got)
			if got.completed {
				require.Equal(t, at(3), *j.state.CompletedAt)
			}
		})
	}
}

// TestResumedEpochIsNotComplete takes the time of the end back.
func TestResumedEpochIsNotComplete(t *testing.T) {
	j := newJournal(t)
	j.start()
	j.add(run.KindRunEnd, run.RunEnd{Status: run.Failed, Reason: "why"})
	j.add(run.KindRunResumed, run.RunResumed{Epoch: 2, From: run.Failed})
	require.Nil(t, j.state.CompletedAt)
	require.Nil(t, j.state.PhaseReason)
	require.Equal(t, "write", j.state.CurrentPhase)

	j = newJournal(t)
	j.add(run.KindRunStart, corpus())
	j.add(run.KindRunEnd, run.RunEnd{Status: run.Failed})
	require.Equal(t, pointer(at(2)), j.state.CompletedAt, "before the first phase")
}

// TestNoteCounts are those of the notes that the run has.
func TestNoteCounts(t *testing.T) {
	for notes := range 3 {
		start := corpus()
		start.Notes = start.Notes[:notes]
		j := newJournal(t)
		j.add(run.KindRunStart, start)
		for _, name := range []string{"conviction", "discovery", "conviction", "discovery", "discovery"} {
			j.add(run.KindNoteAppended, run.NoteAppended{Note: name})
		}
		paths, counts := [2]string{}, [2]int{}
		copy(paths[:notes], []string{"_orchestrator/one.md", "_orchestrator/two.md"})
		copy(counts[:notes], []int{2, 3})
		require.Equal(t, paths, [2]string{j.state.ConvictionLayerPath, j.state.DiscoveryLogPath})
		require.Equal(t, counts, [2]int{j.state.ConvictionEntryCount, j.state.DiscoveryEntryCount})
	}
}

// TestBudgetMarks are warningThresholdHit and hardCapHit.
func TestBudgetMarks(t *testing.T) {
	j := newJournal(t)
	j.start()
	require.False(t, j.state.Cost.WarningThresholdHit)
	require.False(t, j.state.Cost.HardCapHit)
	j.add(run.KindBudgetWarning, run.BudgetEvent{Budget: run.Budget{CapUSD: 50, WarnUSD: 40}, TotalUSD: 41})
	require.True(t, j.state.Cost.WarningThresholdHit)
	require.False(t, j.state.Cost.HardCapHit)
	end := endedPass(builder(1), 1)
	end.Spend.USD = 50
	j.add(run.KindPassEnd, end)
	require.True(t, j.state.Cost.HardCapHit)
	require.InDelta(t, 50, j.state.Cost.TotalEstimatedCostUSD, 1e-9)
}

// TestAmendedPlan has the terms of the new plan and the hash of the start.
func TestAmendedPlan(t *testing.T) {
	j := newJournal(t)
	j.start()
	threshold := 3.9
	j.add(run.KindRunAmended, run.RunAmended{New: run.PlanRef{Plan: "new", Policy: "another policy"},
		Terms: run.PlanTerms{TotalPasses: 9, MaxRounds: 8, Threshold: &threshold}})
	require.Equal(t, 9, j.state.TotalCorpusPasses)
	require.Equal(t, 8, j.state.MaxPACycles)
	require.Equal(t, &threshold, j.state.PAScoreThreshold)
	require.Equal(t, "0123456789abcdef", j.state.ConfigHash)
	require.Equal(t, "another policy", j.head.PolicySnapshotID)
}

// TestRolesBeforeARevert: a breakdown has no role that the run has not called.
func TestRolesBeforeARevert(t *testing.T) {
	j := newJournal(t)
	j.start()
	j.add(run.KindPassEnd, endedPass(builder(1), 1))
	back := j.head.State.Clone()
	j.phase = "another"
	back.ByStage = append(back.ByStage, run.Named{Name: "another"})
	j.add(run.KindPassEnd, endedPass(verifier(2), 2))
	back.Generation, back.SunkUSD = 1, 0.5
	j.add(run.KindRunReverted, run.RunReverted{To: 3, Cause: "revert", Checkpoint: "cp-3", State: &back})
	require.Equal(t, map[string]rundir.RoleCost{"builder": {InputTokens: 1000, OutputTokens: 200, CostUSD: 0.25,
		PassCount: 1}}, j.state.Cost.ByRole)
	require.Equal(t, 1, j.state.Generation)
	require.InDelta(t, 0.5, j.state.SunkCostUSD, 1e-9)
	require.Equal(t, 1, j.state.LastCompletedCorpusPass)
	require.Len(t, j.state.ErrorHistory, 1)
	require.True(t, strings.HasPrefix(j.state.ErrorHistory[0].Context, "revert-to-"))
}
