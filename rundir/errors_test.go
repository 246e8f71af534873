package rundir_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func attempt(p run.Pass, c run.Category, message string) run.PassAttempt {
	return run.PassAttempt{Pass: p, Call: "call", Attempt: 1, Category: c, Message: message, Judged: true}
}

// TestErrorsOfEvents names the record that each event adds to errorHistory. The line of errors.jsonl has the same
// values.
func TestErrorsOfEvents(t *testing.T) {
	recovered := run.ErrorNoted{Category: run.CategoryRateLimit, Message: "slow", Diagnostics: "d", Recovered: true,
		Attempt: 3}
	rows := map[string]struct {
		kind    run.Kind
		payload any
		want    rundir.ErrorRecord
	}{
		"noted": {run.KindErrorNoted, run.ErrorNoted{Category: run.CategoryConfigMismatch, Message: "m"},
			rundir.ErrorRecord{Context: "write", Category: "config-mismatch", Message: "m"}},
		"with a context": {run.KindErrorNoted, run.ErrorNoted{Context: "c", Category: run.CategoryUnknown, Message: "m"},
			rundir.ErrorRecord{Context: "c", Category: "unknown", Message: "m"}},
		"recovered": {run.KindErrorNoted, recovered, rundir.ErrorRecord{Context: "write", Category: "rate-limit",
			Message: "slow", Diagnostics: "d", Recovered: true, RecoveredAtAttempt: pointer(3)}},
		"recovered at once": {run.KindErrorNoted, run.ErrorNoted{Category: run.CategoryUnknown, Recovered: true, Attempt: 1},
			rundir.ErrorRecord{Context: "write", Category: "unknown", Recovered: true, RecoveredAtAttempt: pointer(1)}},
		"recovered by no attempt": {run.KindErrorNoted, run.ErrorNoted{Category: run.CategoryUnknown, Recovered: true},
			rundir.ErrorRecord{Context: "write", Category: "unknown", Recovered: true}},
		"not recovered": {run.KindErrorNoted, run.ErrorNoted{Category: run.CategoryUnknown, Attempt: 2},
			rundir.ErrorRecord{Context: "write", Category: "unknown"}},
		"long": {run.KindErrorNoted, run.ErrorNoted{Category: run.CategoryUnknown, Diagnostics: strings.Repeat("ä", 2001)},
			rundir.ErrorRecord{Context: "write", Category: "unknown", Diagnostics: strings.Repeat("ä", 1999) + "…"}},
		"as long as allowed": {run.KindErrorNoted, run.ErrorNoted{Category: run.CategoryUnknown,
			Diagnostics: strings.Repeat("ä", 2000)},
			rundir.ErrorRecord{Context: "write", Category: "unknown", Diagnostics: strings.Repeat("ä", 2000)}},
		"budget": {run.KindBudgetExceeded, run.BudgetEvent{Budget: run.Budget{CapUSD: 5}, TotalUSD: 6},
			rundir.ErrorRecord{Context: "write", Category: "budget-exceeded",
				Message: "6.00 USD are spent, the budget is 5.00"}},
		"damage": {run.KindJournalDamaged, run.JournalDamage{File: "events.jsonl", Line: 3, Found: run.Missing},
			rundir.ErrorRecord{Context: "write", Category: "state-corruption", Message: "events.jsonl, line 3, is missing"}},
		"repaired damage": {run.KindJournalDamaged,
			run.JournalDamage{File: "events.jsonl", Line: 3, Found: run.Missing, Repaired: true},
			rundir.ErrorRecord{Context: "write", Category: "state-corruption",
				Message: "events.jsonl, line 3, is missing; repaired", Recovered: true}},
		"full disk": {run.KindRunPaused, run.RunPaused{Reason: run.DiskFull, Detail: "no space"},
			rundir.ErrorRecord{Context: "write", Category: "file-io", Message: "no space"}},
		"failed run": {run.KindRunEnd, run.RunEnd{Status: run.Failed, Reason: "why"},
			rundir.ErrorRecord{Context: "write", Category: "unknown", Message: "why"}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			j := newJournal(t)
			j.start()
			j.add(row.kind, row.payload)
			row.want.Timestamp = at(3)
			require.Equal(t, []rundir.ErrorRecord{row.want}, j.state.ErrorHistory)
			require.Empty(t, j.state.PendingErrors)
			line := map[string]any{"ts": at(3), "context": row.want.Context, "category": string(row.want.Category),
				"message": row.want.Message, "recovered": row.want.Recovered, "diagnostics": row.want.Diagnostics,
				"recoveredAtAttempt": nil}
			if n := row.want.RecoveredAtAttempt; n != nil {
				line["recoveredAtAttempt"] = float64(*n)
			}
			require.Equal(t, []map[string]any{line}, j.rows(rundir.ErrorsLog))
		})
	}
}

