package fsck_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/records"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestKeysOfState holds state.json to requirement 002 §1, key by key, and to our extra keys, which
// docs/run-directory.md lists.
func TestKeysOfState(t *testing.T) {
	var state map[string]any
	require.NoError(t, json.Unmarshal([]byte(look(t, written(t, whole(t)))[layout.StateFile]), &state))
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
	page, err := os.ReadFile("../../docs/run-directory.md")
	require.NoError(t, err)
	for _, key := range strings.Fields(ours) {
		require.Contains(t, string(page), "`"+key+"`", "every key of ours is documented")
	}
}

// TestRecords holds every record against the files it names and the totals it adds up to.
func TestRecords(t *testing.T) {
	d := written(t, whole(t))
	b, err := records.State(d.Dir)
	require.NoError(t, err)
	require.Equal(t, "complete", b.CurrentPhase)
	require.NotNil(t, b.CompletedAt)
	require.Len(t, b.PassRecords, 4)

	sum := 0.0
	for key, r := range b.PassRecords {
		require.Equal(t, key, fmt.Sprint(r.GlobalPassNumber))
		sum += r.Tokens.EstimatedCostUSD
		exist(t, d, r.PromptPath, r.RawOutputPath)
		require.Equal(t, r.AgentRole == "builder", r.BackupPath != nil)
		require.Equal(t, r.AgentRole == "builder" && r.Outcome == "ok", r.ArtifactPath != nil && r.ArtifactHash != nil)
	}
	for _, c := range b.PACycleRecords {
		cycle := c.Weaver.Tokens.EstimatedCostUSD
		for _, a := range c.Auditors {
			cycle += a.Tokens.EstimatedCostUSD
			exist(t, d, a.ReportPath)
		}
		if c.Refine != nil {
			cycle += c.Refine.Tokens.EstimatedCostUSD
			exist(t, d, c.Refine.BackupPath)
		}
		exist(t, d, c.Weaver.ReportPath, path.Join(c.ScreenshotDir, "full-10x10.png"))
		require.InDelta(t, cycle, c.TotalCycleCostUSD, 1e-6)
		sum += cycle
	}
	exist(t, d, b.ArtifactBackups...)
	exist(t, d, b.CurrentArtifactPath, b.ConvictionLayerPath)
	require.InDelta(t, sum, b.Cost.TotalEstimatedCostUSD, 1e-6, "failed attempts are in the records")
	require.Equal(t, hash(t, d, b.CurrentArtifactPath), b.CurrentArtifactHash)

	require.Equal(t, []int{2, 2, 7}, []int{b.Cost.ByRole["builder"].PassCount, b.Cost.ByRole["verifier"].PassCount,
		b.Cost.ByRole["pa"].PassCount})
	require.Nil(t, b.PACycleRecords["2"].Refine, "the score was met")
	require.False(t, b.PACycleRecords["1"].MetThreshold)
	require.True(t, b.PACycleRecords["2"].MetThreshold)
	require.Equal(t, "_orchestrator/passes/pass-003/raw-output-FAILED.txt", b.PassRecords["3"].RawOutputPath)
	require.Equal(t, 1, b.PassRecords["2"].RetryCount)
	require.InDelta(t, 0.5, b.PassRecords["2"].Tokens.EstimatedCostUSD, 1e-6, "both attempts")
}

