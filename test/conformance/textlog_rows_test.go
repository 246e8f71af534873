package conformance

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// textLogRows are the lines of orchestrator.log.
func textLogRows() rows {
	return rows{
		"LG-05": func(t *testing.T) {
			line := regexp.MustCompile(`^\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\] \[(INFO|WARN|ERROR)\] {1,2}\S?.*$`)
			for _, r := range append(inTrouble(t), demoRun.get(t), moneyRun.get(t), killedRun.get(t), lostRun.get(t),
				interruptedRun.get(t)) {
				for text := range strings.Lines(r.text(t)) {
					require.Regexp(t, line, strings.TrimSuffix(text, "\n"))
					require.Equal(t, byte(' '), text[len("[2026-02-28T14:23:01.234Z] [ERROR]")],
						"the text begins at the same column")
				}
			}
		},
		"LG-06": func(t *testing.T) {
			text := troubledRun.get(t).text(t)
			require.Zero(t, len(strings.Split(strings.TrimSpace(text), "\n"))-count(text,
				`^\[[^]]+\] \[(INFO|WARN|ERROR)\]`))
			require.Equal(t, 1, count(section(t, troubledRun.get(t), 3),
				`\[WARN\]    Attempt 1 failed \(claude-p-exit-nonzero\)`), "what is tried again is a warning")
			require.NotZero(t, count(text, `\[ERROR\].*given up`), "what is given up is an error")
			require.Zero(t, count(demoRun.get(t).text(t), `\[ERROR\]`))
		},
		"LG-07": func(t *testing.T) {
			r := demoRun.get(t)
			require.Contains(t, r.text(t), "[INFO]  Pipeline started. Run ID: "+r.state(t).text(t, "runId")+"\n")
			require.Contains(t, r.text(t), "[INFO]  Config hash: "+r.state(t).text(t, "configHash")+"\n")
		},
		"LG-09": func(t *testing.T) {
			text := demoRun.get(t).text(t)
			require.Regexp(t,
				`\]  ═{20,}\n\[[^]]+\] \[INFO\]  PASS 35/56: \[S5\] Pass 3/8 — Rotation A — Builder — Grammar`, text)
			require.Equal(t, 56,
				count(text, `\[INFO\]  PASS \d+/56: \[S\d\] Pass \d/8 — Rotation [ABC] — (Builder|Verifier) — `))
		},
		"LG-10": func(t *testing.T) {
			text := demoRun.get(t).text(t)
			require.Equal(t, 35,
				count(text, `\[INFO\]    Artifact backed up to _orchestrator/passes/pass-\d{3}/artifact-backup\.html$`))
			require.Contains(t, text, "  Artifact backed up to _orchestrator/passes/pass-035/artifact-backup.html\n")
			require.NotContains(t, text, "pass-034/artifact-backup.html")
		},
		"LG-11": func(t *testing.T) {
			r := demoRun.get(t)
			for n := 1; n <= 56; n++ {
				chars := len([]rune(r.prompt(t, n)))
				require.Contains(t, section(t, r, n),
					fmt.Sprintf("  Prompt written (%s chars, ~%s tokens)\n", thousands(chars), thousands((chars+2)/4)))
			}
		},
		"LG-12": func(t *testing.T) {
			require.Equal(t, 70, count(demoRun.get(t).text(t), `  Invoking claude -p \(attempt 1/3\)\.\.\.$`))
			text := section(t, troubledRun.get(t), 3)
			require.Regexp(t, `(?s)\(attempt 1/3\)\.\.\..*\(attempt 2/3\)\.\.\.`, text)
			limited := section(t, troubledRun.get(t), 4)
			require.Regexp(t, `(?s)\(attempt 1/3\)\.\.\..*Pipeline waits until .*\(attempt 1/3\)\.\.\.`, limited)
			require.NotContains(t, limited, "(attempt 2/3)", "a limit uses no attempt")
		},
		"LG-13": func(t *testing.T) {
			r := demoRun.get(t)
			for n := 1; n <= 56; n++ {
				chars := len([]rune(string(r.file(t, passDir(n)+"raw-output.txt"))))
				require.Contains(t, section(t, r, n),
					fmt.Sprintf("  Output received (%s chars, ~%s tokens)\n", thousands(chars), thousands((chars+2)/4)))
			}
		},
		"LG-14": func(t *testing.T) {
			for n := 1; n <= 56; n++ {
				want := map[bool]string{true: "4/4", false: "5/5"}[verifies(n)]
				require.Contains(t, section(t, demoRun.get(t), n), "  Validation: PASS ("+want+" checks)\n")
			}
			require.Contains(t, section(t, troubledRun.get(t), 7), "  Validation: FAIL (4/5 checks)\n")
		},
		"LG-15": func(t *testing.T) {
			require.Equal(t, 56, count(demoRun.get(t).text(t),
				`\[INFO\]    Conviction addition appended \([\d,]+ chars\)$`))
			output := regexp.MustCompile(`(?s)CONVICTION_ADDITION_START -->\s*(.*?)\s*<!--`).FindStringSubmatch(
				string(demoRun.get(t).file(t, passDir(35)+"raw-output.txt")))
			require.Contains(t, section(t, demoRun.get(t), 35),
				fmt.Sprintf("  Conviction addition appended (%d chars)\n", len([]rune(output[1]))))
		},
		"LG-16": func(t *testing.T) {
			r := demoRun.get(t)
			require.Equal(t, 2, count(r.text(t), `\[WARN\]    Artifact unchanged$`))
			for n := 1; n <= 56; n++ {
				if verifies(n) || n == 15 || n == 31 {
					require.NotContains(t, section(t, r, n), "Artifact updated", "pass %d", n)
				} else {
					require.Regexp(t, `  Artifact updated \([\d,]+ chars\)\n`, section(t, r, n))
				}
			}
		},
		"LG-17": func(t *testing.T) {
			text := demoRun.get(t).text(t)
			require.Equal(t, 56,
				count(text, `  PASS \d+ COMPLETE in \d+\.\ds \| [\d,]+ in / [\d,]+ out \| \$\d+\.\d\d \| validation: PASS$`))
			tokens := demoRun.get(t).record(t, 35).in(t, "tokens")
			require.Contains(t, text, fmt.Sprintf("%s in / %s out | $%.2f | validation: PASS",
				thousands(int(tokens.number(t, "inputTokens"))),
				thousands(int(tokens.number(t, "outputTokens"))), tokens.number(t, "estimatedCostUsd")))
		},
		"LG-18": func(t *testing.T) {
			require.Equal(t, 1, count(demoRun.get(t).text(t),
				`\[WARN\]    Discovery log entry missing from builder output$`))
			require.Contains(t, section(t, demoRun.get(t), 35), "Discovery log entry missing")
		},
	}
}

// section is what the log says of one numbered pass.
func section(t *testing.T, r result, n int) string {
	t.Helper()
	text := r.text(t)
	total := strconv.Itoa(int(r.state(t).number(t, "totalCorpusPasses")))
	_, from, ok := strings.Cut(text, "PASS "+strconv.Itoa(n)+"/"+total+": ")
	require.True(t, ok, "the log does not begin pass %d", n)
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
