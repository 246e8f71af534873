package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// topKeys are the keys of state.json: the checklist's, then ours.
var topKeys = []string{
	"schemaVersion", "runId", "configHash", "startedAt", "lastSavedAt", "completedAt", "currentPhase", "phaseReason",
	"totalCorpusPasses",
	"lastCompletedCorpusPass", "currentSubsetId", "completedPACycles", "maxPACycles", "lastPAScore", "paScoreThreshold",
	"passRecords",
	"paCycleRecords", "currentArtifactPath", "currentArtifactHash", "artifactBackups", "convictionLayerPath",
	"discoveryLogPath",
	"convictionEntryCount", "discoveryEntryCount", "checkpoints", "cost", "errorHistory", "inFlightPass",
}

var ourKeys = []string{
	"inFlightPACycle", "openCycle", "pausedFrom", "generation", "sunkCostUsd", "pendingErrors", "pendingSpend",
	"failedOutputs", "aside", "turns", "lastSeq",
}

// stateRows are what state.json is and holds.
func stateRows() rows {
	return rows{
		"ST-01": func(t *testing.T) { require.FileExists(t, demoRun.get(t).path("_orchestrator/state.json")) },
		"ST-02": testStateIsWrittenOften,
		"ST-03": func(t *testing.T) {
			s := demoRun.get(t).seen
			require.Greater(t, len(s.states), 60, "the watcher saw too little to tell")
			require.Empty(t, s.partial)
			for _, o := range s.states {
				require.Subset(t, o.keys(), topKeys)
			}
		},
		"ST-05": testStateCanBeMoved,
		"ST-06": testTimesAreUTC,
		"ST-07": func(t *testing.T) { require.EqualValues(t, 3, demoRun.get(t).state(t).number(t, "schemaVersion")) },
		"ST-08": func(t *testing.T) {
			demo, again := demoRun.get(t).state(t).text(t, "runId"), againRun.get(t).state(t).text(t, "runId")
			require.Regexp(t, uuid4, demo)
			require.Regexp(t, uuid4, again)
			require.NotEqual(t, demo, again)
			after := restedRun.get(t).state(t)
			require.Equal(t, rest.paused.text(t, "runId"), after.text(t, "runId"))
		},
		"ST-09": func(t *testing.T) {
			hash := againRun.get(t).state(t).text(t, "configHash")
			require.Regexp(t, hash16, hash)
			require.Equal(t, hash, restedRun.get(t).state(t).text(t, "configHash"))
			require.NotEqual(t, hash, demoRun.get(t).state(t).text(t, "configHash"))
		},
		"ST-10": testWhatTheHashCounts,
		"ST-11": func(t *testing.T) {
			after := restedRun.get(t).state(t)
			require.Equal(t, rest.paused.text(t, "startedAt"), after.text(t, "startedAt"))
			require.Len(t, demoRun.get(t).seen.values("startedAt"), 1)
		},
		"ST-12": testLastSaved,
		"ST-22": func(t *testing.T) { numbered(t, demoRun.get(t).state(t).in(t, "passRecords"), 56) },
		"ST-23": func(t *testing.T) {
			require.Empty(t, demoRun.get(t).seen.rewrote)
			require.Empty(t, troubledRun.get(t).seen.rewrote)
			for n, was := range func() object { restedRun.get(t); return rest.paused.in(t, "passRecords") }() {
				require.Equal(t, was, restedRun.get(t).state(t).in(t, "passRecords")[n], "record %s", n)
			}
		},
		"ST-24": testRecordsStandAlone,
		"ST-25": func(t *testing.T) { numbered(t, demoRun.get(t).state(t).in(t, "paCycleRecords"), 3) },
		"ST-26": func(t *testing.T) {
			require.Equal(t, "artifact.html", demoRun.get(t).state(t).text(t, "currentArtifactPath"))
		},
		"ST-27": func(t *testing.T) {
			for _, r := range []result{demoRun.get(t), againRun.get(t), troubledRun.get(t), restedRun.get(t)} {
				require.Equal(t, digest(r.file(t, "artifact.html")), r.state(t).text(t, "currentArtifactHash"), r.dir)
			}
			require.Greater(t, len(demoRun.get(t).seen.values("currentArtifactHash")), 30,
				"it was to change with nearly every builder")
		},
		"ST-28": testBackupsAreListed,
		"ST-29": func(t *testing.T) {
			s := demoRun.get(t).state(t)
			require.Equal(t, "_orchestrator/conviction-layer.md", s.text(t, "convictionLayerPath"))
			require.Equal(t, "_orchestrator/discovery-log.md", s.text(t, "discoveryLogPath"))
		},
		"ST-30": func(t *testing.T) {
			r := demoRun.get(t)
			for path, want := range map[string]float64{"conviction-layer.md": 56, "discovery-log.md": 55} {
				require.EqualValues(t, want, count(string(r.file(t, "_orchestrator/"+path)), "^## Pass "), path)
			}
			require.EqualValues(t, 56, r.state(t).number(t, "convictionEntryCount"))
			require.EqualValues(t, 55, r.state(t).number(t, "discoveryEntryCount"))
		},
		"ST-31": func(t *testing.T) {
			at := ""
			for _, c := range demoRun.get(t).state(t).objects(t, "checkpoints") {
				require.GreaterOrEqual(t, c.text(t, "createdAt"), at)
				at = c.text(t, "createdAt")
			}
			require.NotEmpty(t, at)
		},
		"ST-32": func(t *testing.T) {
			require.ElementsMatch(t, []string{
				"totalInputTokens", "totalOutputTokens", "totalCacheReadTokens", "totalCacheWriteTokens",
				"totalEstimatedCostUsd", "byRole", "bySubset",
				"byPACycle", "budgetWarningThresholdUsd", "budgetHardCapUsd", "warningThresholdHit", "hardCapHit",
			}, demoRun.get(t).state(t).in(t, "cost").keys())
		},
		"ST-33": func(t *testing.T) {
			found := where(troubledRun.get(t).state(t).objects(t, "errorHistory"), "context", "pass-3")
			require.Len(t, found, 1)
			require.Equal(t, true, found[0]["recovered"])
			require.EqualValues(t, 2, found[0]["recoveredAtAttempt"])
		},
		"ST-34": func(t *testing.T) {
			restedRun.get(t)
			require.Equal(t, []string{"agentRole", "globalPassNumber", "startedAt", "subsetId"},
				rest.during.in(t, "inFlightPass").keys())
			require.EqualValues(t, 3, rest.during.number(t, "inFlightPass.globalPassNumber"))
			require.Equal(t, "builder", rest.during.text(t, "inFlightPass.agentRole"))
			require.Equal(t, "S1", rest.during.text(t, "inFlightPass.subsetId"))
			require.Nil(t, rest.paused.at(t, "inFlightPass"))
			require.Nil(t, troubledRun.get(t).state(t).at(t, "inFlightPass"))
		},
		"ST-35": func(t *testing.T) {
			for _, r := range []result{demoRun.get(t), troubledRun.get(t), restedRun.get(t)} {
				require.ElementsMatch(t, slices.Concat(topKeys, ourKeys), r.state(t).keys(),
					"a key that nobody has told of")
			}
		},
	}
}

