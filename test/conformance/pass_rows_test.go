package conformance

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The corpus pipeline as the checklist tells it: sets with the labels of their files, and the eight passes of a set.
var (
	setLabels = [][]string{
		{"R1", "R2", "R3", "R4", "R5"},
		{"Synthesis", "DD-003", "DD-004", "DD-006", "DD-Synth"},
		{"OD-001", "OD-004", "OD-006", "OD-Spec", "OD-Synth"},
		{"AD-Spec", "AD-Synth", "CD-001", "CD-006", "CD-Vision"},
		{"Mechanisms", "Rules", "Combinations", "Borders", "SemanticRules"},
		{"TensionProto", "StrategyLib", "TC-Skill", "Soul", "World"},
		{"CD-005", "TC-Additions", "PA-Additions", "DS-README", "Responsive"},
	}
	themes = []string{
		"Research + Density Direction", "Research Synthesis + DD Case Studies", "Organization Domain",
		"Axis Domain + CD Context",
		"Grammar + Compositional Rules", "Pipeline Philosophy + Skills", "Calibration + Crown Jewels",
	}
	rotations      = []string{"A", "A", "A", "B", "B", "B", "C", "C"}
	rotationLabels = map[string]string{"A": "Base ordering", "B": "Mid files promoted", "C": "Last files promoted"}
	shifts         = map[string]int{"A": 0, "B": 2, "C": 4}
)

func verifies(n int) bool { return (n-1)%8 == 1 || (n-1)%8 == 4 || (n-1)%8 == 7 }

func roleOf(n int) string {
	if verifies(n) {
		return "verifier"
	}
	return "builder"
}

// labelsOf are the files of a pass in reading order.
func labelsOf(n int) []any {
	set, shift := setLabels[(n-1)/8], shifts[rotations[(n-1)%8]]
	var out []any
	for i := range set {
		out = append(out, set[(i+shift)%len(set)])
	}
	return out
}

// eachRecord looks at all 56 records of the demo.
func eachRecord(t *testing.T, look func(n int, rec object)) {
	t.Helper()
	s := demoRun.get(t).state(t)
	for n := 1; n <= 56; n++ {
		look(n, s.in(t, "passRecords."+strconv.Itoa(n)))
	}
}

// recordRows are the records of the passes.
func recordRows() rows {
	return rows{
		"PR-01": func(t *testing.T) {
			eachRecord(t, func(n int, rec object) {
				set, in := (n-1)/8, (n-1)%8
				require.EqualValues(t, n, rec.number(t, "globalPassNumber"))
				require.EqualValues(t, in+1, rec.number(t, "subsetPassNumber"))
				require.Equal(t, fmt.Sprintf("S%d", set+1), rec.text(t, "subsetId"))
				require.Equal(t, rotations[in], rec.text(t, "rotation"))
				require.Equal(t, roleOf(n), rec.text(t, "agentRole"))
				title := map[bool]string{true: "Verifier", false: "Builder"}[verifies(n)]
				require.Equal(t, fmt.Sprintf("[S%d] Pass %d/8 — Rotation %s (%s) — %s — %s", set+1, in+1, rotations[in],
					rotationLabels[rotations[in]], title, themes[set]),
					rec.text(t, "description"))
			})
		},
		"PR-02": func(t *testing.T) {
			last := ""
			eachRecord(t, func(n int, rec object) {
				took := elapsed(t, rec.text(t, "startedAt"), rec.text(t, "completedAt"))
				require.InDelta(t, rec.number(t, "durationMs"), took.Milliseconds(), 1, "pass %d", n)
				require.GreaterOrEqual(t, rec.text(t, "startedAt"), last)
				last = rec.text(t, "completedAt")
			})
		},
		"PR-03": func(t *testing.T) {
			eachRecord(t, func(n int, rec object) { require.Zero(t, rec.number(t, "retryCount"), "pass %d", n) })
			for n := 1; n <= 16; n++ {
				want := map[int]int{3: 1, 9: 1, 10: 1, 11: 1}[n]
				require.EqualValues(t, want, troubledRun.get(t).record(t, n).number(t, "retryCount"), "pass %d", n)
			}
		},
		"PR-04": func(t *testing.T) {
			r := demoRun.get(t)
			eachRecord(t, func(n int, rec object) {
				require.Equal(t, passDir(n)+"prompt.md", rec.text(t, "promptPath"))
				require.Equal(t, passDir(n)+"raw-output.txt", rec.text(t, "rawOutputPath"))
				require.NotEmpty(t, r.file(t, rec.text(t, "promptPath")))
				require.NotEmpty(t, r.file(t, rec.text(t, "rawOutputPath")))
			})
			require.Empty(t, r.seen.gone())
		},
		"PR-05": func(t *testing.T) {
			eachRecord(t, func(n int, rec object) {
				if verifies(n) {
					require.Nil(t, rec.at(t, "backupPath"), "pass %d", n)
					return
				}
				require.Equal(t, passDir(n)+"artifact-backup.html", rec.text(t, "backupPath"))
				require.FileExists(t, demoRun.get(t).path(rec.text(t, "backupPath")))
			})
		},
		"PR-06": func(t *testing.T) {
			last := ""
			eachRecord(t, func(n int, rec object) {
				if verifies(n) {
					require.Nil(t, rec.at(t, "artifactPath"))
					require.Nil(t, rec.at(t, "artifactHash"))
					return
				}
				require.Equal(t, "artifact.html", rec.text(t, "artifactPath"))
				if last != "" {
					require.Equal(t, last, digest(demoRun.get(t).file(t, rec.text(t, "backupPath"))),
						"the backup of pass %d", n)
				}
				last = rec.text(t, "artifactHash")
				require.Regexp(t, hash64, last)
			})
		},
		"PR-07": testValidation,
		"PR-08": testTokens,
		"PR-09": func(t *testing.T) {
			eachRecord(t, func(n int, rec object) {
				require.Equal(t, true, rec.at(t, "hasConvictionAddition"), "pass %d", n)
				require.Equal(t, n != 35, rec.at(t, "hasDiscoveryAddition"), "pass %d", n)
			})
		},
		"PR-10": func(t *testing.T) {
			eachRecord(t, func(n int, rec object) {
				require.Equal(t, labelsOf(n), rec.list(t, "corpusFilesLoaded"),
					"pass %d", n)
			})
			require.Equal(t, []any{"Combinations", "Borders", "SemanticRules", "Mechanisms", "Rules"},
				demoRun.get(t).record(t, 36).list(t, "corpusFilesLoaded"))
		},
		"PR-11": func(t *testing.T) {
			eachRecord(t, func(n int, rec object) {
				require.Equal(t, []any{"World Description", "Conviction Brief", "Mechanism Catalog", "Components CSS",
					"Design Tokens"}, rec.list(t, "referenceFilesLoaded"))
			})
		},
	}
}