// TestEventsWithoutErrors add nothing.
func TestEventsWithoutErrors(t *testing.T) {
	j := newJournal(t)
	j.start()
	j.add(run.KindPassAttempt, attempt(builder(1), run.CategoryLost, "its worker ended"))
	j.add(run.KindPassAttempt, attempt(builder(1), run.CategoryCancelled, "an operator"))
	j.add(run.KindPassEnd, endedPass(builder(1), 1))
	j.add(run.KindScreenshots, run.Screenshots{Step: "shots", Attempts: 1})
	j.add(run.KindRunReverted, run.RunReverted{To: 2, Cause: "reset", State: pointer(j.head.State.Clone())})
	j.add(run.KindRunReverted, run.RunReverted{To: 2, Cause: "revert", Checkpoint: "cp-2"})
	j.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
	j.add(run.KindRunResumed, run.RunResumed{Epoch: 1, From: run.Paused})
	j.add(run.KindRunEnd, run.RunEnd{Status: run.Done})
	require.Empty(t, j.state.ErrorHistory)
	require.Empty(t, j.rows(rundir.ErrorsLog))
}

// TestFoundAtTheStart are the errors of run.start, in the words of the run.
func TestFoundAtTheStart(t *testing.T) {
	start := corpus()
	start.Wording = run.WordingStages
	start.Found = []run.ErrorNoted{{Category: run.CategoryStateCorruption, Message: "one", Recovered: true},
		{Category: run.CategorySpawnFailed, Message: "two"}}
	j := newJournal(t)
	j.add(run.KindRunStart, start)
	require.Equal(t, []rundir.ErrorRecord{
		{Timestamp: at(1), Context: "run", Category: "state-corruption", Message: "one", Recovered: true},
		{Timestamp: at(1), Context: "run", Category: "agent-spawn-failed", Message: "two"},
	}, j.state.ErrorHistory)
	j.add(run.KindErrorNoted, run.ErrorNoted{Category: run.CategoryAgentTimeout})
	require.Equal(t, run.Category("agent-timeout"), j.state.ErrorHistory[2].Category)
}

// TestAttemptsOfOnePass settle with it: those of others stay pending.
func TestAttemptsOfOnePass(t *testing.T) {
	j := newJournal(t)
	j.start()
	j.add(run.KindPassAttempt, attempt(builder(1), run.CategoryOutputEmpty, "first"))
	j.add(run.KindPassAttempt, attempt(verifier(2), run.CategoryAgentTimeout, "another"))
	before := j.state.PendingErrors
	j.add(run.KindPassAttempt, attempt(builder(1), run.CategoryOutputTruncated, "second"))
	require.Len(t, before, 2, "a list that was read is not changed")
	end := endedPass(builder(1), 1)
	end.Attempts = 3
	j.add(run.KindPassEnd, end)
	first := rundir.ErrorRecord{Timestamp: at(3), Context: "pass-1", Category: "output-empty", Message: "first",
		Recovered: true, RecoveredAtAttempt: pointer(3)}
	second := rundir.ErrorRecord{Timestamp: at(5), Context: "pass-1", Category: "output-truncated", Message: "second",
		Recovered: true, RecoveredAtAttempt: pointer(3)}
	other := rundir.ErrorRecord{Timestamp: at(4), Context: "pass-2", Category: "claude-p-timeout", Message: "another"}
	require.Equal(t, []rundir.ErrorRecord{first, second}, j.state.ErrorHistory)
	require.Equal(t, []rundir.ErrorRecord{other}, j.state.PendingErrors)
	j.add(run.KindRunEnd, run.RunEnd{Status: run.Halted})
	require.Equal(t, []rundir.ErrorRecord{first, second, other}, j.state.ErrorHistory, "nothing recovers it")
	require.Empty(t, j.state.PendingErrors)
	require.Len(t, j.rows(rundir.ErrorsLog), 3)
}

