package workflows_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

func TestFullDiskPausesRun(t *testing.T) {
	w := newHarness(t, twoPasses)
	// what the first pass came to, and the start of the second
	w.dir.before = map[int]func(){2: func() { w.dir.full = 4 }}
	asked, during := false, contract.HeldAnswer{}
	w.dir.before[5] = func() { during = query[contract.HeldAnswer](w, contract.QueryHeld) }
	w.env.RegisterDelayedCallback(func() {
		asked = true
		s := w.status()
		require.Equal(t, run.Paused, s.Status, "queries answer at once")
		require.Equal(t, run.DiskFull, s.Reason)
		require.Equal(t, contract.HeldAnswer{
			Held: true, Message: "no space left on device", RetryAt: run.Time(startTime.Add(45 * time.Second)),
		}, query[contract.HeldAnswer](w, contract.QueryHeld))
		require.Len(t, w.agent.ids, 1, "nothing is called on a full disk")
		require.Len(t, w.dir.lines, 3, "the pause itself cannot be written down")
	}, 20*time.Second)
	w.env.RegisterDelayedCallback(func() { w.signal("resume", nil) }, 2*time.Minute)
	w.done()
	require.True(t, asked)
	require.True(t, during.Held, "it is held up while it retries, too")
	require.Zero(t, query[contract.HeldAnswer](w, contract.QueryHeld))
	require.Equal(t, append(slices.Repeat([]string{"Project: disk full"}, 4), "Project 4-7 written"), w.trace[3:8])
	paused := payloads[run.RunPaused](w, run.KindRunPaused)
	require.Len(t, paused, 1)
	require.Equal(t, run.DiskFull, paused[0].Reason)
	require.Contains(t, paused[0].Detail, "no space left")
	require.Equal(t, []time.Duration{15 * time.Second, 30 * time.Second, time.Minute}, w.waits[:3])
	require.Equal(t, []string{call(1, 1), call(2, 1)}, w.agent.ids, "no call was made twice")
}

func TestEveryResumeRetriesFullDiskAtOnce(t *testing.T) {
	for _, row := range []struct {
		name   string
		full   int
		during bool // the second try is under way when the only resume comes
		waits  time.Duration
	}{
		{"one", 1, false, 0}, {"a second one", 2, false, 0}, {"a third one", 3, false, 0},
		{"during a try", 2, true, 25 * time.Minute},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newHarness(t, twoPasses)
			w.in.Options.Turns = false
			w.in.Options.TimeScale = 100 // the first wait is 25 minutes: a slow machine does not end it
			w.dir.before = map[int]func(){2: func() { w.dir.full = row.full }}
			if row.during {
				w.dir.before[3] = func() { w.signal("resume", nil) }
			} else {
				w.resumeHeld(row.full)
			}
			w.done()
			require.InDelta(t, row.waits, w.env.Now().Sub(startTime), float64(10*time.Minute))
			require.Len(t, payloads[run.RunResumed](w, run.KindRunResumed), 1)
			require.Equal(t, []string{call(1, 1), call(2, 1)}, w.agent.ids, "no call was made twice")
		})
	}
}

// resumeHeld sends a resume after each of the next n tries that find the disk full.
func (w *harness) resumeHeld(n int) {
	last := ""
	var check func()
	check = func() {
		if held := query[contract.HeldAnswer](w, contract.QueryHeld); held.Held && held.RetryAt != last {
			last = held.RetryAt
			n--
			w.signal("resume", nil)
		}
		if n > 0 {
			w.at(time.Second, check)
		}
	}
	w.at(time.Second, check)
}

// TestEndedCallIsRepeated: a call that a full disk, or an operator of the server, ends is not the pass's failure.
func TestEndedCallIsRepeated(t *testing.T) {
	for name, row := range map[string]struct {
		err      error
		reasons  []string // of the pause
		category run.Category
		unknown  int // calls of unknown cost
	}{
		"full disk": {errFull, []string{run.DiskFull}, run.CategoryFileIO, 0},
		"paused activity": {temporal.NewNonRetryableApplicationError("activity paused", contract.ErrPaused, nil,
			run.Spend{Known: run.CostUnknown}), []string{run.UserRequested}, run.CategoryCancelled, 1},
		"reset activity": {temporal.NewNonRetryableApplicationError("activity reset", contract.ErrForced, nil), nil,
			run.CategoryCancelled, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, twoPasses)
			w.agent.will(call(1, 1), breaks(row.err))
			w.onPause(func() { w.signal("resume", nil) })
			w.done()
			require.Equal(t, row.reasons, fields(payloads[run.RunPaused](w, run.KindRunPaused),
				func(p run.RunPaused) string { return p.Reason }))
			require.Equal(t, row.category, payloads[run.PassAttempt](w, run.KindPassAttempt)[0].Category)
			require.Equal(t, []string{call(1, 1), call(1, 1), call(2, 1)}, w.agent.ids)
			require.Nil(t, w.dir.state(t).Failure)
			require.Equal(t, row.unknown, w.dir.state(t).UnknownCalls())
		})
	}
}

