package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// interruptedRun is a run whose user presses Ctrl+C again and again.
var interruptedRun = &shared{make: makeInterrupted}

// pressed is what Ctrl+C led to: in a wait, in a pass, between two sets, and twice while auditors work.
var pressed struct {
	waiting, passing, between, auditing stopped
	asked                               []object // calls until the last one
	status                              string   // between two sets
}

func makeInterrupted(t *testing.T) result {
	starter(t, "server", "start")
	spoil(t, strings.Join([]string{
		"- {at: 3, do: rate_limit}",
		"- {at: 5, do: slow, seconds: 4}",
		"- {at: 9, do: slow, seconds: 4}",
		"- {at: auditor-B-1, do: slow, seconds: 600}",
		"- {at: weaver-2, do: slow, seconds: 1}",
	}, "\n"))
	config := copyExample(t, "patient", "time_scale: 0.01", "time_scale: 1")
	r := result{dir: filepath.Join(base, "interrupted")}
	from := len(calls(t, 0))
	attach := func(code int, use func(s *screen)) stopped {
		s := open(t, "run", "--config", config, "--output-dir", r.dir)
		use(s)
		require.Equal(t, code, s.ends(t), s.text())
		return stopped{output: s.text(), code: code, state: r.state(t)}
	}
	pressed.waiting = attach(0, func(s *screen) {
		until(t, "pass 3 waits for a limit", func() bool {
			raw, err := os.ReadFile(r.path(logs + "decisions.jsonl"))
			return err == nil && strings.Contains(string(raw), "wait-for-limit")
		})
		s.interrupt(t)
	})
	starter(t, "resume", r.dir)
	pressed.passing = attach(0, func(s *screen) {
		begun(t, r, 5)
		s.shows(t, "Verifier")
		s.interrupt(t)
	})
	starter(t, "resume", r.dir)
	pressed.between = attach(0, func(s *screen) {
		s.shows(t, "← cp-S1")
		s.interrupt(t)
	})
	pressed.status = starter(t, "status", r.dir)
	starter(t, "resume", r.dir)
	pressed.auditing = attach(130, func(s *screen) {
		until(t, "only auditor B is at work", func() bool {
			all := calls(t, from)
			return started(all, "auditor-B-1") == 1 && answered(all, "auditor-A-1") == 1 &&
				answered(all, "auditor-C-1") == 1
		})
		watchAuditing(t, s)
		s.interrupt(t)
		s.shows(t, "Press Ctrl+C again")
		s.interrupt(t)
	})
	pressed.asked = calls(t, from)
	starter(t, "resume", r.dir)
	r.output = attach(0, func(*screen) {}).output
	r.calls = calls(t, from)
	return r
}

// limitEnds is the time until which a run waited for a limit first.
func limitEnds(t *testing.T, r result) string {
	t.Helper()
	for _, e := range lines(t, r.file(t, "events.jsonl")) {
		if e.text(t, "kind") == "run.limited" {
			return e.text(t, "payload.until")
		}
	}
	require.Fail(t, "the run waited for no limit")
	return ""
}

