package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// interruptedRun is a run whose operator presses Ctrl+C several times.
var interruptedRun = &shared{make: makeInterrupted}

// interrupts are the results of Ctrl+C: in a wait, in a pass, between two sets, and twice during a cycle.
var interrupts struct {
	waiting, passing, between, auditing stopped
	asked                               []object // calls until the last one
	status                              string   // between two sets
}

func makeInterrupted(t *testing.T) result {
	starter(t, "server", "start")
	setRowsFaults(t, strings.Join([]string{
		"- {at: 3, do: rate_limit}",
		rowsEnv.held("5", 1), rowsEnv.held("9", 1),
		"- {at: auditor-B-1, do: slow, seconds: 600}",
		"- {at: weaver-2, do: slow, seconds: 1}",
	}, "\n"))
	config := copyExample(t, "patient", "time_scale: 0.01", "time_scale: 1")
	r := result{dir: filepath.Join(base, "interrupted")}
	from := len(calls(t, 0))
	attach := func(code int, use func(s *screen)) stopped {
		s := rowsEnv.open(t, "run", "--config", config, "--output-dir", r.dir)
		use(s)
		require.Equal(t, code, s.ends(t), s.text())
		return stopped{output: s.text(), code: code, state: r.state(t)}
	}
	interrupts.waiting = attach(0, func(s *screen) {
		until(t, "pass 3 waits for a limit", func() bool {
			raw, err := os.ReadFile(r.path(logs + "decisions.jsonl"))
			return err == nil && strings.Contains(string(raw), "wait-for-limit")
		})
		s.interrupt(t)
	})
	pauses := func() { // the terminal shows its request at once
		until(t, "the pause has reached the workflow", func() bool {
			status := starter(t, "status", r.dir)
			return strings.Contains(status, "a pause is requested") || strings.Contains(status, "PAUSED")
		})
	}
	starter(t, "resume", r.dir)
	interrupts.passing = attach(0, func(s *screen) {
		begun(t, r, 5)
		s.shows(t, "Verifier")
		s.interrupt(t)
		s.shows(t, "Press Ctrl+C again")
		pauses()
		rowsEnv.release(t, "5")
	})
	starter(t, "resume", r.dir)
	interrupts.between = attach(0, func(s *screen) {
		s.shows(t, "← cp-S1")
		s.interrupt(t)
		until(t, "the interrupt is shown", func() bool {
			return strings.Contains(s.text(), "Press Ctrl+C again") || strings.Contains(s.text(), "paused by user")
		})
		pauses()
		rowsEnv.release(t, "9")
	})
	interrupts.status = starter(t, "status", r.dir)
	starter(t, "resume", r.dir)
	interrupts.auditing = attach(130, func(s *screen) {
		until(t, "only auditor B is at work", func() bool {
			all := calls(t, from)
			return started(all, "auditor-B-1") == 1 && answered(all, "auditor-A-1") == 1 &&
				answered(all, "auditor-C-1") == 1
		})
		sizes := map[int]bool{} // of what was drawn
		until(t, "the screen shows the time of auditor B again and again", func() bool {
			sizes[len(s.text())] = true
			return len(sizes) > 3
		})
		s.interrupt(t)
		s.shows(t, "Press Ctrl+C again")
		s.interrupt(t)
	})
	interrupts.asked = calls(t, from)
	starter(t, "resume", r.dir)
	r.output = attach(0, func(*screen) {}).output
	r.calls = calls(t, from)
	return r
}

// limitEnds returns the end of the first wait for a limit.
func limitEnds(t *testing.T, r result) string {
	t.Helper()
	for _, e := range lines(t, r.file(t, "events.jsonl")) {
		if e.text(t, "kind") == "run.limited" {
			return e.text(t, "payload.until")
		}
	}
	require.FailNow(t, "the run waited for no limit")
	return ""
}