// TestErrors: an error is written into the history when it is known whether a later attempt recovered it.
func TestErrors(t *testing.T) {
	b, err := records.State(written(t, whole(t)).Dir)
	require.NoError(t, err)
	type seen struct {
		context   string
		recovered bool
		at        int
	}
	var got []seen
	for _, e := range b.ErrorHistory {
		at := 0
		if e.RecoveredAtAttempt != nil {
			at = *e.RecoveredAtAttempt
		}
		got = append(got, seen{e.Context, e.Recovered, at})
	}
	require.Equal(t, []seen{
		{"pass-2", true, 2}, {"pass-3", false, 0},
		{"pa-cycle-1-auditor-A", true, 2}, {"pa-cycle-1-auditor-B", true, 2}, {"pa-cycle-2-auditor-A", true, 2},
		{"pa-cycle-2-auditor-B", true, 2},
	}, got)
	require.Empty(t, b.PendingErrors)
	require.Empty(t, b.PendingSpend)

	for name, end := range map[string]func(s *story){
		"a pause because of the pass": func(s *story) {
			s.add(run.KindRunPaused,
				run.RunPaused{Reason: run.PassFailed})
		},
		"the end of the run": func(s *story) {
			s.add(run.KindRunEnd,
				run.RunEnd{Status: run.Failed, Reason: "it failed"})
		},
	} {
		s := newStory(t)
		s.start()
		s.begin(about(1), 1)
		s.fail(about(1), 1)
		end(s)
		s.send()
		b, err := records.State(written(t, s).Dir)
		require.NoError(t, err)
		require.Equal(t, "pass-1", b.ErrorHistory[0].Context, name)
		require.False(t, b.ErrorHistory[0].Recovered, name)
		require.Empty(t, b.PendingErrors, name)
		require.Len(t, b.PendingSpend, 1, "%s: the cost waits for the pass to be done again", name)
		require.Nil(t, b.InFlightPass, name)
	}
}

// TestPhases is requirement 002's currentPhase, and what it says about a run that rests or ended.
func TestPhases(t *testing.T) {
	s := newStory(t)
	s.start()
	s.begin(about(1), 1)
	d := projector.At(t.TempDir())
	project(t, d, s, s.batches...)
	b, err := records.State(d.Dir)
	require.NoError(t, err)
	require.Equal(t, "write", b.CurrentPhase)
	require.Equal(t, &rundir.InFlightPass{GlobalPassNumber: 1, StartedAt: b.LastSavedAt, AgentRole: "builder",
		SubsetID: "S1"}, b.InFlightPass)

	s.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
	s.send()
	project(t, d, s, s.batches[len(s.batches)-1])
	b, err = records.State(d.Dir)
	require.NoError(t, err)
	require.Equal(t, []any{"paused", "user-requested", "write"}, []any{b.CurrentPhase, *b.PhaseReason, *b.PausedFrom})
	require.Nil(t, b.InFlightPass)
}

// TestCheckpointDirectory verifies both hashes, and that the snapshot is the state before the checkpoint.
func TestCheckpointDirectory(t *testing.T) {
	s := whole(t)
	d := written(t, s)
	b, err := records.State(d.Dir)
	require.NoError(t, err)
	require.Len(t, b.Checkpoints, 4)
	for _, c := range b.Checkpoints {
		require.Equal(t, c.ArtifactHash, hash(t, d, path.Join(c.CheckpointDir, "artifact.html")))
		require.Equal(t, c.StateHash, hash(t, d, path.Join(c.CheckpointDir, "state-snapshot.json")))
		exist(t, d, path.Join(c.CheckpointDir, "conviction-layer.md"))
		var manifest rundir.CheckpointRecord
		parse(t, d, path.Join(c.CheckpointDir, "manifest.json"), &manifest)
		require.Equal(t, c, manifest)
	}
	at := slices.IndexFunc(s.lines, func(l string) bool { return strings.Contains(l, `"cp-S2"`) })
	before := projector.At(t.TempDir())
	project(t, before, s, batch(s.lines, 1, at))
	require.Equal(t, look(t, before)[layout.StateFile],
		look(t, d)["_orchestrator/checkpoints/cp-S2/state-snapshot.json"])
}

