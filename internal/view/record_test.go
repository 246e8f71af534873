package view_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/report"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

var update = flag.Bool("update", false, "write the golden files again")

// journal builds a run directory.
type journal struct {
	t     *testing.T
	seq   int64
	stage string
	lines bytes.Buffer
}

func (j *journal) add(kind run.Kind, payload any) int64 {
	j.t.Helper()
	raw, err := run.Payload(payload)
	require.NoError(j.t, err)
	j.seq++
	e := run.Event{Seq: j.seq, TS: at(j.seq), Kind: kind, Payload: raw}
	if j.stage != "" {
		e.Phase = &j.stage
	}
	line, err := e.Line()
	require.NoError(j.t, err)
	j.lines.WriteString(line + "\n")
	return j.seq
}

// at returns one minute per event.
func at(seq int64) string {
	return "2026-01-02T03:" + string(rune('0'+seq/10)) + string(rune('0'+seq%10)) + ":00.000Z"
}

func (j *journal) dir() rundir.Dir {
	j.t.Helper()
	d := rundir.At(j.t.TempDir())
	require.NoError(j.t, os.WriteFile(d.Path(rundir.ClaimFile), []byte(`{"version":1,"run_id":"r-1"}`), 0o644))
	require.NoError(j.t, os.WriteFile(d.Path(rundir.EventsFile), j.lines.Bytes(), 0o644))
	inputs := rundir.Inputs{Version: 1, Files: []rundir.InputFile{{Path: "prompts/code.md",
		Digest: "5d41402abc4b2a76b9719d911017c592", Size: 1200}}}
	raw, err := json.Marshal(inputs)
	require.NoError(j.t, err)
	require.NoError(j.t, os.MkdirAll(filepath.Dir(d.Path(rundir.InputsFile)), 0o755))
	require.NoError(j.t, os.WriteFile(d.Path(rundir.InputsFile), raw, 0o644))
	return d
}

func spend(usd float64) run.Spend {
	return run.Spend{USD: usd, Tokens: run.Tokens{Input: 100, Output: 20}}
}

func pass(n int, role string, round int) run.Pass {
	return run.Pass{Step: string(rune('a' + n)), Number: n, Round: round, Role: role, Title: role}
}

