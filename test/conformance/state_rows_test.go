package conformance

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// topKeys are the keys of state.json in the checklist, ourKeys the others.
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

// recordKeys are the keys of a pass record.
var recordKeys = []string{
	"globalPassNumber", "subsetPassNumber", "subsetId", "rotation", "agentRole", "description", "startedAt",
	"completedAt", "durationMs",
	"retryCount", "promptPath", "rawOutputPath", "backupPath", "artifactPath", "artifactHash", "validationPassed",
	"validationDetails", "tokens",
	"hasConvictionAddition", "hasDiscoveryAddition", "corpusFilesLoaded", "referenceFilesLoaded", "outcome",
}

// stateRows are the content of state.json.
func stateRows() rows {
	return rows{
		"ST-01 ST-07 ST-19 ST-21 ST-26 ST-29 ST-30": func(t *testing.T) {
			r := demoRun.get(t)
			s := r.state(t)
			for key, want := range map[string]any{
				"schemaVersion": 3.0, "completedPACycles": 3.0, "maxPACycles": 6.0, "paScoreThreshold": 3.5,
				"currentArtifactPath": "artifact.html", "convictionEntryCount": 56.0, "discoveryEntryCount": 55.0,
				"convictionLayerPath": "_orchestrator/conviction-layer.md",
				"discoveryLogPath":    "_orchestrator/discovery-log.md",
			} {
				require.Equal(t, want, s.at(t, key), key)
			}
			for path, want := range map[string]int{"convictionLayerPath": 56, "discoveryLogPath": 55} {
				require.Equal(t, want, count(string(r.file(t, s.text(t, path))), "^## Pass "), path)
			}
			require.Equal(t, []any{3.5}, r.seen.values("paScoreThreshold"))
			require.Equal(t, []any{0.0, 1.0, 2.0, 3.0}, r.seen.values("completedPACycles"))
		},
		"ST-02": func(t *testing.T) {
			last, done := "", map[int]int{} // how many checkpoints there were after each number of passes
			for _, o := range demoRun.get(t).seen.states {
				require.GreaterOrEqual(t, o.text(t, "lastSavedAt"), last)
				last = o.text(t, "lastSavedAt")
				done[int(o.number(t, "lastCompletedCorpusPass"))] = len(o.list(t, "checkpoints"))
			}
			for n := 1; n < 56; n++ {
				require.Contains(t, done, n, "no state was saved after pass %d", n)
				require.Equal(t, n/8, done[n], "checkpoints after pass %d", n)
			}
		},
		"ST-03 ST-35": func(t *testing.T) {
			s := demoRun.get(t).seen
			require.Greater(t, len(s.states), 60, "the observer read too little")
			require.Empty(t, s.partial)
			keys := slices.Concat(topKeys, ourKeys)
			for _, o := range s.states {
				require.Subset(t, o.keys(), topKeys)
				require.Subset(t, keys, o.keys())
			}
			for _, r := range []result{demoRun.get(t), recoveredRun.get(t), pausedRun.get(t)} {
				require.ElementsMatch(t, keys, r.state(t).keys(), r.dir)
			}
		},
		"ST-05": func(t *testing.T) {
			r := pausedRun.get(t)
			require.Equal(t, "complete", r.state(t).text(t, "currentPhase"), "the run was moved while it was paused")
			for _, raw := range [][]byte{r.file(t, statePathIn), demoRun.get(t).file(t, statePathIn)} {
				require.NotContains(t, string(raw), base)
				require.NotRegexp(t, `": "/`, string(raw))
			}
		},
		"ST-06": testTimesAreUTC,
		"ST-08 ST-09 ST-11": func(t *testing.T) {
			demo, tiny, resumed := demoRun.get(t).state(t), tinyRun.get(t).state(t), pausedRun.get(t).state(t)
			require.Regexp(t, uuid4, demo.text(t, "runId"))
			require.Regexp(t, uuid4, tiny.text(t, "runId"))
			require.NotEqual(t, demo["runId"], tiny["runId"])
			require.Regexp(t, hash16, tiny.text(t, "configHash"))
			require.Equal(t, tiny["configHash"], resumed["configHash"])
			require.NotEqual(t, tiny["configHash"], demo["configHash"])
			for _, key := range []string{"runId", "startedAt"} {
				require.Equal(t, atPause.state.text(t, key), resumed.text(t, key), key)
				require.Len(t, demoRun.get(t).seen.values(key), 1, key)
			}
		},
		"ST-12": testLastSaved,
		"ST-22 ST-24 ST-25": func(t *testing.T) {
			numbered(t, demoRun.get(t).state(t).in(t, "passRecords"), 56)
			numbered(t, demoRun.get(t).state(t).in(t, "paCycleRecords"), 3)
			for _, r := range []result{demoRun.get(t), recoveredRun.get(t)} {
				for n, v := range r.state(t).in(t, "passRecords") {
					require.ElementsMatch(t, recordKeys, object(v.(map[string]any)).keys(), "record %s", n)
				}
			}
		},
		"ST-23": func(t *testing.T) {
			require.Empty(t, demoRun.get(t).seen.rewrote)
			require.Empty(t, recoveredRun.get(t).seen.rewrote)
			records := pausedRun.get(t).state(t).in(t, "passRecords")
			for n, was := range atPause.state.in(t, "passRecords") {
				require.Equal(t, was, records[n], "record %s", n)
			}
		},
		"ST-27": func(t *testing.T) {
			for _, r := range []result{demoRun.get(t), tinyRun.get(t), recoveredRun.get(t), pausedRun.get(t)} {
				require.Equal(t, digest(r.file(t, "artifact.html")), r.state(t).text(t, "currentArtifactHash"), r.dir)
			}
			require.Greater(t, len(demoRun.get(t).seen.values("currentArtifactHash")), 30,
				"nearly every builder changes it")
		},
		"ST-28": func(t *testing.T) {
			r := demoRun.get(t)
			var backups []string
			for _, b := range r.state(t).list(t, "artifactBackups") {
				backups = append(backups, b.(string))
				require.FileExists(t, r.path(b.(string)))
			}
			require.Len(t, backups, 35+2)
			require.True(t, slices.IsSorted(backups), "oldest first: passes by number, then cycles by number")
			require.Equal(t, []string{"_orchestrator/screenshots/cycle-1/artifact-before-refine.html",
				"_orchestrator/screenshots/cycle-2/artifact-before-refine.html"}, backups[35:])
		},
		"ST-32": func(t *testing.T) {
			require.ElementsMatch(t, []string{
				"totalInputTokens", "totalOutputTokens", "totalCacheReadTokens", "totalCacheWriteTokens",
				"totalEstimatedCostUsd", "byRole", "bySubset",
				"byPACycle", "budgetWarningThresholdUsd", "budgetHardCapUsd", "warningThresholdHit", "hardCapHit",
			}, demoRun.get(t).state(t).in(t, "cost").keys())
		},
	}
}