func numbered(t *testing.T, o object, n int) {
	t.Helper()
	var want []string
	for i := 1; i <= n; i++ {
		want = append(want, strconv.Itoa(i))
	}
	require.ElementsMatch(t, want, o.keys())
}

// testLastSaved compares lastSavedAt with the newest event that state.json holds, and with the file's own time. The
// upper bound leaves room for a slow machine; a time that does not move with every write is beyond it for most of the
// demo.
func testLastSaved(t *testing.T) {
	r := demoRun.get(t)
	events, state := lines(t, r.file(t, "events.jsonl")), r.state(t)
	newest := events[len(events)-1]
	require.Equal(t, []any{newest["seq"], newest["ts"]}, []any{state["lastSeq"], state["lastSavedAt"]})
	off := slices.DeleteFunc(slices.Clone(r.seen.ages),
		func(d time.Duration) bool { return d > -time.Second && d < 10*time.Second })
	require.Less(t, len(off)*20, len(r.seen.ages), "state.json was often written long after lastSavedAt: %v", off)
	fi, err := os.Stat(r.path(statePathIn))
	require.NoError(t, err)
	require.WithinDuration(t, when(t, state.text(t, "lastSavedAt")), fi.ModTime(), 10*time.Second)
}

func testStateIsWrittenOften(t *testing.T) {
	s := demoRun.get(t).seen
	if !s.kernel.works {
		t.Skip("only Linux tells how often a file was replaced")
	}
	require.GreaterOrEqual(t, s.kernel.renamed, 56+7+3+2, "each pass, each set, each cycle, start and end")
	last, done := "", map[int]int{} // how many checkpoints there were when so many passes were done
	for _, o := range s.states {
		require.GreaterOrEqual(t, o.text(t, "lastSavedAt"), last)
		last = o.text(t, "lastSavedAt")
		done[int(o.number(t, "lastCompletedCorpusPass"))] = len(o.list(t, "checkpoints"))
	}
	for n := 1; n < 56; n++ {
		require.Contains(t, done, n, "no state was saved after pass %d", n)
		require.Equal(t, n/8, done[n], "checkpoints after pass %d", n)
	}
}