// TestFailedStart: all attempts of a pass that failed are one record, and each has its line.
func TestFailedStart(t *testing.T) {
	j := newJournal(t)
	j.start()
	long := strings.Repeat("x", 600)
	for i, c := range []run.Category{run.CategoryOutputEmpty, run.CategoryRateLimit} {
		a := attempt(builder(1), c, fmt.Sprintf("%d%s", i+1, long))
		a.Diagnostics = fmt.Sprintf("stderr %d", i+1)
		j.add(run.KindPassAttempt, a)
	}
	j.add(run.KindRunPaused, run.RunPaused{Reason: run.PassFailed,
		Failed: &run.FailedPass{Step: "001", Category: run.CategoryRateLimit}})
	shown := strings.Repeat("x", 248)
	require.Equal(t, []rundir.ErrorRecord{{Timestamp: at(4), Context: "pass-1", Category: "rate-limit",
		Message: "2" + long, Diagnostics: "attempt 1: output-empty: 1" + shown + "…\nattempt 2: rate-limit: 2" + shown +
			"…\nstderr 2"}}, j.state.ErrorHistory)
	rows := j.rows(rundir.ErrorsLog)
	require.Len(t, rows, 2)
	require.Equal(t, "stderr 1", rows[0]["diagnostics"])
	require.Equal(t, "stderr 2", rows[1]["diagnostics"])

	j.add(run.KindRunResumed, run.RunResumed{Epoch: 1, From: run.Paused})
	a := attempt(builder(1), run.CategoryOutputEmpty, "alone")
	a.Diagnostics = strings.Repeat("y", 2000)
	j.add(run.KindPassAttempt, a)
	j.add(run.KindRunPaused, run.RunPaused{Reason: run.ConsecutiveFailures})
	require.Len(t, j.state.ErrorHistory, 2)
	require.Equal(t, a.Diagnostics, j.state.ErrorHistory[1].Diagnostics, "one attempt needs no list")

	j.add(run.KindRunResumed, run.RunResumed{Epoch: 1, From: run.Paused})
	j.add(run.KindPassAttempt, a)
	j.add(run.KindPassAttempt, a)
	end := endedPass(builder(1), 1)
	end.Outcome = run.CategoryOutputEmpty
	j.add(run.KindPassEnd, end)
	require.Len(t, j.state.ErrorHistory, 3)
	last := []rune(j.state.ErrorHistory[2].Diagnostics)
	require.Len(t, last, 2000)
	require.Equal(t, "…", string(last[1999:]))
}

// TestErrorsOfAnEnd: attempts of several passes, and the error of the run, each with its line.
func TestErrorsOfAnEnd(t *testing.T) {
	j := newJournal(t)
	j.start()
	for _, message := range []string{"first", "second"} {
		j.add(run.KindPassAttempt, attempt(builder(1), run.CategoryOutputEmpty, message))
	}
	j.add(run.KindPassAttempt, attempt(verifier(2), run.CategoryOutputEmpty, "third"))
	j.add(run.KindRunEnd, run.RunEnd{Status: run.Failed, Reason: "fourth"})
	var lines, records []any
	for _, row := range j.rows(rundir.ErrorsLog) {
		lines = append(lines, row["message"])
	}
	for _, r := range j.state.ErrorHistory {
		records = append(records, r.Message)
	}
	require.Equal(t, []any{"first", "second", "third", "fourth"}, lines)
	require.Equal(t, []any{"second", "third", "fourth"}, records)
}

// TestManyAttempts: the messages of many attempts are left out.
func TestManyAttempts(t *testing.T) {
	j := newJournal(t)
	j.start()
	for range 501 {
		j.add(run.KindPassAttempt, attempt(builder(1), run.CategoryOutputEmpty, "message"))
	}
	j.add(run.KindRunEnd, run.RunEnd{Status: run.Halted})
	require.True(t, strings.HasPrefix(j.state.ErrorHistory[0].Diagnostics,
		"attempt 1: output-empty: …\nattempt 2: output-empty: …\n"))
}

