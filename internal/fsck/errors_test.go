package fsck_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/records"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// failed adds an attempt that ended in this way.
func (s *story) failed(p run.Pass, attempt int, category run.Category, message, diagnostics string) {
	s.add(run.KindPassAttempt, run.PassAttempt{Pass: p, Call: p.Step, Attempt: attempt, Category: category,
		Message: message, Diagnostics: diagnostics, Judged: true})
}

// shot is an attempt at pictures that gave none.
func (s *story) shot(attempt int) {
	s.add(run.KindShotsAttempt, run.ShotsAttempt{Step: "shots", Round: 1, Dir: "screenshots/cycle-1", Attempt: attempt,
		Message: fmt.Sprintf("fall %d", attempt)})
}

func (s *story) shots(attempts int, degraded bool) {
	s.add(run.KindScreenshots, run.Screenshots{Step: "shots", Round: 1, Dir: "screenshots/cycle-1", Attempts: attempts,
		Degraded: degraded})
}

// TestRecordedErrors: errors.jsonl has every error; the history has the same, but one record for a start whose
// attempts all failed.
func TestRecordedErrors(t *testing.T) {
	rows := []struct {
		name    string
		send    func(s *story)
		lines   []string
		history []string // nil: the same
	}{
		{name: "three attempts and no more", send: func(s *story) {
			for n := 1; n <= 3; n++ {
				s.failed(about(1), n, "claude-p-exit-nonzero", fmt.Sprintf("exit %d", n), "stderr")
			}
			s.add(run.KindRunPaused, run.RunPaused{Reason: run.PassFailed})
		}, lines: []string{"pass-1 claude-p-exit-nonzero exit 1: lost", "pass-1 claude-p-exit-nonzero exit 2: lost",
			"pass-1 claude-p-exit-nonzero exit 3: lost"},
			history: []string{"pass-1 claude-p-exit-nonzero exit 3: lost"}},
		{name: "recovered in the second attempt", send: func(s *story) {
			s.failed(about(1), 1, "claude-p-timeout", "late", "")
			s.end(about(1), "ok", 2)
		}, lines: []string{"pass-1 claude-p-timeout late: recovered at 2"}},
		{name: "pictures in the third attempt", send: func(s *story) { s.shot(1); s.shot(2); s.shots(3, false) },
			lines: []string{"pa-cycle-1-screenshot screenshot-failed fall 1: recovered at 3",
				"pa-cycle-1-screenshot screenshot-failed fall 2: recovered at 3"}},
		{name: "no pictures", send: func(s *story) { s.shot(1); s.shot(2); s.shots(2, true) },
			lines: []string{"pa-cycle-1-screenshot screenshot-failed fall 1: lost",
				"pa-cycle-1-screenshot screenshot-failed fall 2: lost"},
			history: []string{"pa-cycle-1-screenshot screenshot-failed fall 2: lost"}},
		{name: "pictures that must be had", send: func(s *story) {
			s.shot(1)
			s.add(run.KindRunPaused,
				run.RunPaused{Reason: run.PassFailed})
		},
			lines: []string{"pa-cycle-1-screenshot screenshot-failed fall 1: lost"}},
		{name: "no money", send: func(s *story) {
			s.add(run.KindBudgetExceeded, run.BudgetEvent{Budget: run.Budget{CapUSD: 2}, TotalUSD: 2.5})
			s.add(run.KindRunPaused, run.RunPaused{Reason: run.BudgetThreshold})
		}, lines: []string{"write budget-exceeded 2.50 USD are spent, the budget is 2.00: lost"}},
		{name: "no room, met by the journal", send: func(s *story) {
			s.add(run.KindRunPaused,
				run.RunPaused{Reason: run.DiskFull, Detail: "no space left"})
		},
			lines: []string{"write file-io no space left: lost"}},
		{name: "no room, met by a call", send: func(s *story) {
			s.failed(about(1), 1, "file-io", "no space left", "")
			s.add(run.KindRunPaused, run.RunPaused{Reason: run.DiskFull, Detail: "no space left"})
		}, lines: []string{"pass-1 file-io no space left: lost"}},
		{name: "another disk error", send: func(s *story) {
			s.add(run.KindErrorNoted, run.ErrorNoted{Category: "file-io", Message: "read-only", Recovered: true,
				Attempt: 4})
		}, lines: []string{"write file-io read-only: recovered at 4"}},
		{name: "a damaged file that was made again", send: func(s *story) {
			s.add(run.KindErrorNoted, run.ErrorNoted{Context: "state.json", Category: "state-corruption",
				Message: "damaged", Recovered: true})
		}, lines: []string{"state.json state-corruption damaged: recovered"}},
		{name: "a run that failed", send: func(s *story) {
			s.add(run.KindRunEnd,
				run.RunEnd{Status: run.Failed, Reason: "the plan is gone"})
		},
			lines: []string{"write unknown the plan is gone: lost"}},
		{name: "a run that was cancelled", send: func(s *story) {
			s.failed(about(1), 1, "output-empty", "nothing", "")
			s.add(run.KindRunEnd, run.RunEnd{Status: run.Cancelled})
		}, lines: []string{"pass-1 output-empty nothing: lost"}},
		{name: "what is not an error", send: func(s *story) {
			for _, category := range []run.Category{"lost", "cancelled", "superseded"} {
				s.failed(about(1), 1, category, "no error", "")
			}
			s.end(about(1), "ok", 1)
			s.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
		}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			s := newStory(t)
			s.start()
			s.begin(about(1), 1)
			row.send(s)
			s.send()
			d := written(t, s)
			b, err := records.State(d.Dir)
			require.NoError(t, err)
			lines, _, err := rundir.Rows[rundir.ErrorRecord](d.Dir, layout.ErrorsLog)
			require.NoError(t, err)
			require.Equal(t, row.lines, output(lines), "errors.jsonl")
			if row.history == nil {
				row.history = row.lines
			}
			require.Equal(t, row.history, output(b.ErrorHistory), "errorHistory")
			require.Empty(t, b.PendingErrors)
		})
	}
}

