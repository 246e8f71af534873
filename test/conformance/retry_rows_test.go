package conformance

import (
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// retries gives the decisions to try a pass again.
func (r result) retries(t *testing.T, n int) []object {
	t.Helper()
	return where(r.decisions(t, "retry-pass"), "passNumber", float64(n))
}

// errorsOf gives the lines of errors.jsonl about a pass.
func (r result) errorsOf(t *testing.T, n int) []object {
	t.Helper()
	return where(r.log(t, "errors.jsonl"), "context", "pass-"+strconv.Itoa(n))
}

// delays are in milliseconds.
func delays(t *testing.T, rows []object) []float64 {
	t.Helper()
	var out []float64
	for _, row := range rows {
		out = append(out, row.number(t, "delayMs"))
	}
	return out
}

// between wants waits of so many seconds each, a fifth more at most, and none above the cap.
func between(t *testing.T, got []float64, capped float64, seconds ...float64) {
	t.Helper()
	require.Len(t, got, len(seconds))
	for i, s := range seconds {
		require.GreaterOrEqual(t, got[i], 1000*s, "wait %d", i+1)
		require.LessOrEqual(t, got[i], min(1200*s, 1000*capped), "wait %d", i+1)
	}
}

// retryRows are attempts, waits and timeouts.
func retryRows() rows {
	return rows{
		"RX-01": testClasses,
		"RX-02": func(t *testing.T) {
			r := failingRun.get(t)
			require.Contains(t, r.text(t), "Invoking claude -p (attempt 1/3)...",
				"three attempts, when nothing is said")
			require.Contains(t, r.text(t), "Invoking claude -p (attempt 3/3)...")
			between(t, delays(t, r.retries(t, passOf(t, failing, "exhausted"))), 120, 5, 10)
			between(t, delays(t, r.retries(t, passOf(t, failing, "weary"))), 120, 5, 10, 20, 40, 80, 120)
		},
		"RX-03": func(t *testing.T) {
			r := failingRun.get(t)
			var jitter []float64
			for _, play := range []string{"crash", "counted", "weary", "cut", "rest"} {
				for n, d := range delays(t, r.retries(t, passOf(t, failing, play))) {
					if base := 5000 * float64(int(1)<<n); base < 100000 {
						require.GreaterOrEqual(t, d, base)
						require.LessOrEqual(t, d, 1.2*base)
						jitter = append(jitter, d-base)
					}
				}
			}
			require.NotZero(t, jitter[0]+jitter[1]+jitter[2], "no jitter at all")
			capped := delays(t, r.retries(t, passOf(t, failing, "weary")))
			require.InDelta(t, 120000, capped[5], 0, "the cap is above the jitter")
		},
		"RX-04": func(t *testing.T) {
			r, n := failingRun.get(t), passOf(t, failing, "limited")
			require.Empty(t, r.retries(t, n), "a limit uses no attempt")
			require.EqualValues(t, 0, r.record(t, n).number(t, "retryCount"))
			require.Len(t, r.errorsOf(t, n), 4)
			for _, e := range r.errorsOf(t, n) {
				require.Equal(t, "rate-limit", e.text(t, "category"))
				require.EqualValues(t, 1, e.number(t, "recoveredAtAttempt"))
			}
			require.Equal(t, 4, count(r.text(t), `Pipeline waits until .* for .* \((rate limit|overloaded)\)`))
			counted := r.errorsOf(t, passOf(t, failing, "counted"))
			require.Equal(t, "claude-p-exit-nonzero", counted[0].text(t, "category"), "429 tokens are not refusal")
		},
		"RX-07": testTimeouts,
		"RX-08": func(t *testing.T) {
			took := lasted(t, slowRun.get(t), 1)
			require.Len(t, took, 3)
			for i, bounds := range [][2]float64{{1, 1.5}, {1, 1.5}, {1.5, 3}} {
				require.GreaterOrEqual(t, took[i], slowTimeout*bounds[0], "attempt %d", i+1)
				require.Less(t, took[i], slowTimeout*bounds[1], "attempt %d", i+1)
			}
			require.Equal(t, 3, exhaustedByTime.code)
			require.Equal(t, "pass-failed", exhaustedByTime.state.text(t, "phaseReason"))
		},
	}
}

// testClasses wants what follows from a failure to be what its class says.
func testClasses(t *testing.T) {
	r := failingRun.get(t)
	for play, retried := range map[string]int{
		// transient and structural
		"crash": 1, "limited": 0, "cut": 2, "rest": 1, "cutall": 2, "nopage": 1, "sections": 1,
		"same": 0, "wide": 0, "quoting": 0, // soft
		"late": 0, // permanent: another attempt cannot help
	} {
		require.Len(t, r.retries(t, passOf(t, failing, play)), retried, play)
	}
	require.Len(t, slowRun.get(t).retries(t, 2), 1, "a timeout")
	for _, s := range stops[:len(stops)-1] {
		require.Equal(t, "paused", s.state.text(t, "currentPhase"))
		require.Contains(t, []any{"pass-failed", "consecutive-failures"}, s.state["phaseReason"])
	}
	budgetRun.get(t)
	require.Equal(t, "budget-threshold", broke.text(t, "phaseReason"))
}

var endedAfter = regexp.MustCompile(`ended after ([\d.]+)s$`)

// lasted is how many seconds the attempts of a pass took that were ended.
func lasted(t *testing.T, r result, n int) []float64 {
	t.Helper()
	var out []float64
	for _, e := range r.errorsOf(t, n) {
		require.Equal(t, "claude-p-timeout", e.text(t, "category"))
		m := endedAfter.FindStringSubmatch(e.text(t, "message"))
		require.NotNil(t, m, e.text(t, "message"))
		s, err := strconv.ParseFloat(m[1], 64)
		require.NoError(t, err)
		out = append(out, s)
	}
	return out
}

// testTimeouts wants the agent and its child gone, five seconds after they were asked to go, and what was said kept.
func testTimeouts(t *testing.T) {
	r := slowRun.get(t)
	took := lasted(t, r, 2)
	require.Len(t, took, 1)
	require.GreaterOrEqual(t, took[0], slowTimeout+5, "SIGTERM, and SIGKILL five seconds later")
	for _, name := range []string{"stubborn-pid", "stubborn-child"} {
		pid, err := strconv.Atoi(string(read(t, filepath.Join(rowsEnv.fakeDir(), name))))
		require.NoError(t, err)
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "%s still lives", name)
	}
	for _, name := range []string{"raw-output-FAILED.txt", "raw-output-FAILED-2.txt", "raw-output-FAILED-3.txt"} {
		require.Equal(t, `{"type":"result","result":"This is as far as`, string(r.file(t, passDir(1)+name)))
	}
	require.Equal(t, `{"type":"result","result":"You will have to`,
		string(r.file(t, passDir(2)+"raw-output-FAILED.txt")))
	require.Equal(t, "This is the answer of slowpoke.", string(r.file(t, passDir(1)+"raw-output.txt")))
}
