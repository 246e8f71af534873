package conformance

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// givenUp wants a pass of the failing run that was settled without an answer that can be used: recorded, passed over,
// and nothing of it taken.
func givenUp(t *testing.T, play, category string, attempts int) {
	t.Helper()
	r, n := failingRun.get(t), passOf(t, failing, play)
	rec := r.record(t, n)
	require.Equal(t, []any{false, category, nil, nil},
		[]any{rec["validationPassed"], rec["outcome"], rec["artifactPath"], rec["artifactHash"]})
	require.EqualValues(t, attempts-1, rec.number(t, "retryCount"))
	failed := r.errorsOf(t, n)
	require.Len(t, failed, attempts)
	for _, e := range failed {
		require.Equal(t, []any{category, false, nil}, []any{e["category"], e["recovered"], e["recoveredAtAttempt"]})
	}
	require.Len(t, where(r.decisions(t, "continue-after-failure"), "passNumber", float64(n)), 1)
	require.Len(t, where(r.decisions(t, "execute-pass"), "passNumber", float64(n+1)), 1, "the next pass runs")
	require.EqualValues(t, attempts, 100*rec.number(t, "tokens.estimatedCostUsd"), "every attempt is paid for")
}

// structureRows are replies that lack what was asked for.
func structureRows() rows {
	return rows{
		"RX-10": func(t *testing.T) {
			r := failingRun.get(t)
			for play, attempts := range map[string]int{"cut": 2, "rest": 1, "ellipsis": 0, "quoting": 0} {
				found := r.errorsOf(t, passOf(t, failing, play))
				require.Len(t, found, attempts, play)
				for _, e := range found {
					require.Equal(t, "output-truncated", e.text(t, "category"), play)
				}
			}
			require.Equal(t, digest([]byte(pageSays("ellipsis", 950)+"\n")),
				r.record(t, passOf(t, failing, "ellipsis")).text(t, "artifactHash"),
				"a page that is whole is taken, whatever is said after it")
			require.Equal(t, true, r.record(t, passOf(t, failing, "quoting"))["validationPassed"],
				"a report is never truncated")
		},
		"RX-11": func(t *testing.T) {
			givenUp(t, "cutall", "output-truncated", 3)
			r := failingRun.get(t)
			before := r.file(t, passDir(passOf(t, failing, "cutall"))+"artifact-backup.html")
			require.Equal(t, pageSays("wide", 800)+"\n", string(before))
			require.Equal(t, string(before), string(r.file(t,
				passDir(passOf(t, failing, "next"))+"artifact-backup.html")), "the page is as it was before")
			for _, s := range stops {
				require.NotContains(t, s.state.text(t, "currentArtifactHash"), digest([]byte(halfPage)))
			}
			require.Equal(t, pageSays("next", 950)+"\n", string(r.file(t, "page.html")))
		},
		"RX-12": func(t *testing.T) {
			givenUp(t, "nopage", "output-no-artifact", 2)
			require.Equal(t, "consecutive-failures", stops[5].state.text(t, "phaseReason"),
				"it is one of three on end that were given up")
			require.EqualValues(t, passOf(t, failing, "sections"), stops[5].state.number(t, "lastCompletedCorpusPass"))
			require.Equal(t, 5, refused[1].code)
			require.Contains(t, refused[1].output, "3 consecutive passes failed")
			n := float64(passOf(t, failing, "nopage"))
			require.Len(t, where(failingRun.get(t).decisions(t, "execute-pass"), "passNumber", n), 1,
				"the force does not do it again")
		},
		"RX-13": func(t *testing.T) { givenUp(t, "sections", "validation-failed", 2) },
		"IV-10": testEveryReplyIsKept,
	}
}

// testEveryReplyIsKept looks for everything that the fake claude has said, byte for byte: in a file of a run, whatever
// became of the attempt.
func testEveryReplyIsKept(t *testing.T) {
	kept := map[string]bool{}
	for _, r := range []result{failingRun.get(t), slowRun.get(t), moneyRun.get(t), claudeRun.get(t), blindRun.get(t)} {
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
		require.True(t, kept[digest(raw)], "%s is nowhere:\n%s", filepath.Base(name), raw[:min(len(raw), 200)])
	}
	for _, failed := range []string{"said-cutall-3", "said-limited-4", "said-slowpoke-2", "said-stubborn-1",
		"said-broken-1", "said-weaver-1"} {
		require.Contains(t, strings.Join(output, " "), failed)
	}
}
