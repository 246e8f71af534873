package conformance

import (
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// retries returns the decisions to repeat a pass.
func (r result) retries(t *testing.T, n int) []object {
	t.Helper()
	return where(r.decisions(t, "retry-pass"), "passNumber", float64(n))
}

// errorsOf returns the lines of errors.jsonl about a pass.
func (r result) errorsOf(t *testing.T, n int) []object {
	t.Helper()
	return where(r.log(t, "errors.jsonl"), "context", "pass-"+strconv.Itoa(n))
}

// requireError requires an error of a category, and the attempt at which it was recovered from; nil if it was not.
func requireError(t *testing.T, e object, category string, recoveredAt any) {
	t.Helper()
	require.Equal(t, category, e["category"])
	require.Equal(t, recoveredAt != nil, e["recovered"])
	require.Equal(t, recoveredAt, e["recoveredAtAttempt"])
}

// failureRows are attempts, waits, and replies that cannot be used.
func failureRows() rows {
	return rows{
		"RX-01": func(t *testing.T) {
			r := failingRun.get(t)
			for play, retried := range map[string]int{
				// transient and structural
				"crash": 1, "limited": 0, "slowpoke": 1, "cut": 2, "rest": 1, "cutall": 2, "nopage": 1, "sections": 1,
				"same": 0, "wide": 0, "quoting": 0, // soft
				"late": 0, // permanent
			} {
				require.Len(t, r.retries(t, passOf(t, failing, play)), retried, play)
			}
			for _, s := range stops[:len(stops)-1] {
				require.Equal(t, "paused", s.state.text(t, "currentPhase"))
				require.Contains(t, []any{"pass-failed", "consecutive-failures"}, s.state["phaseReason"])
			}
			counted := r.errorsOf(t, passOf(t, failing, "counted"))
			require.Equal(t, "claude-p-exit-nonzero", counted[0].text(t, "category"), "429 tokens are no usage limit")
		},
		"RX-02 RX-03": func(t *testing.T) {
			r := failingRun.get(t)
			var jitter float64
			for play, seconds := range map[string][]float64{
				"exhausted": {5, 10}, "weary": {5, 10, 20, 40, 80, 120}, "crash": {5}, "cut": {5, 10},
			} {
				retries := r.retries(t, passOf(t, failing, play))
				require.Len(t, retries, len(seconds), play)
				for i, s := range seconds {
					delay := retries[i].number(t, "delayMs")
					require.GreaterOrEqual(t, delay, 1000*s, "wait %d of %s", i+1, play)
					require.LessOrEqual(t, delay, min(1200*s, 120000), "wait %d of %s", i+1, play)
					jitter += delay - 1000*s
				}
			}
			require.NotZero(t, jitter)
		},
		"RX-07": func(t *testing.T) {
			r, n := failingRun.get(t), passOf(t, failing, "slowpoke")
			requireError(t, r.errorsOf(t, n)[0], "claude-p-timeout", 2.0)
			require.Equal(t, `{"type":"result","result":"This is as far as`,
				string(r.file(t, passDir(n)+"raw-output-FAILED.txt")))
			require.Equal(t, "This is the answer of slowpoke.", string(r.file(t, passDir(n)+"raw-output.txt")))
		},
		"RX-10": func(t *testing.T) {
			r := failingRun.get(t)
			for play, attempts := range map[string]int{"cut": 2, "rest": 1, "ellipsis": 0, "quoting": 0} {
				found := r.errorsOf(t, passOf(t, failing, play))
				require.Len(t, found, attempts, play)
				for _, e := range found {
					require.Equal(t, "output-truncated", e.text(t, "category"), play)
				}
			}
			require.Equal(t, digest([]byte(pageWith("ellipsis", 950)+"\n")),
				r.record(t, passOf(t, failing, "ellipsis")).text(t, "artifactHash"), "text after a whole page is no matter")
			require.Equal(t, true, r.record(t, passOf(t, failing, "quoting"))["validationPassed"],
				"a report is never truncated")
		},
		"RX-12": func(t *testing.T) {
			r := failingRun.get(t)
			require.Equal(t, "consecutive-failures", stops[5].state.text(t, "phaseReason"))
			require.EqualValues(t, passOf(t, failing, "sections"), stops[5].state.number(t, "lastCompletedCorpusPass"))
			require.Equal(t, 5, refused[1].code)
			for _, play := range []string{"cutall", "nopage", "sections"} {
				n := float64(passOf(t, failing, play))
				require.Len(t, where(r.decisions(t, "continue-after-failure"), "passNumber", n), 1)
				require.Len(t, where(r.decisions(t, "execute-pass"), "passNumber", n), 1, "force does not repeat it")
			}
			require.Equal(t, pageWith("next", 950)+"\n", string(r.file(t, "page.html")))
		},
		"IV-10": testEveryReplyIsKept,
	}
}

// testEveryReplyIsKept requires each output of the fake claude, byte for byte, in a file of a run.
func testEveryReplyIsKept(t *testing.T) {
	kept := map[string]bool{}
	for _, r := range []result{failingRun.get(t), moneyRun.get(t), claudeRun.get(t), screenshotRun.get(t)} {
		for _, folder := range []string{"passes", "screenshots"} {
			_ = filepath.WalkDir(r.path("_orchestrator/"+folder), func(path string, e fs.DirEntry, err error) error {
				if err == nil && !e.IsDir() {
					kept[digest(read(t, path))] = true
				}
				return nil
			})
		}
	}
	output, err := filepath.Glob(filepath.Join(rowsEnv.fakeDir(), "said-*"))
	require.NoError(t, err)
	require.Greater(t, len(output), 50)
	for _, name := range output {
		raw := read(t, name)
		require.True(t, kept[digest(raw)], "%s is in no file:\n%s", filepath.Base(name), raw[:min(len(raw), 200)])
	}
	for _, failed := range []string{"said-cutall-3", "said-limited-4", "said-slowpoke-1", "said-broken-1",
		"said-weaver-1"} {
		require.Contains(t, strings.Join(output, " "), failed)
	}
}
