package conformance

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The corpus pipeline by the checklist: sets with the labels of their files, and the eight passes of a set.
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

// labelsOf returns the labels of the files of a pass, in reading order.
func labelsOf(n int) []any {
	set, shift := setLabels[(n-1)/8], shifts[rotations[(n-1)%8]]
	var out []any
	for i := range set {
		out = append(out, set[(i+shift)%len(set)])
	}
	return out
}

// eachRecord calls a function with each record of the demo.
func eachRecord(t *testing.T, check func(n int, rec object)) {
	t.Helper()
	s := demoRun.get(t).state(t)
	for n := 1; n <= 56; n++ {
		check(n, s.in(t, "passRecords."+strconv.Itoa(n)))
	}
}

func titleOf(n int) string { return map[bool]string{true: "Verifier", false: "Builder"}[verifies(n)] }

// recordOf returns what the checklist prescribes for the record of a pass of the demo.
func recordOf(n int) object {
	set, in := (n-1)/8, (n-1)%8
	rec := object{
		"globalPassNumber": float64(n), "subsetPassNumber": float64(in + 1), "subsetId": fmt.Sprintf("S%d", set+1),
		"rotation": rotations[in], "agentRole": roleOf(n), "retryCount": 0.0, "validationPassed": true,
		"description": fmt.Sprintf("[S%d] Pass %d/8 — Rotation %s (%s) — %s — %s", set+1, in+1, rotations[in],
			rotationLabels[rotations[in]], titleOf(n), themes[set]),
		"promptPath": passDir(n) + "prompt.md", "rawOutputPath": passDir(n) + "raw-output.txt",
		"backupPath": passDir(n) + "artifact-backup.html", "artifactPath": "artifact.html",
		"hasConvictionAddition": true, "hasDiscoveryAddition": n != 35, "corpusFilesLoaded": labelsOf(n),
		"referenceFilesLoaded": []any{"World Description", "Conviction Brief", "Mechanism Catalog", "Components CSS",
			"Design Tokens"},
	}
	if verifies(n) {
		rec["backupPath"], rec["artifactPath"], rec["artifactHash"] = nil, nil, nil
	}
	return rec
}