// TestFullDisk settles the attempts that met it, and no others.
func TestFullDisk(t *testing.T) {
	j := newJournal(t)
	j.start()
	j.add(run.KindPassAttempt, attempt(verifier(2), run.CategoryOutputEmpty, "other"))
	j.add(run.KindPassAttempt, attempt(builder(1), run.CategoryFileIO, "no space"))
	j.add(run.KindRunPaused, run.RunPaused{Reason: run.DiskFull, Detail: "unused"})
	require.Equal(t, []rundir.ErrorRecord{{Timestamp: at(4), Context: "pass-1", Category: "file-io",
		Message: "no space"}}, j.state.ErrorHistory)
	require.Equal(t, "other", j.state.PendingErrors[0].Message)

	j = newJournal(t)
	j.start()
	j.add(run.KindPassAttempt, attempt(builder(1), run.CategoryFileIO, "no space"))
	j.add(run.KindRunPaused, run.RunPaused{Reason: run.DiskFull, Detail: "unused"})
	require.Len(t, j.state.ErrorHistory, 1)
}

// TestPauseByAnOperator leaves attempts pending: the pass is not over.
func TestPauseByAnOperator(t *testing.T) {
	j := newJournal(t)
	j.start()
	j.add(run.KindPassAttempt, attempt(builder(1), run.CategoryOutputEmpty, "m"))
	j.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
	require.Empty(t, j.state.ErrorHistory)
	require.Len(t, j.state.PendingErrors, 1)
	j.add(run.KindRunInterrupted, run.RunInterrupted{At: at(9)})
	require.Len(t, j.state.ErrorHistory, 1)
}

// TestErrorsOfScreenshots recover with a picture.
func TestErrorsOfScreenshots(t *testing.T) {
	for context, dir := range map[string]string{"pa-cycle-2-screenshot": "screenshots/cycle-2",
		"screenshot-capture": ""} {
		for _, degraded := range []bool{false, true} {
			j := newJournal(t)
			j.start()
			j.openCycle(2)
			j.add(run.KindShotsAttempt, run.ShotsAttempt{Step: "shots", Round: 2, Dir: dir, Attempt: 1,
				Message: "no browser"})
			j.add(run.KindScreenshots, run.Screenshots{Step: "shots", Round: 2, Dir: dir, Attempts: 3,
				Degraded: degraded, Message: "none"})
			want := rundir.ErrorRecord{Timestamp: at(4), Context: context, Category: "screenshot-failed",
				Message: "no browser"}
			if !degraded {
				want.Recovered, want.RecoveredAtAttempt = true, pointer(3)
			}
			require.Equal(t, []rundir.ErrorRecord{want}, j.state.ErrorHistory)
		}
	}
}

// TestErrorOfARevert names the checkpoint, where the run was, and its cost.
func TestErrorOfARevert(t *testing.T) {
	for wording, where := range map[run.Wording]string{run.WordingCorpus: "pass 1, PA cycle 3",
		run.WordingStages: "stage 1 of 1 (write)"} {
		j := newJournal(t)
		start := corpus()
		start.Wording, start.Stages = wording, []run.StageRef{{Name: "write", Kind: "once"}}
		j.add(run.KindRunStart, start)
		j.phase = "write"
		j.add(run.KindPhaseStart, run.PhaseStart{Key: "write", Title: "Write", Round: 1})
		j.add(run.KindPassEnd, endedPass(builder(1), 1))
		state := j.head.State.Clone()
		state.Rounds = 3
		j.add(run.KindRunReverted, run.RunReverted{To: 3, Cause: "revert", Checkpoint: "cp-S1", WasUSD: 1.236,
			State: &state})
		require.Equal(t, []rundir.ErrorRecord{{Timestamp: at(4), Context: "revert-to-cp-S1", Category: "unknown",
			Recovered: true, Diagnostics: "Previous cost: $1.24",
			Message: "Pipeline reverted to checkpoint cp-S1 (" + where + ")"}}, j.state.ErrorHistory)
	}
}
