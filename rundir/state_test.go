package rundir_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/rundir"
)

// TestKeysOfState holds state.json to requirement 002 §1, key by key, and to our extra keys, which
// README.md lists.
func TestKeysOfState(t *testing.T) {
	var state map[string]any
	require.NoError(t, json.Unmarshal([]byte(read(t, written(t, whole(t)), rundir.StateFile)), &state))
	ours := "inFlightPACycle openCycle pausedFrom generation sunkCostUsd pendingErrors pendingSpend failedOutputs " +
		"aside turns lastSeq"
	tokens := "inputTokens outputTokens estimatedCostUsd"
	at := func(v any, keys ...string) map[string]any {
		for _, k := range keys {
			if list, ok := v.([]any); ok {
				v = list[0]
			}
			v = v.(map[string]any)[k]
		}
		if list, ok := v.([]any); ok {
			v = list[0]
		}
		return v.(map[string]any)
	}
	cycle := []string{"paCycleRecords", "1"}
	rows := []struct {
		where []string
		keys  string
	}{
		{nil, "schemaVersion runId configHash startedAt lastSavedAt completedAt currentPhase phaseReason " +
			"totalCorpusPasses lastCompletedCorpusPass " +
			"currentSubsetId completedPACycles maxPACycles lastPAScore paScoreThreshold passRecords paCycleRecords " +
			"currentArtifactPath " +
			"currentArtifactHash artifactBackups convictionLayerPath discoveryLogPath convictionEntryCount " +
			"discoveryEntryCount checkpoints cost " +
			"errorHistory inFlightPass " + ours},
		{[]string{"passRecords", "1"},
			"globalPassNumber subsetPassNumber subsetId rotation agentRole description startedAt completedAt " +
				"durationMs " +
				"retryCount promptPath rawOutputPath backupPath artifactPath artifactHash validationPassed " +
				"validationDetails tokens " +
				"hasConvictionAddition hasDiscoveryAddition corpusFilesLoaded referenceFilesLoaded outcome"},
		{[]string{"passRecords", "1", "tokens"}, tokens + " cacheReadTokens cacheWriteTokens"},
		{[]string{"passRecords", "1", "validationDetails"}, "passed checks warnings"},
		{cycle, "cycleNumber startedAt completedAt durationMs screenshotDir screenshotCount auditors weaver refine " +
			"paScore metThreshold totalCycleCostUsd"},
		{append(cycle, "auditors"), "id reportPath tokens durationMs"},
		{append(cycle, "weaver"), "reportPath tokens durationMs"},
		{append(cycle, "refine"), "artifactPath backupPath tokens durationMs validationPassed"},
		{append(cycle, "weaver", "tokens"), tokens},
		{[]string{"checkpoints"},
			"id createdAt atPassNumber atPACycle checkpointDir artifactHash stateHash costAtCheckpoint qualitySnapshot"},
		{[]string{"checkpoints", "qualitySnapshot"},
			"lastPAScore validationFailureCount convictionEntries discoveryEntries"},
		{[]string{"errorHistory"}, "timestamp context category message recovered recoveredAtAttempt diagnostics"},
		{[]string{"cost"},
			"totalInputTokens totalOutputTokens totalCacheReadTokens totalCacheWriteTokens totalEstimatedCostUsd " +
				"byRole bySubset " +
				"byPACycle budgetWarningThresholdUsd budgetHardCapUsd warningThresholdHit hardCapHit"},
		{[]string{"cost", "byRole", "pa"}, "inputTokens outputTokens costUsd passCount"},
	}
	for _, r := range rows {
		require.ElementsMatch(t, strings.Fields(r.keys), slices.Collect(maps.Keys(at(state, r.where...))), "%v",
			r.where)
	}
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, key := range strings.Fields(ours) {
		require.Contains(t, string(page), "`"+key+"`", "every key of ours is documented")
	}
}

// TestTimesAndPaths: every time is UTC, and no path is absolute, so the directory can be moved.
func TestTimesAndPaths(t *testing.T) {
	d := written(t, whole(t))
	text := read(t, d, rundir.StateFile)
	require.NotContains(t, text, d.Root)
	require.NotContains(t, text, `: "/`)
	for _, at := range regexp.MustCompile(`"(?:\w+At|timestamp)": "([^"]*)"`).FindAllStringSubmatch(text, -1) {
		require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`, at[1])
	}
	moved := d.Root + "-moved"
	require.NoError(t, os.Rename(d.Root, moved))
	b, err := rundir.Records(rundir.At(moved))
	require.NoError(t, err)
	for _, name := range b.ArtifactBackups {
		require.FileExists(t, filepath.Join(moved, name))
	}
}