// positionRows are the position of a run in its plan, as state.json records it.
func positionRows() rows {
	return rows{
		"ST-13 ST-14 ST-15": func(t *testing.T) {
			seen := demoRun.get(t).seen
			for _, o := range seen.states {
				require.Equal(t, o["currentPhase"] == "complete", o["completedAt"] != nil)
			}
			require.Regexp(t, moment, demoRun.get(t).state(t).text(t, "completedAt"))
			require.Equal(t, []any{"corpus-integration", "pa-hardening", "complete"}, seen.values("currentPhase"))
			require.Equal(t, []any{nil}, seen.values("phaseReason"))
			require.Nil(t, pausedRun.get(t).state(t).at(t, "phaseReason"))
			require.Nil(t, atPause.state.at(t, "completedAt"))
			requirePosition(t, atPause.state, "paused", "user-requested")
			budgetRun.get(t)
			requirePosition(t, outOfBudget, "paused", "budget-threshold")
		},
		"ST-16 ST-17": func(t *testing.T) {
			require.Equal(t, []any{56.0}, demoRun.get(t).seen.values("totalCorpusPasses"))
			require.EqualValues(t, 16, tinyRun.get(t).state(t).number(t, "totalCorpusPasses"))
			done := demoRun.get(t).seen.values("lastCompletedCorpusPass")
			require.EqualValues(t, 0, done[0])
			require.EqualValues(t, 56, done[len(done)-1])
			require.True(t, slices.IsSortedFunc(done, func(a, b any) int { return int(a.(float64) - b.(float64)) }))
			resumed := pausedRun.get(t).decisions(t, "execute-pass")
			require.EqualValues(t, 3, atPause.state.number(t, "lastCompletedCorpusPass"))
			require.EqualValues(t, 4, resumed[3].number(t, "passNumber"), "the first pass after the pause")
			require.Len(t, where(resumed, "passNumber", 3.0), 1)
		},
		"ST-18": func(t *testing.T) {
			var sets []any
			for _, o := range demoRun.get(t).seen.states {
				set, done := o["currentSubsetId"], o["lastCompletedCorpusPass"].(float64)
				if set == nil {
					require.Zero(t, int(done)%8, "no set after %v passes", done)
					continue
				}
				require.Equal(t, "corpus-integration", o["currentPhase"])
				sets = append(sets, set)
			}
			require.Equal(t, []any{"S1", "S2", "S3", "S4", "S5", "S6", "S7"}, slices.Compact(sets))
		},
		"ST-20 PC-06": func(t *testing.T) {
			require.Equal(t, []any{nil, 2.5, 3.0, 3.5}, demoRun.get(t).seen.values("lastPAScore"))
			for n, want := range []float64{2.5, 3, 3.5} {
				c := demoRun.get(t).cycle(t, n+1)
				require.Equal(t, want, c.number(t, "paScore"))
				require.Equal(t, want >= 3.5, c.at(t, "metThreshold"))
			}
			unknown := recoveredRun.get(t).cycle(t, 1)
			require.Nil(t, unknown.at(t, "paScore"))
			require.Equal(t, false, unknown.at(t, "metThreshold"))
		},
		"ST-34": func(t *testing.T) {
			pausedRun.get(t)
			mark := atPause.during.in(t, "inFlightPass")
			started := mark.text(t, "startedAt")
			require.Equal(t, object{"agentRole": "builder", "globalPassNumber": 3.0, "startedAt": started,
				"subsetId": "S1"}, mark)
			require.Regexp(t, moment, started)
			require.Nil(t, recoveredRun.get(t).state(t).at(t, "inFlightPass"))
		},
	}
}

// requirePosition requires a phase, a reason and no call in flight.
func requirePosition(t *testing.T, state object, phase, reason string) {
	t.Helper()
	require.Equal(t, phase, state.at(t, "currentPhase"))
	require.Equal(t, reason, state.at(t, "phaseReason"))
	require.Nil(t, state.at(t, "inFlightPass"))
}

func numbered(t *testing.T, o object, n int) {
	t.Helper()
	var want []string
	for i := 1; i <= n; i++ {
		want = append(want, strconv.Itoa(i))
	}
	require.ElementsMatch(t, want, o.keys())
}

// testLastSaved compares lastSavedAt with the time of the newest event in state.json.
func testLastSaved(t *testing.T) {
	r, times := demoRun.get(t), map[any]any{nil: nil}
	for _, e := range lines(t, r.file(t, "events.jsonl")) {
		times[e["seq"]] = e["ts"]
	}
	for _, o := range r.seen.states {
		require.Equal(t, times[o["lastSeq"]], o["lastSavedAt"], "seq %v", o["lastSeq"])
	}
}

// testTimesAreUTC checks every field with the name of a time.
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
	for _, r := range []result{demoRun.get(t), recoveredRun.get(t)} {
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
