package report_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/report"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// other is the run of storyDir, except for a repeated first pass, a failed fourth pass, and a sufficient score after
// one cycle.
func other(t *testing.T) rundir.Dir {
	s := newStory(t)
	s.start()
	s.pass(1, 2)
	s.pass(2, 1)
	s.pass(3, 1)
	end := s.settle(run.Pass{Step: "004", Number: 4, Set: "S2", Round: 2, Role: "verifier", Gives: "report",
		Title: "Pass 4"}, 1, 1, 500)
	end.Outcome, end.Validation.Passed = "output-empty", false
	s.end(end)
	s.cycle(1, 4)
	s.phase = ""
	s.add(run.KindRunEnd, run.RunEnd{Status: run.Done})
	return s.dir().Dir
}

func TestCompare(t *testing.T) {
	c, err := report.Compare(storyDir(t).Dir, other(t), report.Options{})
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, c.Text(&text))
	for _, want := range []string{
		"Passes           4/4                  4/4",
		"Cost             $2.05                $2.17                +$0.12",
		"Score            3.5                  4.0",
		"Rounds           2                    1", "Checks failed    0                    1",
		"Score of round 1 2.5                  4.0", "Score of round 2 3.5                  –",
		"Passes: 7 in both, 3 of them with another result; 4 only in A, 0 only in B.", // the fourth, and both auditors
		"artifact.html differs: 0 lines only in B, 1 line only in A.",
	} {
		require.Contains(t, squeezed(text.String()), squeezed(want))
	}
	raw, err := json.Marshal(c)
	require.NoError(t, err)
	var keys map[string]any
	require.NoError(t, json.Unmarshal(raw, &keys))
	require.ElementsMatch(t, []string{"a", "b", "passes", "scores", "artifact", "left_out"}, keysOf(keys))
}

func squeezed(s string) string { return space.ReplaceAllString(s, " ") }

func keysOf(m map[string]any) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	return out
}

func TestComparePage(t *testing.T) {
	c, err := report.Compare(storyDir(t).Dir, other(t), report.Options{})
	require.NoError(t, err)
	var page bytes.Buffer
	require.NoError(t, c.Page(&page, report.Options{}))
	require.Contains(t, section(t, page.String(), "summary"), "Cost $2.05 $2.17 +$0.12")
	require.Contains(t, section(t, page.String(), "passes"),
		"004 2 verifier ok, 1/1 checks 4.0s $0.25 output-empty, 1/1 checks 500ms $1.00")
	require.Contains(t, section(t, page.String(), "gallery"), "Round 1 · Top of the page, 1440x900 A B")
	require.Contains(t, section(t, page.String(), "changes"), "-<p>refined 1</p>")
	require.NotContains(t, page.String(), "<script")
	require.Equal(t, 6, strings.Count(page.String(), "<img "), "two views: of two cycles in A, of one in B")

	path := filepath.Join(t.TempDir(), "page.html")
	require.NoError(t, os.WriteFile(path, page.Bytes(), 0o600))
	fits(t, path, "compare")
}

func TestRunEqualsItself(t *testing.T) {
	d := storyDir(t)
	c, err := report.Compare(d.Dir, d.Dir, report.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"Passes: 11 in both, 0 of them with another result; 0 only in A, 0 only in B.",
		"artifact.html is the same in both."}, c.Sentences())
}