// passRows are the records of the passes.
func passRows() rows {
	return rows{
		"PR-01 PR-03 PR-04 PR-05 PR-09 PR-10 PR-11": func(t *testing.T) {
			eachRecord(t, func(n int, rec object) {
				for key, want := range recordOf(n) {
					require.Equal(t, want, rec.at(t, key), "%s of pass %d", key, n)
				}
			})
			for n := 1; n <= 16; n++ {
				want := map[int]int{3: 1, 9: 1, 10: 1, 11: 1}[n]
				require.EqualValues(t, want, recoveredRun.get(t).record(t, n).number(t, "retryCount"), "pass %d", n)
			}
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
		"PR-06 BR-01": func(t *testing.T) {
			last := digest(read(t, example("seed/page.html")))
			eachRecord(t, func(n int, rec object) {
				if !verifies(n) {
					require.Equal(t, last, digest(demoRun.get(t).file(t, rec.text(t, "backupPath"))), "pass %d", n)
					last = rec.text(t, "artifactHash")
				}
			})
		},
		"PR-07": testValidation,
		"PR-08": testTokens,
	}
}

// testValidation compares the checks of all passes, and of one that fails a check.
func testValidation(t *testing.T) {
	names := map[string][]string{
		"builder":  {"non-empty", "minimum-length", "html-present", "html-complete", "container-width"},
		"verifier": {"non-empty", "minimum-length", "has-observations", "no-html-artifact"},
	}
	eachRecord(t, func(n int, rec object) {
		require.Equal(t, true, rec.at(t, "validationDetails.passed"))
		require.Len(t, rec.list(t, "validationDetails.warnings"), map[bool]int{true: 1, false: 0}[n == 35])
		var found []string
		for _, c := range rec.objects(t, "validationDetails.checks") {
			require.Equal(t, true, c["passed"])
			found = append(found, c.text(t, "name"))
		}
		require.Equal(t, names[rec.text(t, "agentRole")], found)
	})
	wide := recoveredRun.get(t).record(t, 7)
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
		"PC-01 PC-02": func(t *testing.T) {
			for n := 1; n <= 3; n++ {
				c := demoRun.get(t).cycle(t, n)
				require.EqualValues(t, n, c.number(t, "cycleNumber"))
				require.EqualValues(t, elapsed(t, c.text(t, "startedAt"), c.text(t, "completedAt")).Milliseconds(),
					c.number(t, "durationMs"))
				require.Equal(t, fmt.Sprintf("_orchestrator/screenshots/cycle-%d", n), c.text(t, "screenshotDir"))
				require.EqualValues(t, len(pictures(t, demoRun.get(t), n)), c.number(t, "screenshotCount"))
			}
		},
		"PC-03 PC-04": func(t *testing.T) {
			for n := 1; n <= 3; n++ {
				c := demoRun.get(t).cycle(t, n)
				auditors := c.objects(t, "auditors")
				require.Len(t, auditors, 3)
				for i, a := range auditors {
					require.Equal(t, "auditor-"+string(rune('A'+i)), a.text(t, "id"))
					requireReport(t, demoRun.get(t), a)
				}
				requireReport(t, demoRun.get(t), c.in(t, "weaver"))
			}
		},
		"PC-05 BR-02": testRefine,
		"PC-07": func(t *testing.T) {
			for _, r := range []result{demoRun.get(t), recoveredRun.get(t)} {
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
			r := recoveredRun.get(t)
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
			r := recoveredRun.get(t)
			folder := "_orchestrator/screenshots/cycle-1/"
			for _, who := range []string{"auditor-A", "auditor-C"} {
				require.NotEmpty(t, r.file(t, folder+who+"-report.md"))
			}
			require.NoFileExists(t, r.path(folder+"auditor-B-report.md"))
			lost := where(r.state(t).objects(t, "errorHistory"), "context", "pa-cycle-1-auditor-B")
			require.Len(t, lost, 1)
			require.Equal(t, false, lost[0]["recovered"])
			require.Equal(t, "claude-p-exit-nonzero", lost[0]["category"])
			score := where(where(r.log(t, "quality.jsonl"), "type", "pa-score"), "paCycle", 1.0)
			require.EqualValues(t, 2, score[0].number(t, "auditorCount"))
			require.NotContains(t, string(r.file(t, folder+"weaver-prompt.md")), "auditor-B-report")
		},
	}
}

// requireReport requires a complete record of a call of a cycle, and its report on disk.
func requireReport(t *testing.T, r result, call object) {
	t.Helper()
	require.NotEmpty(t, r.file(t, call.text(t, "reportPath")))
	require.GreaterOrEqual(t, call.number(t, "durationMs"), 0.0)
	for _, key := range []string{"inputTokens", "outputTokens", "estimatedCostUsd"} {
		require.Positive(t, call.number(t, "tokens."+key), key)
	}
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
	r := demoRun.get(t)
	require.Equal(t, r.record(t, 55).text(t, "artifactHash"),
		digest(r.file(t, "_orchestrator/screenshots/cycle-1/artifact-before-refine.html")))
	require.FileExists(t, r.path("_orchestrator/screenshots/cycle-2/artifact-before-refine.html"))
	require.NoFileExists(t, r.path("_orchestrator/screenshots/cycle-3/artifact-before-refine.html"))
	require.Nil(t, r.cycle(t, 3).at(t, "refine"))
	failed := recoveredRun.get(t).cycle(t, 1).in(t, "refine")
	require.Nil(t, failed.at(t, "artifactPath"))
	require.Equal(t, false, failed.at(t, "validationPassed"))
}
