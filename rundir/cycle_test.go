package rundir_test

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func (j *journal) openCycle(round int) {
	j.phase = "harden"
	j.add(run.KindPhaseStart, run.PhaseStart{Key: "harden", Title: "Harden", Round: round,
		Dir: "screenshots/cycle-" + string(rune('0'+round))})
}

func tokens(n int64, usd float64) rundir.CallTokens {
	return rundir.CallTokens{InputTokens: 1000 * n, OutputTokens: 200 * n, EstimatedCostUSD: usd}
}

// TestStateOfACycle compares state.json during a cycle, and its record.
func TestStateOfACycle(t *testing.T) {
	j := newJournal(t)
	j.start()
	j.openCycle(2)
	const dir = "_orchestrator/screenshots/cycle-2"
	require.Equal(t, &rundir.PACycleRecord{CycleNumber: 2, StartedAt: at(3), ScreenshotDir: dir,
		Auditors: []rundir.AuditorRecord{}}, j.state.OpenCycle)
	require.Equal(t, &rundir.InFlightCycle{Cycle: 2, StartedAt: at(3), Done: map[string]bool{}}, j.state.InFlightPACycle)

	j.add(run.KindScreenshots, run.Screenshots{Step: "shots", Round: 2, Count: 5, Attempts: 1})
	b := endedPass(inCycle(2, "auditor-B", "auditor", "report"), 3)
	b.Score = pointer(2.0)
	j.add(run.KindPassEnd, endedPass(inCycle(2, "auditor-C", "auditor", "report"), 2))
	j.add(run.KindPassEnd, b)
	attempt := spentCalls(4)
	j.add(run.KindPassAttempt, run.PassAttempt{Pass: inCycle(2, "auditor-A", "auditor", "report"),
		Category: run.CategoryLost, Spend: &attempt})
	j.add(run.KindPassEnd, endedPass(inCycle(2, "auditor-A", "auditor", "report"), 1))
	j.add(run.KindPassEnd, endedPass(inCycle(2, "", "weaver", "report"), 6))
	j.add(run.KindScoreRecorded, run.ScoreRecorded{Name: "score", Round: 2, Score: pointer(3.7), Met: true})
	refine := endedPass(inCycle(2, "", "refine", "artifact"), 7)
	refine.Artifact, refine.Modified = &run.Blob{Digest: "page"}, true
	j.add(run.KindPassEnd, refine)
	require.Equal(t, map[string]bool{"screenshots": true, "auditor-A": true, "auditor-B": true,
		"auditor-C": true, "weaver": true, "refine": true}, j.state.InFlightPACycle.Done)
	require.Equal(t, pointer(3.7), j.state.LastPAScore)

	j.add(run.KindPhaseEnd, run.PhaseEnd{Key: "harden", Title: "Harden", Outcome: "ok", Round: 2, Repeats: true})
	want := rundir.PACycleRecord{
		CycleNumber: 2, StartedAt: at(3), CompletedAt: at(12), DurationMS: 9000, ScreenshotDir: dir, ScreenshotCount: 5,
		Auditors: []rundir.AuditorRecord{
			{ID: "auditor-A", ReportPath: dir + "/auditor-A-report.md", Tokens: tokens(5, 1.25), DurationMS: 7001},
			{ID: "auditor-B", ReportPath: dir + "/auditor-B-report.md", Tokens: tokens(3, 0.75), DurationMS: 7003,
				Score: pointer(2.0)},
			{ID: "auditor-C", ReportPath: dir + "/auditor-C-report.md", Tokens: tokens(2, 0.5), DurationMS: 7002},
		},
		Weaver: &rundir.ReportRecord{ReportPath: dir + "/weaver-synthesis.md", Tokens: tokens(6, 1.5), DurationMS: 7006},
		Refine: &rundir.RefineRecord{ArtifactPath: pointer("page.html"), BackupPath: dir + "/artifact-before-refine.html",
			Tokens: tokens(7, 1.75), DurationMS: 7007, ValidationPassed: true},
		PAScore: pointer(3.7), MetThreshold: true, TotalCycleCostUSD: 5.75,
	}
	require.Equal(t, map[string]rundir.PACycleRecord{"2": want}, j.state.PACycleRecords)
	require.Nil(t, j.state.OpenCycle)
	require.Nil(t, j.state.InFlightPACycle)
	require.Equal(t, 2, j.state.CompletedPACycles)
	cost := rundir.RoleCost{InputTokens: 23000, OutputTokens: 4600, CostUSD: 5.75, PassCount: 5}
	require.Equal(t, map[string]rundir.RoleCost{"2": cost}, j.state.Cost.ByPACycle)
	require.Equal(t, map[string]rundir.RoleCost{"pa": cost}, j.state.Cost.ByRole)
	require.Empty(t, j.state.Cost.BySubset)
	require.Empty(t, j.state.PassRecords, "its calls have no number")
}