// terminalRows are runs attached to a terminal.
func terminalRows() rows {
	return rows{
		"LC-01": func(t *testing.T) {
			killedRun.get(t)
			at := killedAt["006"]
			require.False(t, at.backedUp.After(at.saved), "the backup is there before the mark is")
			require.Equal(t, digest([]byte(at.artifact)), at.files[passDir(6)+"artifact-backup.html"])
			require.Contains(t, at.state.list(t, "artifactBackups"), passDir(6)+"artifact-backup.html")
			requireInFlight(t, 6, "builder")
			last := at.decisions[len(at.decisions)-1]
			require.Equal(t, "execute-pass", last["decision"])
			require.Equal(t, 6.0, last["passNumber"])
		},
		"LC-04": func(t *testing.T) {
			r, done := interruptedRun.get(t), interrupts.between.state.number(t, "lastCompletedCorpusPass")
			require.Contains(t, []float64{8, 9}, done, "the set had ended")
			require.Regexp(t, `(?m)^   8: S1/8C Verifier .*PASS  ← subset complete, checkpoint created$`, interrupts.status)
			if done == 8 {
				require.Contains(t, interrupts.status, "Subset:    S1 completed, S2 pending\n")
			}
			requirePosition(t, interrupts.between.state, "paused", "user-requested")
			for _, n := range []int{8, 9, 10} {
				require.Equal(t, 1, started(r.calls, padded(n)), "pass %d", n)
			}
			require.Equal(t, tinyRun.get(t).state(t).text(t, "currentArtifactHash"),
				digest(r.file(t, "artifact.html")))
		},
		"LC-05 LC-08": func(t *testing.T) {
			r := interruptedRun.get(t)
			requirePosition(t, interrupts.passing.state, "paused", "user-requested")
			require.EqualValues(t, 5, interrupts.passing.state.number(t, "lastCompletedCorpusPass"),
				"the pass is completed first")
			require.Equal(t, 1, started(r.calls, "005"))
			require.Equal(t, 1, answered(r.calls, "005"), "Ctrl+C in the terminal does not reach the agent")
			require.Contains(t, interrupts.passing.output, "Graceful shutdown requested. Finishing current pass...")
			require.Contains(t, interrupts.passing.output, "Press Ctrl+C again to force exit.")
			require.Contains(t, interrupts.passing.output, "Pipeline paused by user. Resume with: ")
			require.Equal(t, 4,
				count(r.text(t), `\[INFO\]  Pipeline paused by user\. Resume with the same configuration\.$`))
		},
		"LC-06": func(t *testing.T) {
			r := interruptedRun.get(t)
			requirePosition(t, interrupts.waiting.state, "paused", "user-requested")
			require.EqualValues(t, 2, interrupts.waiting.state.number(t, "lastCompletedCorpusPass"))
			wait := r.decisions(t, "wait-for-limit")[0].text(t, "ts")
			until := limitEnds(t, r)
			require.Greater(t, elapsed(t, wait, until), 55*time.Second)
			require.Less(t, elapsed(t, wait, r.decisions(t, "pause-pipeline")[0].text(t, "ts")), 50*time.Second,
				"of a minute")
			require.Equal(t, 2, started(r.calls, "003"), "once before the pause, and once after it")
		},
		"LC-07": func(t *testing.T) {
			interruptedRun.get(t)
			require.Contains(t, interrupts.auditing.output, "Force exit. State saved at last completed pass.")
			requirePosition(t, interrupts.auditing.state, "paused", "user-requested")
			require.Zero(t, answered(interrupts.asked, "auditor-B-1"))
		},
		"LC-09": func(t *testing.T) {
			r := interruptedRun.get(t)
			require.EqualValues(t, 0, interrupts.auditing.state.number(t, "completedPACycles"))
			for at, want := range map[string]int{"auditor-A-1": 1, "auditor-C-1": 1, "auditor-B-1": 2} {
				require.Equal(t, want, started(r.calls, at), at)
				require.Equal(t, 1, answered(r.calls, at), at)
			}
			require.Len(t, r.cycle(t, 1).list(t, "auditors"), 3)
			require.Equal(t, "complete", r.state(t).text(t, "currentPhase"))
		},
		"TM-04": func(t *testing.T) { interruptedRun.get(t) }, // the screen is drawn while only the time changes
		"TM-01 TM-14": func(t *testing.T) {
			dir := demoRun.get(t).dir
			require.NotContains(t, demoRun.get(t).output, "\x1b")
			budgetRun.get(t)
			for _, row := range []struct {
				dir, text, color string
				code             int
			}{
				{dir, "✓ done", "\x1b[92m", 0}, // bright green
				{budgetPause, "‖ paused", "\x1b[93m", 3},
				{budgetPause, "unrecovered", "\x1b[91m", 3},
			} {
				s := noServer(t).open(t, "watch", row.dir)
				s.shows(t, row.text)
				require.Equal(t, row.color, s.color(row.text), row.text)
				s.press(t, "q")
				require.Equal(t, row.code, s.ends(t))
			}
		},
		"LC-10": func(t *testing.T) {
			moneyRun.get(t)
			require.Contains(t, money.second.output, "no PA-05 score: ", "a score out of range")
			require.Contains(t, money.second.output, "4.3")
			output := interruptedRun.get(t).output
			require.Contains(t, output, "PA-05 2.5 (target 3.0)")
			require.Contains(t, output, "PA-05 3.0 (target 3.0)")
			require.Less(t, strings.Index(output, "PA-05 2.5"), strings.Index(output, "PA-05 3.0"))
		},
	}
}
