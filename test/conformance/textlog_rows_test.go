package conformance

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// logLine has a time, a level and a text that begins at the same column for all levels.
var logLine = regexp.MustCompile(
	`^\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\] \[(INFO\]  |WARN\]  |ERROR\] )(\S.*|  \S.*)?$`)

// textLogRows are the lines of orchestrator.log.
func textLogRows() rows {
	return rows{
		"LG-05 LG-06": func(t *testing.T) {
			for _, r := range append(runsWithErrors(t), demoRun.get(t), moneyRun.get(t), killedRun.get(t),
				lostRun.get(t), interruptedRun.get(t)) {
				for text := range strings.Lines(r.text(t)) {
					require.Regexp(t, logLine, strings.TrimSuffix(text, "\n"))
				}
			}
			r := recoveredRun.get(t)
			require.Equal(t, 1, count(section(t, r, 3), `\[WARN\]    Attempt 1 failed \(claude-p-exit-nonzero\)`))
			require.NotZero(t, count(r.text(t), `\[ERROR\].*given up`))
			require.Zero(t, count(demoRun.get(t).text(t), `\[ERROR\]`))
		},
		"LG-07": func(t *testing.T) {
			r := demoRun.get(t)
			require.Contains(t, r.text(t), "[INFO]  Pipeline started. Run ID: "+r.state(t).text(t, "runId")+"\n")
			require.Contains(t, r.text(t), "[INFO]  Config hash: "+r.state(t).text(t, "configHash")+"\n")
		},
		"LG-09 LG-10 LG-11 LG-13 LG-14 LG-15 LG-16 LG-17 LG-18": func(t *testing.T) {
			r := demoRun.get(t)
			text := regexp.MustCompile(`(?m)^\[[^]]+\] | in \d+\.\ds`).ReplaceAllString(r.text(t), "")
			rule := "[INFO]  ═══════════════════════════════════════\n"
			for n := 1; n <= 56; n++ {
				require.Contains(t, text, rule+strings.Join(passLines(t, r, n), "\n")+"\n")
			}
			require.Contains(t, section(t, recoveredRun.get(t), 7), "  Validation: FAIL (4/5 checks)\n")
		},
		"LG-12": func(t *testing.T) {
			require.Equal(t, 70, count(demoRun.get(t).text(t), `  Invoking claude -p \(attempt 1/3\)\.\.\.$`))
			text := section(t, recoveredRun.get(t), 3)
			require.Regexp(t, `(?s)\(attempt 1/3\)\.\.\..*\(attempt 2/3\)\.\.\.`, text)
			limited := section(t, recoveredRun.get(t), 4)
			require.Regexp(t, `(?s)\(attempt 1/3\)\.\.\..*Pipeline waits until .*\(attempt 1/3\)\.\.\.`, limited)
			require.NotContains(t, limited, "(attempt 2/3)", "a limit uses no attempt")
		},
	}
}

// passLines returns the lines of a pass of the demo, without times, by the definition and the files of the pass.
func passLines(t *testing.T, r result, n int) []string {
	t.Helper()
	set, in := (n-1)/8, (n-1)%8
	theme, _, _ := strings.Cut(themes[set], " + ")
	reply := string(r.file(t, passDir(n)+"raw-output.txt"))
	note := func(marker string) int {
		_, text, _ := strings.Cut(reply, marker+"_START -->")
		text, _, _ = strings.Cut(text, "<!--")
		return len([]rune(strings.TrimSpace(text)))
	}
	size := func(text string) string {
		return fmt.Sprintf("(%s chars, ~%s tokens)", thousands(len([]rune(text))), thousands(quarter(text)))
	}
	checks := map[bool]int{true: 4, false: 5}[verifies(n)]
	lines := []string{fmt.Sprintf("[INFO]  PASS %d/56: [S%d] Pass %d/8 — Rotation %s — %s — %s", n, set+1, in+1,
		rotations[in], titleOf(n), theme)}
	if !verifies(n) {
		lines = append(lines, "[INFO]    Artifact backed up to "+passDir(n)+"artifact-backup.html")
	}
	lines = append(lines, "[INFO]    Prompt written "+size(r.prompt(t, n)),
		"[INFO]    Invoking claude -p (attempt 1/3)...", "[INFO]    Output received "+size(reply),
		fmt.Sprintf("[INFO]    Validation: PASS (%d/%d checks)", checks, checks),
		fmt.Sprintf("[INFO]    Conviction addition appended (%d chars)", note("CONVICTION_ADDITION")))
	if n != 35 {
		lines = append(lines, fmt.Sprintf("[INFO]    Discovery addition appended (%d chars)", note("DISCOVERY_LOG")))
	}
	switch {
	case verifies(n):
	case n == 15 || n == 31:
		lines = append(lines, "[WARN]    Artifact unchanged")
	default:
		page := fenced(reply) + "\n"
		lines = append(lines, fmt.Sprintf("[INFO]    Artifact updated (%s chars)", thousands(len([]rune(page)))))
	}
	tokens := r.record(t, n).in(t, "tokens")
	lines = append(lines, fmt.Sprintf("[INFO]    PASS %d COMPLETE | %s in / %s out | $%.2f | validation: PASS", n,
		thousands(int(tokens.number(t, "inputTokens"))), thousands(int(tokens.number(t, "outputTokens"))),
		tokens.number(t, "estimatedCostUsd")))
	if n == 35 {
		lines = append(lines, "[WARN]    Discovery log entry missing from builder output")
	}
	return lines
}

// section returns the lines of the log about one numbered pass.
func section(t *testing.T, r result, n int) string {
	t.Helper()
	text := r.text(t)
	total := strconv.Itoa(int(r.state(t).number(t, "totalCorpusPasses")))
	_, from, ok := strings.Cut(text, "PASS "+strconv.Itoa(n)+"/"+total+": ")
	require.True(t, ok, "the log has no pass %d", n)
	body, _, _ := strings.Cut(from, "═══")
	return body
}

func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