func testValidation(t *testing.T) {
	names := map[string][]string{
		"builder":  {"non-empty", "minimum-length", "html-present", "html-complete", "container-width"},
		"verifier": {"non-empty", "minimum-length", "has-observations", "no-html-artifact"},
	}
	eachRecord(t, func(n int, rec object) {
		require.Equal(t, true, rec.at(t, "validationPassed"))
		require.Equal(t, true, rec.at(t, "validationDetails.passed"))
		require.Len(t, rec.list(t, "validationDetails.warnings"), map[bool]int{true: 1, false: 0}[n == 35])
		var found []string
		for _, c := range rec.objects(t, "validationDetails.checks") {
			require.Equal(t, true, c["passed"])
			found = append(found, c.text(t, "name"))
		}
		require.Equal(t, names[rec.text(t, "agentRole")], found)
	})
	wide := troubledRun.get(t).record(t, 7)
	require.Equal(t, false, wide.at(t, "validationPassed"))
	require.Equal(t, false, wide.at(t, "validationDetails.passed"))
	failed := where(wide.objects(t, "validationDetails.checks"), "passed", false)
	require.Len(t, failed, 1)
	require.Equal(t, "container-width", failed[0].text(t, "name"))
	require.Contains(t, failed[0].text(t, "detail"), "800")
}

// testTokens compares with what the built-in agent reports: a quarter of the characters of prompt and reply, at 15 and
// 75 dollars a million.
func testTokens(t *testing.T) {
	r := demoRun.get(t)
	eachRecord(t, func(n int, rec object) {
		in, out := quarter(r.prompt(t, n)), quarter(string(r.file(t, passDir(n)+"raw-output.txt")))
		require.EqualValues(t, in, rec.number(t, "tokens.inputTokens"), "pass %d", n)
		require.EqualValues(t, out, rec.number(t, "tokens.outputTokens"), "pass %d", n)
		require.Zero(t, rec.number(t, "tokens.cacheReadTokens"))
		require.Zero(t, rec.number(t, "tokens.cacheWriteTokens"))
		require.InDelta(t, float64(in)*15e-6+float64(out)*75e-6, rec.number(t, "tokens.estimatedCostUsd"), 1e-6)
	})
}

func quarter(text string) int { return (len([]rune(text)) + 2) / 4 }

