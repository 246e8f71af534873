package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

type row struct {
	kind    run.Kind
	payload any
	want    string // the expected line; empty: none
}

func number(f float64) *float64 { return &f }

var seen = []row{
	{run.KindRunStart, run.RunStart{RunID: "r", TotalPasses: 2, Budget: run.Budget{CapUSD: 3}}, ""},
	{run.KindPhaseStart, run.PhaseStart{Key: "build", Title: "Build", Round: 1}, "Build"},
	{run.KindPassStart, run.PassStart{Pass: run.Pass{Step: "001", Number: 1, Role: "builder"}, Call: "c"}, ""},
	{run.KindPassAttempt, run.PassAttempt{Pass: run.Pass{Step: "001", Number: 1, Set: "S1", InRound: 1, Order: "A",
		Role: "builder"}, Attempt: 1, Category: "rate-limit", Message: "429", Spend: &run.Spend{USD: 0.2}},
		"  !   1 S1/1A builder attempt 1: rate-limit — 429"},
	{run.KindPassEnd, run.PassEnd{Pass: run.Pass{Step: "001", Number: 1, Set: "S1", InRound: 1, Order: "A",
		Role: "builder"}, Outcome: "ok", DurationMS: 1500,
		Artifact: &run.Blob{Digest: "d"}, Reused: true, Joined: true, Validation: run.Validation{Passed: true},
		Spend: run.Spend{USD: 0.5}},
		"  ✓   1 S1/1A builder         1.5s   $0.70  PASS  $0.70  unchanged  worker restarted  reused"},
	{run.KindPassEnd, run.PassEnd{Pass: run.Pass{Step: "look/2", Member: "auditor-A", Role: "auditor-A"}, Outcome: "ok",
		DurationMS: 100}, "  ✗ auditor-A                 0.1s   $0.00  FAIL  $0.70"},
	{run.KindScreenshots, run.Screenshots{Count: 6, DurationMS: 2500}, "  ✓ 6 screenshots 2.5s"},
	{run.KindScreenshots, run.Screenshots{Degraded: true, Message: "no browser"},
		"  ! no screenshots, the auditors get the source instead: no browser"},
	{run.KindScoreRecorded, run.ScoreRecorded{Name: "PA-05", Score: number(3.5), Threshold: number(3)},
		"  ◆ PA-05 3.5 (target 3.0)"},
	{run.KindScoreRecorded, run.ScoreRecorded{Name: "PA-05", Why: "no match"}, "  ! no PA-05 score: no match"},
	{run.KindCheckpointCreated, run.CheckpointCreated{ID: "cp-S1"}, "  ● checkpoint cp-S1"},
	{run.KindBudgetWarning, run.BudgetEvent{}, "  ! $0.70 of $3.00 are spent"},
	{"note.of-another-program", struct{}{}, ""},
}

// recorded writes the events of seen to a directory and returns the expected lines.
func recorded(t *testing.T) (rundir.Dir, []string) {
	t.Helper()
	d := rundir.At(t.TempDir())
	var lines, want []string
	for i, s := range seen {
		raw, err := run.Payload(s.payload)
		require.NoError(t, err)
		text, err := run.Event{Seq: int64(i + 1), TS: "2026-01-02T03:04:05.000Z", Kind: s.kind, Payload: raw}.Line()
		require.NoError(t, err)
		lines = append(lines, text)
		if s.want != "" {
			want = append(want, s.want)
		}
	}
	require.NoError(t, os.WriteFile(d.Path(rundir.EventsFile), []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	return d, want
}

func TestViewPrintsEachLineOnceWithoutTerminal(t *testing.T) {
	d, want := recorded(t)
	var out bytes.Buffer
	v := newEventPrinter(&out, d)
	for range 3 {
		_, err := v.update()
		require.NoError(t, err)
	}
	v.note("By the way.")
	require.Equal(t, append(want, "By the way."), strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"))
	require.NotContains(t, out.String(), "\x1b")
	require.NotContains(t, out.String(), "\r")
}