func output(all []rundir.ErrorRecord) []string {
	var out []string
	for _, r := range all {
		how := "lost"
		switch {
		case r.RecoveredAtAttempt != nil:
			how = fmt.Sprintf("recovered at %d", *r.RecoveredAtAttempt)
		case r.Recovered:
			how = "recovered"
		}
		out = append(out, fmt.Sprintf("%s %s %s: %s", r.Context, r.Category, r.Message, how))
	}
	return out
}

// TestExhaustedRecordListsEveryAttempt in its diagnostics, within the limit.
func TestExhaustedRecordListsEveryAttempt(t *testing.T) {
	s := newStory(t)
	s.start()
	s.begin(about(1), 1)
	s.failed(about(1), 1, "claude-p-timeout", "late", "")
	s.failed(about(1), 2, "rate-limit", strings.Repeat("wait ", 500), "")
	s.failed(about(1), 3, "claude-p-exit-nonzero", "exit 1", strings.Repeat("ß", 1990))
	s.add(run.KindRunPaused, run.RunPaused{Reason: run.PassFailed})
	s.send()
	b, err := records.State(written(t, s).Dir)
	require.NoError(t, err)
	got := b.ErrorHistory[0].Diagnostics
	require.LessOrEqual(t, utf8.RuneCountInString(got), 2000)
	require.Regexp(t,
		`^attempt 1: claude-p-timeout: late\nattempt 2: rate-limit: wait .+…\nattempt 3: claude-p-exit-nonzero: exit 1\nß`,
		got)
}

// TestMultilineMessageIsOneEntry of the log for people, and cannot play with the terminal.
func TestMultilineMessageIsOneEntry(t *testing.T) {
	s := newStory(t)
	s.start()
	s.begin(about(1), 1)
	s.failed(about(1), 1, "claude-p-exit-nonzero", "first\r\nsecond\x1b[2J\tthird\u2028fourth\n", "")
	s.send()
	d := written(t, s)
	text := look(t, d)[layout.TextLog]
	for line := range strings.Lines(text) {
		require.Regexp(t, `^\[[0-9T:.Z-]+\] \[(INFO|WARN|ERROR)\] +\S.*\n$`, line)
	}
	require.Contains(t, text, `failed (claude-p-exit-nonzero): first\r\nsecond\x1b[2J`+"\t"+
		`third\u2028fourth\n; no attempt is left`+"\n")
}