// TestRevert goes back three times and on again: but for times and the last event, the records are those of a run
// without the detour.
func TestRevert(t *testing.T) {
	plain := newStory(t)
	plain.start()
	plain.pass(1)
	plain.pass(2)
	plain.cycle(1, 2.5)
	plain.send()
	want := look(t, written(t, plain))

	s := newStory(t)
	s.start()
	s.pass(1)
	back := s.state
	s.pass(2)
	s.cycle(1, 3.5)
	s.cycle(2, 3.5)
	s.phase = "write"
	s.revert(back)
	s.pass(2)
	inCycle := s.state
	s.cycle(1, 2.5)
	s.revert(inCycle)
	s.cycle(1, 2.5)
	s.send()
	d := written(t, s)
	got := look(t, d)

	for _, file := range []string{"artifact.html", "_orchestrator/conviction-layer.md"} {
		require.Equal(t, want[file], got[file], file)
	}
	undisturbed := timeless(t, want[layout.StateFile])
	undisturbed["turns"] = 3.0 // the number of a reverted turn is not used again
	require.Equal(t, undisturbed, timeless(t, got[layout.StateFile]))

	remove(t, d, layout.StateFile)
	appendNothing(t, d, s)
	same(t, got, look(t, d), "made again from the events")
}

// revert goes back to an earlier state: what is in between is abandoned.
func (s *story) revert(to run.State) {
	s.send()
	s.add(run.KindRunReverted, run.RunReverted{To: to.Seq, Cause: "reset",
		Abandoned: run.Range{First: to.Seq + 1, Last: s.state.Seq}, State: &to})
}

// TestRevertPutsFilesBack is the moment after a revert, before anything is done again.
func TestRevertPutsFilesBack(t *testing.T) {
	s := newStory(t)
	s.start()
	start := s.state
	s.pass(1)
	s.begin(about(2), 1)
	s.revert(start)
	s.send()
	d := written(t, s)
	files := look(t, d)
	require.Equal(t, "<html>seed</html>", files["artifact.html"])
	require.Empty(t, files["_orchestrator/conviction-layer.md"])
	b, err := records.State(d.Dir)
	require.NoError(t, err)
	require.Empty(t, b.PassRecords)
	require.Empty(t, b.ArtifactBackups)
	require.Nil(t, b.InFlightPass)
	require.Zero(t, b.ConvictionEntryCount)
}

// timeless is the state without times, the last event and what an abandoned attempt left, and the errors' history.
func timeless(t *testing.T, state string) map[string]any {
	t.Helper()
	state = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[^"]*"`).ReplaceAllString(state, `"then"`)
	state = regexp.MustCompile(`"stateHash": "[^"]*"`).ReplaceAllString(state, `"stateHash": ""`)
	var b map[string]any
	require.NoError(t, json.Unmarshal([]byte(state), &b))
	for _, key := range []string{"lastSeq", "failedOutputs", "errorHistory", "aside"} {
		delete(b, key)
	}
	return b
}

func TestNumbersStandInOrder(t *testing.T) {
	raw, err := json.Marshal(rundir.ByNumber[string]{"10": "<ten>", "2": "two", "1": "one", "x": "no number"})
	require.NoError(t, err)
	require.Equal(t, `{"x":"no number","1":"one","2":"two","10":"\u003cten\u003e"}`, string(raw))
	var back rundir.ByNumber[string]
	require.NoError(t, json.Unmarshal(raw, &back))
	require.Len(t, back, 4)
}