func testStateCanBeMoved(t *testing.T) {
	r := restedRun.get(t)
	require.Equal(t, "complete", r.state(t).text(t, "currentPhase"), "the run was moved while it rested")
	for _, raw := range [][]byte{r.file(t, statePathIn), demoRun.get(t).file(t, statePathIn)} {
		require.NotContains(t, string(raw), base)
		require.NotRegexp(t, regexp.MustCompile(`": "/`), string(raw))
	}
}

// testTimesAreUTC looks at every field whose name says that it is a time.
func testTimesAreUTC(t *testing.T) {
	n := 0
	var look func(key string, v any)
	look = func(key string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, below := range v {
				look(k, below)
			}
		case []any:
			for _, below := range v {
				look(key, below)
			}
		case string:
			if strings.HasSuffix(key, "At") || key == "ts" || key == "timestamp" {
				n++
				require.Regexp(t, moment, v, key)
			}
		}
	}
	for _, r := range []result{demoRun.get(t), troubledRun.get(t)} {
		look("", map[string]any(r.state(t)))
		for _, name := range []string{"decisions", "errors", "cost", "quality", "passes"} {
			for _, row := range r.log(t, name+".jsonl") {
				require.Contains(t, row.keys(), "ts")
				look("", map[string]any(row))
			}
		}
	}
	require.Greater(t, n, 400)
}

// testWhatTheHashCounts edits the definition in many ways and asks for its hash.
func testWhatTheHashCounts(t *testing.T) {
	hash := func(t *testing.T, config string) string {
		t.Helper()
		var plan struct {
			Hash string `json:"config_hash"`
		}
		require.NoError(t, json.Unmarshal([]byte(starter(t, "plan", "--json", config)), &plan))
		require.Regexp(t, hash16, plan.Hash)
		return plan.Hash
	}
	plain := hash(t, example("corpus-tiny.yaml"))
	for name, row := range map[string]struct {
		from, to string
		other    bool
	}{
		"a file less": {"      - R5: research/combination-theory.md\n", "", true},
		"another order": {"- R1: research/documentation-patterns.md\n      - R2: research/creative-layouts.md",
			"- R2: research/creative-layouts.md\n      - R1: research/documentation-patterns.md", true},
		"another rhythm":       {"      - {role: verifier, order: C}\n", "", true},
		"another rotation":     {"2/5", "1/5", true},
		"another model":        {"run: [scripted]", "run: [claude, -p, --model, other]", true},
		"another seed":         {"seed: seed/page.html", "seed: _content.md", true},
		"another content file": {"Content: _content.md", "Content: research/synthesis.md", true},
		"another budget":       {"usd: 2", "usd: 3", false},
		"another timeout":      {"timeout: 10m", "timeout: 9m", false},
		"another threshold":    {"score >= 3", "score >= 2.5", false},
		"more cycles":          {"max: 2", "max: 3", false},
	} {
		t.Run(name, func(t *testing.T) {
			config := copyExample(t, filepath.Join("hash", strings.ReplaceAll(name, " ", "-")), row.from, row.to)
			require.Equal(t, row.other, hash(t, config) != plain)
		})
	}
}

func testRecordsStandAlone(t *testing.T) {
	want := []string{
		"globalPassNumber", "subsetPassNumber", "subsetId", "rotation", "agentRole", "description", "startedAt",
		"completedAt", "durationMs",
		"retryCount", "promptPath", "rawOutputPath", "backupPath", "artifactPath", "artifactHash", "validationPassed",
		"validationDetails", "tokens",
		"hasConvictionAddition", "hasDiscoveryAddition", "corpusFilesLoaded", "referenceFilesLoaded", "outcome",
	}
	for _, r := range []result{demoRun.get(t), troubledRun.get(t)} {
		for n, v := range r.state(t).in(t, "passRecords") {
			require.ElementsMatch(t, want, object(v.(map[string]any)).keys(), "record %s", n)
		}
	}
}

func testBackupsAreListed(t *testing.T) {
	r := demoRun.get(t)
	var backups []string
	for _, b := range r.state(t).list(t, "artifactBackups") {
		backups = append(backups, b.(string))
		require.FileExists(t, r.path(b.(string)))
	}
	require.Len(t, backups, 35+2)
	require.True(t, slices.IsSorted(backups), "oldest first: passes by number, then cycles by number")
	for n, before := range []string{"_orchestrator/screenshots/cycle-1/artifact-before-refine.html",
		"_orchestrator/screenshots/cycle-2/artifact-before-refine.html"} {
		require.Equal(t, before, backups[35+n])
	}
}