// delivered is a run with all kinds of records: a failed attempt, a failed command, a waiver, a rejected review, a
// raised budget, a revert, and a delivery.
func delivered(t *testing.T) rundir.Dir {
	j := &journal{t: t}
	j.add(run.KindRunStart, run.RunStart{
		Task: "Fix the parser | and <b>test</b> it\nwell", RunKind: "pipeline", Pipeline: "code-review", RunID: "r-1",
		ThreadID: "r-1", Epoch: 1,
		CreatedAt: at(0), Definition: "0123456789abcdef0123456789abcdef", Build: "v0.1.0",
		Budget: run.Budget{CapUSD: 5},
		Workspace: &run.Workspace{Kind: "git", Source: "/src/parser", Base: "aaaaaaaaaaaaaaaaaaaa",
			Branch: "passbook/r-1", Tree: run.Blob{Digest: "t0"}},
	})
	j.stage = "code"
	j.add(run.KindPhaseStart, run.PhaseStart{Key: "code", Title: "Code", Round: 1})
	coder := pass(1, "coder", 1)
	lost := spend(0.1)
	j.add(run.KindPassAttempt, run.PassAttempt{Pass: coder, Attempt: 1, Category: "timeout",
		Message: "no answer in 10m", Spend: &lost})
	j.add(run.KindPassEnd, run.PassEnd{
		Pass: coder, Call: "call-1", Outcome: "ok", Attempts: 2, DurationMS: 61500, Spend: spend(1.25),
		StartedAt: at(3), CompletedAt: at(4), Tree: &run.Blob{Digest: "t1"},
		Validation: run.Validation{Passed: true, Checks: []run.Check{{Name: "changes", Passed: true}}},
	})
	j.add(run.KindPassEnd, run.PassEnd{
		Pass: pass(2, "tests", 1), Outcome: "ok", Attempts: 1, DurationMS: 900, Value: "failed",
		Validation: run.Validation{Checks: []run.Check{{Name: "exit code", Detail: "it ended with 1"}},
			Warnings: []string{"2 tests were skipped"}},
	})
	j.add(run.KindWorkspaceUpdated, run.WorkspaceUpdated{Step: coder.Step, Call: "call-1", Tree: run.Blob{Digest: "t1"},
		Commit: "bbbbbbbbbbbbbbbbbbbb", Changed: 2,
		Files: []run.FileChange{{Path: "parse.go", Kind: "changed"}, {Path: "parse_test.go", Kind: "added"}}})
	j.add(run.KindGateRequested, run.QuestionRequested{ID: "gate-7", Question: "Do the tests matter?", Phase: "code",
		Round: 1, Trigger: run.TriggerCheckFailed, Digest: "d1",
		Actions: []string{"retry", "continue_with_waiver", "halt"}})
	j.add(run.KindGateDecided, run.QuestionDecided{ID: "gate-7", Action: "continue_with_waiver",
		Feedback: "known flake", DecidedBy: "op", DecidedAt: at(9)})
	j.add(run.KindGateDecided, run.QuestionDecided{ID: "gate-7", Action: "halt", DecidedBy: "late", DecidedAt: at(10)})
	// once more
	j.add(run.KindPassEnd, run.PassEnd{Pass: coder, Call: "call-2", Outcome: "ok", Attempts: 1, DurationMS: 10,
		Spend: spend(0.05)})
	j.add(run.KindPhaseEnd, run.PhaseEnd{Key: "code", Title: "Code", Round: 1, Outcome: "ok"})
	j.stage = "review"
	kept := j.add(run.KindPhaseStart, run.PhaseStart{Key: "review", Title: "Review", Round: 1})
	state := j.fold()
	score := 2.5
	j.add(run.KindPassEnd, run.PassEnd{Pass: pass(3, "reviewer", 1), Outcome: "ok", Attempts: 1, DurationMS: 100,
		Spend: spend(0.5), Verdict: "REJECTED", Score: &score})
	j.add(run.KindScoreRecorded, run.ScoreRecorded{Name: "quality", Round: 1, Score: &score})
	state.Seq, state.SunkUSD = j.seq+1, 0.5
	j.add(run.KindRunReverted, run.RunReverted{To: kept, Cause: "reset", State: &state})
	j.add(run.KindRunPaused, run.RunPaused{Reason: "budget-threshold", Detail: "$1.85 of $5.00"})
	j.add(run.KindBudgetRaised, run.BudgetEvent{Budget: run.Budget{CapUSD: 8}, By: "op", Note: "proceed"})
	j.add(run.KindRunResumed, run.RunResumed{Epoch: 1, By: "op"})
	good, threshold := 4.5, 4.0
	j.add(run.KindPassEnd, run.PassEnd{Pass: pass(3, "reviewer", 1), Outcome: "ok", Attempts: 1, DurationMS: 2000,
		Spend: spend(0.75), Verdict: "APPROVED", Score: &good})
	j.add(run.KindScoreRecorded, run.ScoreRecorded{Name: "quality", Round: 1, Score: &good, Threshold: &threshold,
		Met: true})
	j.add(run.KindHandoffRequested, run.QuestionRequested{Kind: run.QuestionHandoff, ID: "h-20", Phase: "review",
		Type: run.HandoffFeedbackAlways, Trigger: "approved", Round: 1, Digest: "d2",
		Actions: []string{"continue", "halt"}})
	j.add(run.KindHandoffDecided, run.QuestionDecided{Kind: run.QuestionHandoff, ID: "h-20", Action: "continue",
		DecidedBy: "op", DecidedAt: at(21), Note: "well done"})
	j.add(run.KindDeliveryCompleted, run.DeliveryCompleted{Delivered: true, To: "branch", Target: "passbook-r-1",
		Commit: "cccccccccccccccccccc", Files: 2})
	j.add(run.KindRunEnd, run.RunEnd{Status: run.Done})
	d := j.dir()
	folder := d.Path("phase_handoff_decisions") // the journal has precedence
	require.NoError(t, os.Mkdir(folder, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "h.json"), []byte(`{"handoff_id":"h-20","action":"halt"}`),
		0o644))
	return d
}