// TestRefineWithoutAPage has no artifact.
func TestRefineWithoutAPage(t *testing.T) {
	j := newJournal(t)
	j.start()
	j.openCycle(1)
	end := endedPass(inCycle(1, "", "refine", "artifact"), 1)
	end.Outcome, end.Validation.Passed = run.CategoryNoArtifact, false
	j.add(run.KindPassEnd, end)
	j.add(run.KindScoreRecorded, run.ScoreRecorded{Round: 1})
	j.add(run.KindPhaseEnd, run.PhaseEnd{Key: "harden", Title: "Harden", Round: 1, Repeats: true})
	c := j.state.PACycleRecords["1"]
	require.Nil(t, c.Refine.ArtifactPath)
	require.False(t, c.Refine.ValidationPassed)
	require.Nil(t, c.PAScore)
	require.False(t, c.MetThreshold)
	require.Nil(t, c.Weaver)
	require.Empty(t, c.Auditors)
}

// TestReportOfAbandonedMember is the output of its last attempt, or none: only a used reply becomes a report.
func TestReportOfAbandonedMember(t *testing.T) {
	j := newJournal(t)
	j.start()
	j.openCycle(1)
	for i, member := range []string{"auditor-A", "auditor-B", ""} {
		role := cmp.Or(member, "weaver")
		end := endedPass(inCycle(1, member, role, "report"), int64(i+1))
		end.Outcome, end.Validation.Passed = run.CategoryValidationFailed, false
		if member != "auditor-B" {
			for range 2 {
				j.add(run.KindPassAttempt, run.PassAttempt{Pass: end.Pass, Category: end.Outcome,
					Output: &run.Blob{Digest: "reply"}})
			}
		}
		j.add(run.KindPassEnd, end)
	}
	const dir = "_orchestrator/screenshots/cycle-1"
	c := j.state.OpenCycle
	require.Equal(t, dir+"/auditor-A-output-FAILED-2.txt", c.Auditors[0].ReportPath)
	require.Empty(t, c.Auditors[1].ReportPath)
	require.Equal(t, dir+"/weaver-output-FAILED-2.txt", c.Weaver.ReportPath)
}

// TestReplyOfAWorkerInALoop is recorded with the name that the file has.
func TestReplyOfAWorkerInALoop(t *testing.T) {
	j := newJournal(t)
	j.start()
	j.openCycle(1)
	j.add(run.KindPassEnd, endedPass(inCycle(1, "", "worker", "changes"), 1))
	require.Equal(t, "_orchestrator/screenshots/cycle-1/worker-report.md", j.state.OpenCycle.Weaver.ReportPath)
	require.Equal(t, j.state.OpenCycle.Weaver.ReportPath, j.rows(rundir.TracesFile)[0]["reply_path"])
}

// TestDurationsOfOtherWriters are unknown: their times have another format.
func TestDurationsOfOtherWriters(t *testing.T) {
	for from, to := range map[string]string{"2026-05-01": at(3), at(3): "2026-05-01", "": ""} {
		state := rundir.NewState()
		state.OpenCycle = &rundir.PACycleRecord{CycleNumber: 1, StartedAt: from}
		payload, err := run.Payload(run.PhaseEnd{Round: 1, Repeats: true})
		require.NoError(t, err)
		rundir.FoldRecords(&state, run.Event{TS: to, Kind: run.KindPhaseEnd, Payload: payload}, &run.State{})
		require.Zero(t, state.PACycleRecords["1"].DurationMS)
	}
}

// TestStageWithoutACycle opens none, and closes the one that was open.
func TestStageWithoutACycle(t *testing.T) {
	j := newJournal(t)
	j.start()
	j.add(run.KindScreenshots, run.Screenshots{Step: "shots", Round: 1, Count: 5})
	j.add(run.KindScoreRecorded, run.ScoreRecorded{Round: 1, Score: pointer(3.0)})
	j.add(run.KindPassEnd, endedPass(run.Pass{Step: "critic", Role: "critic", Gives: "report", Round: 1}, 1))
	j.add(run.KindPhaseEnd, run.PhaseEnd{Key: "write", Title: "Write", Round: 1, Repeats: true})
	require.Empty(t, j.state.PACycleRecords)
	require.Empty(t, j.state.Cost.ByPACycle)

	j.openCycle(1)
	j.add(run.KindPassEnd, endedPass(builder(1), 1)) // a numbered pass belongs to no cycle
	require.Empty(t, j.state.Cost.ByPACycle)
	require.Zero(t, j.state.OpenCycle.TotalCycleCostUSD)
	j.add(run.KindPhaseEnd, run.PhaseEnd{Key: "harden", Title: "Harden", Round: 1})
	require.Empty(t, j.state.PACycleRecords, "it does not repeat")
	require.NotNil(t, j.state.OpenCycle)
	j.phase = "end"
	j.add(run.KindPhaseStart, run.PhaseStart{Key: "end", Title: "End", Round: 1})
	require.Nil(t, j.state.OpenCycle)
	require.Nil(t, j.state.InFlightPACycle)
}
