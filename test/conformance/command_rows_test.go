package conformance

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// commandRows are the commands that read a run. They need no server.
func commandRows() rows {
	return rows{
		"CL-07":       testQualityReport,
		"CL-02 CL-08": testStatusText,
		"CL-09": func(t *testing.T) {
			for _, verb := range []string{"status", "cost-report", "quality-report"} {
				out, code := noServer(t).try(t, verb, "--output-dir", filepath.Join(base, "nowhere"))
				require.Equal(t, 2, code, out)
			}
		},
		"CL-11": testExitCodes,
	}
}

// testExitCodes compares exit codes. A forced end has the code of a shell for Ctrl+C.
func testExitCodes(t *testing.T) {
	demoRun.get(t) // by a command that must exit with 0
	interruptedRun.get(t)
	failingRun.get(t)
	for name, s := range map[string]stopped{"wait": interrupts.waiting, "pass": interrupts.passing,
		"between sets": interrupts.between} {
		require.Zero(t, s.code, "paused in %s", name)
	}
	require.Equal(t, 130, interrupts.auditing.code, "forced")
	require.Equal(t, 3, stops[0].code)
	require.Equal(t, "pass-failed", stops[0].state["phaseReason"])
	require.Zero(t, stops[len(stops)-1].code, "completed")
	require.Equal(t, 5, refused[0].code, "resumed without force")
	broken := copyExample(t, "without-roles", "roles:", "rolls:")
	for _, c := range []struct {
		code int
		args []string
	}{
		{0, []string{"status", demoRun.r.dir}},
		{0, []string{"check", demoRun.r.dir}},
		{2, []string{"run", "--config", broken, "--output-dir", filepath.Join(base, "never")}},
		{2, []string{"run", "--config", filepath.Join(base, "no-such.yaml"), "--output-dir", filepath.Join(base, "never")}},
		{2, []string{"no-such-verb"}},
		{5, []string{"pause", demoRun.r.dir}},
	} {
		out, code := try(t, c.args...)
		require.Equal(t, c.code, code, "starter %s:\n%s", strings.Join(c.args, " "), out)
	}
	require.NoDirExists(t, filepath.Join(base, "never"))
}

// noServer returns an environment without server and worker.
func noServer(t *testing.T) *env {
	t.Helper()
	e := &env{dir: t.TempDir()}
	require.NoError(t, e.create())
	return e
}

// testQualityReport requires a line for each verifier, with the counts of its pass, and one for each score.
func testQualityReport(t *testing.T) {
	r := demoRun.get(t)
	out := noServer(t).starter(t, "quality-report", "--output-dir", r.dir)
	counted := map[string]object{}
	for _, row := range where(lines(t, r.file(t, logs+"quality.jsonl")), "type", "verifier-depth") {
		counted[fmt.Sprint(row.number(t, "pass"))] = row
	}
	depths := regexp.MustCompile(`(?m)^ +(\d+) +(\d+) +(\d+) +(\d+)$`).FindAllStringSubmatch(out, -1)
	require.Len(t, depths, 21)
	for _, d := range depths {
		tally := counted[d[1]]
		require.NotNil(t, tally, "pass %s has no row", d[1])
		for i, name := range []string{"absent", "deeplyIntegrated", "surfaceLevel"} {
			require.Equal(t, d[2+i], fmt.Sprint(tally.number(t, name)), "%s of pass %s", name, d[1])
		}
	}
	scores := regexp.MustCompile(`(?m)^  cycle (\d) +(\d\.\d) `).FindAllStringSubmatch(out, -1)
	require.Len(t, scores, 3)
	for i, s := range scores {
		cycle := r.state(t).in(t, "paCycleRecords").in(t, fmt.Sprint(i+1))
		require.Equal(t, []string{fmt.Sprint(i + 1), fmt.Sprintf("%.1f", cycle.number(t, "paScore"))}, s[1:])
	}
	require.Contains(t, strings.Split(out, "cycle 3")[1], "threshold met")
}

// testStatusText compares each line of the text with the state.
func testStatusText(t *testing.T) {
	r := demoRun.get(t)
	e, s := noServer(t), r.state(t)
	out := e.starter(t, "status", "--output-dir", r.dir)
	require.NoDirExists(t, e.state(), "no server is started")
	cost := s.in(t, "cost")
	for label, want := range map[string]string{
		"Run ID":    regexp.QuoteMeta(s.text(t, "runId")),
		"Phase":     "COMPLETE",
		"Started":   `\d{4}-\d\d-\d\d \d\d:\d\d UTC`,
		"Last save": `\d{4}-\d\d-\d\d \d\d:\d\d UTC \(.+ ago\)`,
		"Progress":  `56/56 corpus passes \(100%\)  \+  3 PA cycles`,
		"Cost": fmt.Sprintf(`\$%.2f / \$%.2f \(\d+%%\)`, cost.number(t, "totalEstimatedCostUsd"),
			cost.number(t, "budgetHardCapUsd")),
		"Checkpoints": `10 \(cp-S1 through cp-PA-3\)`,
		"Errors":      "0 recovered, 0 unrecovered",
	} {
		width := 11
		if label == "Checkpoints" || label == "Errors" {
			width = 13
		}
		require.Regexp(t, fmt.Sprintf(`(?m)^%-*s%s$`, width, label+":", want), out)
	}
	for _, n := range []int{54, 55, 56} {
		require.Regexp(t, fmt.Sprintf(`(?m)^  %d: S7/%d[ABC] (Builder |Verifier)   [ \d]\ds  \$0\.\d\d  PASS`, n, n-48), out)
	}
}