func (j *journal) fold() run.State {
	var s run.State
	for line := range bytes.Lines(j.lines.Bytes()) {
		e, err := run.ParseEvent(bytes.TrimSpace(line))
		require.NoError(j.t, err)
		s = run.Apply(s, e)
	}
	return s
}

func TestMarkdown(t *testing.T) {
	for _, row := range []struct {
		name string
		dir  func(*testing.T) rundir.Dir
	}{
		{"delivered", delivered},
		{"nothing-yet", func(t *testing.T) rundir.Dir { return rundir.At(t.TempDir()) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			e, err := view.ReadRecord(row.dir(t))
			require.NoError(t, err)
			var page bytes.Buffer
			require.NoError(t, report.Markdown(&page, e))
			golden(t, row.name, page)
		})
	}
}

// golden compares a page with a reviewed file.
func golden(t *testing.T, name string, page bytes.Buffer) {
	t.Helper()
	file := filepath.Join("testdata", name+".md")
	if *update {
		require.NoError(t, os.WriteFile(file, page.Bytes(), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), page.String())
}

func TestRead(t *testing.T) {
	e, err := view.ReadRecord(delivered(t))
	require.NoError(t, err)
	require.Len(t, e.Passes, 4)
	require.Equal(t, 1, e.Reverted)
	require.Equal(t, 1.35, e.Passes[0].USD, "both attempts")
	require.Equal(t, 0.05, e.Passes[2].USD, "once more, without a failed attempt")
	require.Equal(t, []view.RoleCost{{Role: "coder", Calls: 3, USD: 1.4}, {Role: "tests", Calls: 1},
		{Role: "reviewer", Calls: 2, USD: 1.25}}, e.Spend.ByRole)
	require.Equal(t, []run.FileChange{{Path: "parse.go", Kind: "changed"}, {Path: "parse_test.go", Kind: "added"}},
		e.Passes[0].Files)
	require.Equal(t, "APPROVED", e.Passes[3].Verdict)
	require.Len(t, e.Scores, 1)
	require.Len(t, e.Failures, 1)
	require.Equal(t, "bbbbbbbbbbbbbbbbbbbb", e.Workspace.Commit)
	require.Equal(t, 2.65, e.Spend.USD)
	require.Equal(t, 0.5, e.Spend.Sunk)

	raw, err := json.Marshal(e)
	require.NoError(t, err)
	var keys map[string]any
	require.NoError(t, json.Unmarshal(raw, &keys))
	for name, value := range keys {
		if name != "parent" && name != "artifact" && name != "limited" && name != "adopted" {
			require.NotNil(t, value, name)
		}
	}
}

func TestRevertRestoresAnAbandonedBranch(t *testing.T) {
	j := &journal{t: t}
	j.add(run.KindRunStart, run.RunStart{RunID: "r-1"})
	pass := func(step string) int64 {
		return j.add(run.KindPassEnd, run.PassEnd{Pass: run.Pass{Step: step, Round: 1}, Outcome: run.CategoryOK,
			Spend: run.Spend{USD: 1}})
	}
	revert := func(to int64) {
		j.add(run.KindRunReverted, run.RunReverted{To: to, Cause: "checkpoint",
			State: &run.State{Status: run.Running}})
	}
	first := pass("first")
	second := pass("second")
	revert(first)
	pass("other")
	revert(second)
	e, err := view.ReadRecord(j.dir())
	require.NoError(t, err)
	var steps []string
	for _, p := range e.Passes {
		steps = append(steps, p.Step)
	}
	require.Equal(t, []string{"first", "second"}, steps)
	require.Equal(t, 1, e.Reverted)
	require.Len(t, e.History.Costs, 3, "reverted calls are paid for")
}

func TestMarkdownCutsLongLists(t *testing.T) {
	var e view.Record
	for range 25 {
		e.Inputs = append(e.Inputs, rundir.InputFile{Path: "corpus/a.md"})
	}
	var page bytes.Buffer
	require.NoError(t, report.Markdown(&page, e))
	require.Equal(t, 20, bytes.Count(page.Bytes(), []byte("| corpus/a.md |")))
	require.Contains(t, page.String(), "and 5 more.")
}