// terminalRows are what somebody sees and does at a terminal.
func terminalRows() rows {
	return rows{
		"LC-01": func(t *testing.T) {
			killedRun.get(t)
			at := fell["006"]
			require.False(t, at.backedUp.After(at.saved), "the backup is there before the mark is")
			require.Equal(t, digest([]byte(at.artifact)), at.files[passDir(6)+"artifact-backup.html"])
			require.Contains(t, at.state.list(t, "artifactBackups"), passDir(6)+"artifact-backup.html")
			flying(t, 6, "builder")
			last := at.decisions[len(at.decisions)-1]
			require.Equal(t, []any{"execute-pass", 6.0}, []any{last["decision"], last["passNumber"]})
		},
		"LC-04": func(t *testing.T) {
			r, done := interruptedRun.get(t), pressed.between.state.number(t, "lastCompletedCorpusPass")
			require.Contains(t, []float64{8, 9}, done, "the set was through when the key was pressed")
			require.Regexp(t, `(?m)^   8: S1/8C Verifier .*PASS  ← subset complete, checkpoint created$`, pressed.status)
			if done == 8 {
				require.Contains(t, pressed.status, "Subset:      S1 completed, S2 pending\n")
			}
			require.Equal(t, []any{"paused", "user-requested", nil}, standing(pressed.between.state))
			for _, n := range []int{8, 9, 10} {
				require.Equal(t, 1, started(r.calls, padded(n)), "pass %d", n)
			}
			require.Equal(t, againRun.get(t).state(t).text(t, "currentArtifactHash"),
				digest(r.file(t, "artifact.html")))
		},
		"LC-05": func(t *testing.T) {
			r := interruptedRun.get(t)
			require.Equal(t, []any{"paused", "user-requested", nil}, standing(pressed.passing.state))
			require.EqualValues(t, 5, pressed.passing.state.number(t, "lastCompletedCorpusPass"),
				"the pass was to be finished")
			require.Equal(t, []int{1, 1}, []int{started(r.calls, "005"), answered(r.calls, "005")},
				"the key in the terminal did not reach the agent")
			require.Contains(t, pressed.passing.output, "Graceful shutdown requested. Finishing current pass...")
			require.Contains(t, pressed.passing.output, "Press Ctrl+C again to force exit.")
			checkpoints := pressed.passing.state.objects(t, "checkpoints")
			require.Regexp(t, `^cp-PAUSE-\d{8}T\d{6}Z$`, checkpoints[len(checkpoints)-1].text(t, "id"))
		},
		"LC-06": func(t *testing.T) {
			r := interruptedRun.get(t)
			require.Equal(t, []any{"paused", "user-requested", nil}, standing(pressed.waiting.state))
			require.EqualValues(t, 2, pressed.waiting.state.number(t, "lastCompletedCorpusPass"))
			wait := r.decisions(t, "wait-for-limit")[0].text(t, "ts")
			until := limitEnds(t, r)
			require.Greater(t, elapsed(t, wait, until), 55*time.Second)
			require.Less(t, elapsed(t, wait, r.decisions(t, "pause-pipeline")[0].text(t, "ts")), 50*time.Second,
				"it was to wait a minute")
			require.Equal(t, 2, started(r.calls, "003"), "once before the pause, and once after it")
		},
		"LC-07": func(t *testing.T) {
			interruptedRun.get(t)
			require.Contains(t, pressed.auditing.output, "Force exit. State saved at last completed pass.")
			require.Equal(t, []any{"paused", "user-requested", nil}, standing(pressed.auditing.state))
			require.Zero(t, answered(pressed.asked, "auditor-B-1"))
		},
		"LC-08": func(t *testing.T) {
			r := interruptedRun.get(t)
			require.Equal(t, 4,
				count(r.text(t), `\[INFO\]  Pipeline paused by user\. Resume with the same configuration\.$`))
			require.Contains(t, pressed.passing.output, "Pipeline paused by user. Resume with: ")
		},
		"LC-09": func(t *testing.T) {
			r := interruptedRun.get(t)
			require.EqualValues(t, 0, pressed.auditing.state.number(t, "completedPACycles"))
			for at, want := range map[string]int{"auditor-A-1": 1, "auditor-C-1": 1, "auditor-B-1": 2} {
				require.Equal(t, want, started(r.calls, at), at)
				require.Equal(t, 1, answered(r.calls, at), at)
			}
			require.Len(t, r.cycle(t, 1).list(t, "auditors"), 3)
			require.Equal(t, "complete", r.state(t).text(t, "currentPhase"))
		},
		"LC-10": func(t *testing.T) {
			moneyRun.get(t)
			require.Contains(t, money.second.output, "no PA-05 score: ", "a score out of range is shown too, with why")
			require.Contains(t, money.second.output, "4.3")
			output := interruptedRun.get(t).output
			require.Contains(t, output, "PA-05 2.5 (target 3.0)")
			require.Contains(t, output, "PA-05 3.0 (target 3.0)")
			require.Less(t, strings.Index(output, "PA-05 2.5"), strings.Index(output, "PA-05 3.0"))
		},
	}
}

// standing is where a state says that the run stands.
func standing(state object) []any {
	return []any{state["currentPhase"], state["phaseReason"], state["inFlightPass"]}
}
