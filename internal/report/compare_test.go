package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/report"
	"github.com/passbook-run/passbook/internal/testenv"
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
	return s.dir()
}

// comparison returns the text and the page of a comparison of storyDir and other.
func comparison(t *testing.T) (text, page string) {
	t.Helper()
	c, err := report.Compare(storyDir(t), other(t), report.Options{})
	require.NoError(t, err)
	var short, long bytes.Buffer
	require.NoError(t, c.Text(&short))
	require.NoError(t, c.Page(&long, report.Options{}))
	return short.String(), long.String()
}

func TestComparison(t *testing.T) {
	text, page := comparison(t)
	testenv.Golden(t, *update, "compare", text+"\n"+shown(t, page))
	require.Equal(t, 6, strings.Count(page, "<img "), "two views: of two cycles in A, of one in B")
}

func TestRunEqualsItself(t *testing.T) {
	d := storyDir(t)
	c, err := report.Compare(d, d, report.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"Passes: 11 in both, 0 of them with another result; 0 only in A, 0 only in B.",
		"artifact.html is the same in both."}, c.Sentences())
}