// TestTimesAndPaths: every time is UTC, and no path is absolute, so the directory can be moved.
func TestTimesAndPaths(t *testing.T) {
	d := written(t, whole(t))
	text := look(t, d)[layout.StateFile]
	require.NotContains(t, text, d.Root)
	require.NotContains(t, text, `: "/`)
	for _, at := range regexp.MustCompile(`"(?:\w+At|timestamp)": "([^"]*)"`).FindAllStringSubmatch(text, -1) {
		require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`, at[1])
	}
	moved := d.Root + "-moved"
	require.NoError(t, os.Rename(d.Root, moved))
	b, err := records.State(projector.At(moved).Dir)
	require.NoError(t, err)
	exist(t, projector.At(moved), b.ArtifactBackups...)
}

func appendNothing(t *testing.T, d projector.Dir, s *story) {
	t.Helper()
	n := len(s.lines)
	p, err := d.Project(context.Background(), s.blobs, batch(s.lines, n, n))
	require.NoError(t, err)
	require.Equal(t, run.ProjectionWritten, p.Outcome)
}

func exist(t *testing.T, d projector.Dir, names ...string) {
	t.Helper()
	for _, name := range names {
		require.False(t, filepath.IsAbs(name), name)
		require.FileExists(t, d.Path(name))
	}
}

func hash(t *testing.T, d projector.Dir, name string) string {
	t.Helper()
	raw, err := os.ReadFile(d.Path(name))
	require.NoError(t, err)
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

func parse(t *testing.T, d projector.Dir, name string, v any) {
	t.Helper()
	raw, err := os.ReadFile(d.Path(name))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, v))
}

// TestRevertCanBeReverted goes back and then forward again to what it had left behind: its evidence is back where it
// was, and nothing is lost.
func TestRevertCanBeReverted(t *testing.T) {
	s := newStory(t)
	s.start()
	start := s.state
	s.pass(1)
	s.pass(2)
	s.cycle(1, 2.5)
	later := s.state
	s.send()
	want := look(t, written(t, s))
	s.revert(start)
	s.pass(1)
	s.revert(later)
	s.send()
	d := written(t, s)
	got := look(t, d)
	for name, content := range want {
		if evidence := strings.HasPrefix(name, "_orchestrator/passes/") ||
			strings.HasPrefix(name, "_orchestrator/screenshots/"); evidence || name == "artifact.html" {
			require.Equal(t, content, got[name], name)
		}
	}
	require.Equal(t, want["_orchestrator/passes/pass-001/prompt.md"], got["_orchestrator/passes/pass-001~1/prompt.md"])
	require.Contains(t, got, "_orchestrator/passes/pass-001~2/prompt.md")
	require.Contains(t, got, "_orchestrator/passes/pass-002~1/prompt.md")
	require.NotContains(t, got, "_orchestrator/passes/pass-002~2/prompt.md", "it was not done again")
	b, err := records.State(d.Dir)
	require.NoError(t, err)
	require.Len(t, b.PassRecords, 2)

	remove(t, d, layout.StateFile)
	appendNothing(t, d, s)
	same(t, got, look(t, d), "made again from the events")
}

// TestCheckpointsComeBack: a revert of a revert brings back the records of a checkpoint with the checkpoints before it.
func TestCheckpointsComeBack(t *testing.T) {
	s := newStory(t)
	s.start()
	s.pass(1)
	s.pass(2)
	base := s.state
	s.cycle(1, 2.5)
	later := s.state
	s.send()
	snapshot := layout.CheckpointDir("cp-PA-1") + "/" + layout.StateSnapshot
	want := look(t, written(t, s))[snapshot]
	require.Contains(t, want, `"cp-S1"`)
	s.revert(base)
	s.send()
	require.NotContains(t, look(t, written(t, s)), snapshot)
	s.revert(later)
	s.send()
	require.Equal(t, want, look(t, written(t, s))[snapshot])
}

// TestCheckpointBeforeEventsOfPass: a named one stays where it is, an unnamed one moves behind what belongs to its
// pass.
func TestCheckpointBeforeEventsOfPass(t *testing.T) {
	s := newStory(t)
	s.start()
	s.add(run.KindCheckpointCreated, run.CheckpointCreated{ID: "cp-REVERT-20260102T030405Z"})
	s.add(run.KindArtifactUpdated, run.ArtifactUpdated{Cause: "reverted", Artifact: s.blobs.keep("<html>old</html>")})
	s.send()
	d := written(t, s)
	list, err := projector.ListCheckpoints(d.Dir, true)
	require.NoError(t, err)
	var ids []string
	for _, c := range list {
		ids = append(ids, c.ID)
	}
	require.Equal(t, []string{"cp-1", "cp-REVERT-20260102T030405Z"}, ids)
	_, err = projector.LoadCheckpoint(t.Context(), s.blobs, s.state.RunID, "cp-REVERT-20260102T030405Z")
	require.NoError(t, err)
}