// cycleRows are the records of the cycles.
func cycleRows() rows {
	return rows{
		"PC-01": func(t *testing.T) {
			for n := 1; n <= 3; n++ {
				c := demoRun.get(t).cycle(t, n)
				require.EqualValues(t, n, c.number(t, "cycleNumber"))
				require.EqualValues(t, elapsed(t, c.text(t, "startedAt"), c.text(t, "completedAt")).Milliseconds(),
					c.number(t, "durationMs"))
			}
		},
		"PC-02": func(t *testing.T) {
			for n := 1; n <= 3; n++ {
				c := demoRun.get(t).cycle(t, n)
				require.Equal(t, fmt.Sprintf("_orchestrator/screenshots/cycle-%d", n), c.text(t, "screenshotDir"))
				require.EqualValues(t, len(pictures(t, demoRun.get(t), n)), c.number(t, "screenshotCount"))
			}
		},
		"PC-03": func(t *testing.T) {
			for n := 1; n <= 3; n++ {
				auditors := demoRun.get(t).cycle(t, n).objects(t, "auditors")
				require.Len(t, auditors, 3)
				for i, a := range auditors {
					require.Equal(t, "auditor-"+string(rune('A'+i)), a.text(t, "id"))
					reported(t, demoRun.get(t), a)
				}
			}
		},
		"PC-04": func(t *testing.T) {
			for n := 1; n <= 3; n++ {
				reported(t, demoRun.get(t), demoRun.get(t).cycle(t, n).in(t, "weaver"))
			}
		},
		"PC-05": testRefine,
		"PC-06": func(t *testing.T) {
			for n, want := range []float64{2.5, 3, 3.5} {
				c := demoRun.get(t).cycle(t, n+1)
				require.Equal(t, want, c.number(t, "paScore"))
				require.Equal(t, want >= 3.5, c.at(t, "metThreshold"))
			}
			unknown := troubledRun.get(t).cycle(t, 1)
			require.Nil(t, unknown.at(t, "paScore"))
			require.Equal(t, false, unknown.at(t, "metThreshold"))
		},
		"PC-07": func(t *testing.T) {
			for _, r := range []result{demoRun.get(t), troubledRun.get(t)} {
				for n, v := range r.state(t).in(t, "paCycleRecords") {
					c, total := object(v.(map[string]any)), 0.0
					for _, a := range c.objects(t, "auditors") {
						total += a.number(t, "tokens.estimatedCostUsd")
					}
					for _, one := range []string{"weaver", "refine"} {
						if c.at(t, one) != nil {
							total += c.number(t, one+".tokens.estimatedCostUsd")
						}
					}
					require.InDelta(t, total, c.number(t, "totalCycleCostUsd"), 1e-6, "cycle %s of %s", n, r.dir)
				}
			}
		},
		"PX-13": func(t *testing.T) {
			r := troubledRun.get(t)
			for _, a := range r.cycle(t, 2).objects(t, "auditors") {
				require.GreaterOrEqual(t, a.number(t, "durationMs"), 1000*auditSeconds, "the time of the agent")
			}
			var order []any
			for _, c := range r.calls {
				if at := c.text(t, "at"); strings.HasPrefix(at, "auditor-") && strings.HasSuffix(at, "-2") {
					order = append(order, c["event"])
				}
			}
			require.Equal(t, []any{"start", "start", "start", "answered", "answered", "answered"}, order,
				"all three are asked before the first one answers")
		},
		"PX-14": func(t *testing.T) {
			r := troubledRun.get(t)
			folder := "_orchestrator/screenshots/cycle-1/"
			for _, who := range []string{"auditor-A", "auditor-C"} {
				require.NotEmpty(t, r.file(t, folder+who+"-report.md"))
			}
			require.NoFileExists(t, r.path(folder+"auditor-B-report.md"))
			lost := where(r.state(t).objects(t, "errorHistory"), "context", "pa-cycle-1-auditor-B")
			require.Len(t, lost, 1)
			require.Equal(t, false, lost[0]["recovered"])
			require.Equal(t, 1,
				count(r.text(t),
					`\[WARN\]    pa-cycle-1-auditor-B given up \(claude-p-exit-nonzero\); the run continues with the other reports$`))
			score := where(where(r.log(t, "quality.jsonl"), "type", "pa-score"), "paCycle", 1.0)
			require.EqualValues(t, 2, score[0].number(t, "auditorCount"))
			require.NotRegexp(t, regexp.MustCompile(`auditor-B-report`), string(r.file(t, folder+"weaver-prompt.md")))
		},
	}
}

// reported wants a call of a cycle that is told in full, its report on disk.
func reported(t *testing.T, r result, call object) {
	t.Helper()
	require.NotEmpty(t, r.file(t, call.text(t, "reportPath")))
	require.Subset(t, call.in(t, "tokens").keys(), []string{"estimatedCostUsd", "inputTokens", "outputTokens"})
	require.Positive(t, call.number(t, "tokens.inputTokens"))
	require.Positive(t, call.number(t, "tokens.outputTokens"))
	require.Positive(t, call.number(t, "tokens.estimatedCostUsd"))
	require.GreaterOrEqual(t, call.number(t, "durationMs"), 0.0)
}

func testRefine(t *testing.T) {
	for n := 1; n <= 2; n++ {
		refine := demoRun.get(t).cycle(t, n).in(t, "refine")
		require.Equal(t, "artifact.html", refine.text(t, "artifactPath"))
		require.Equal(t, fmt.Sprintf("_orchestrator/screenshots/cycle-%d/artifact-before-refine.html", n),
			refine.text(t, "backupPath"))
		require.Equal(t, true, refine.at(t, "validationPassed"))
		require.Positive(t, refine.number(t, "tokens.estimatedCostUsd"))
		require.GreaterOrEqual(t, refine.number(t, "durationMs"), 0.0)
	}
	require.Nil(t, demoRun.get(t).cycle(t, 3).at(t, "refine"))
	failed := troubledRun.get(t).cycle(t, 1).in(t, "refine")
	require.Nil(t, failed.at(t, "artifactPath"))
	require.Equal(t, false, failed.at(t, "validationPassed"))
}