func TestRepeatedlyLostDirectoryFailsRun(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.dir.before = map[int]func(){}
	for n := 2; n < 9; n++ {
		w.dir.before[n] = w.dir.lose
	}
	_, err := w.execute()
	require.ErrorContains(t, err, "it lost its events again after 3 rebuilds")
	require.Equal(t, []string{"Project 4-6 behind", "Rebuild", "Project 4-7 behind", "Rebuild", "Project 4-8 behind", "Rebuild",
		"Project 4-9 behind", "Project 4-10 behind"}, w.trace[4:12], "the end is written without a fourth rebuild first")
}

// TestResumeJournalsTheArtifact: one that was edited counts; one that was missing is restored as it was.
func TestResumeJournalsTheArtifact(t *testing.T) {
	for cause, digest := range map[string]string{"edited": "by hand", "restored": "page of run-1/" + call(1, 1)} {
		w := newHarness(t, twoPasses)
		w.agent.will(call(1, 1), after(func() { w.signal("pause", nil) }))
		w.onPause(func() {
			if w.dir.restored = cause == "restored"; cause == "edited" {
				w.dir.edited = &run.Blob{Digest: digest}
			}
			w.signal("resume", nil)
		})
		w.done()
		require.Equal(t, run.ArtifactUpdated{Artifact: run.Blob{Digest: digest}, Cause: cause},
			payloads[run.ArtifactUpdated](w, run.KindArtifactUpdated)[1])
		require.Equal(t, digest, payloads[run.PassStart](w, run.KindPassStart)[1].Before)
	}
}

func TestLostDirectoryIsRebuiltBeforeArchiving(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.dir.shorter = true
	w.done()
	require.Contains(t, w.trace, "Rebuild")
	require.Equal(t, run.Done, w.dir.state(t).Status)
}

// TestDamageIsJournaled where the whole journal is verified: on a resume, and before the end, which stays last.
func TestDamageIsJournaled(t *testing.T) {
	for where, want := range map[string][]string{"resume": {"run.resumed", "journal.damaged", "run.end"},
		"end": {"run.resumed", "journal.damaged", "run.end"}} {
		w := newHarness(t, twoPasses)
		damaged := func() { w.dir.damage = []run.JournalDamage{{File: "events.jsonl", Line: 3, Expected: "a", Found: "b"}} }
		w.agent.will(call(1, 1), after(func() { w.signal("pause", nil) }))
		w.onPause(func() {
			if where == "resume" {
				damaged()
			}
			w.signal("resume", nil)
		})
		if where == "end" {
			w.agent.will(call(2, 1), after(damaged))
		}
		w.done()
		require.Equal(t, w.dir.damage, payloads[run.JournalDamage](w, run.KindJournalDamaged))
		events := w.bare()
		require.Equal(t, want, w.story(run.KindRunResumed, run.KindJournalDamaged, run.KindRunEnd))
		require.Equal(t, where == "end", events[len(events)-2] == "journal.damaged")
		require.Equal(t, w.dir.damage, w.dir.state(t).Damage)
	}
}

func TestRebuildRepairsDamage(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.dir.before = map[int]func(){2: w.dir.lose}
	w.dir.missing = []run.JournalDamage{{File: "events.jsonl", Line: 2, Expected: "a", Found: "b", Repaired: true}}
	w.done()
	require.Equal(t, w.dir.missing, payloads[run.JournalDamage](w, run.KindJournalDamaged))
	require.Empty(t, payloads[run.ErrorNoted](w, run.KindErrorNoted))
}

// TestUnarchivableLinesAreJournaled once, although each execution archives; the state keeps a limited number.
func TestUnarchivableLinesAreJournaled(t *testing.T) {
	for _, n := range []int64{1, 6} {
		w := newHarness(t, twoPasses)
		w.in.Options.ContinueAfter = 1
		for line := range n {
			w.dir.unkept = append(w.dir.unkept, run.JournalDamage{File: "events.jsonl", Line: line + 1, Expected: "a",
				Found: "b"})
		}
		executions := w.chain(func(contract.Input) {})
		require.Equal(t, run.Done, w.dir.state(t).Status)
		sealed := slices.DeleteFunc(slices.Clone(w.trace), func(s string) bool { return !strings.HasPrefix(s, "Seal") })
		require.LessOrEqual(t, len(sealed), 2*executions)
		damage := payloads[run.JournalDamage](w, run.KindJournalDamaged)
		require.LessOrEqual(t, len(damage), int(n)*executions)
		if n == 1 {
			require.Equal(t, w.dir.unkept, damage, "at the end of the first execution")
		}
	}
}
