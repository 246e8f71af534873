package e2e_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/passbook-run/passbook/internal/layout"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestDemo runs the whole example with the program that people have, and looks at everything it leaves.
func TestDemo(t *testing.T) {
	t.Parallel()
	h := newEnv(t, realBrowser)
	dir := h.dir("demo")
	output := h.starter("demo", "--output-dir", dir)
	require.Contains(t, output, "Done: 56 of 56 passes, 3 cycles, 70 calls")
	events := complete(t, dir)
	t.Run("calls", func(t *testing.T) { testDemoCalls(t, h, dir, events) })
	t.Run("records", func(t *testing.T) { testDemoRecords(t, h, dir, events) })
	t.Run("notes", func(t *testing.T) { testDemoNotes(t, dir) })
	t.Run("checkpoints", func(t *testing.T) { testDemoCheckpoints(t, dir, events) })
	t.Run("numbers", func(t *testing.T) { testDemoNumbers(t, h, dir) })
	t.Run("figures", func(t *testing.T) { testDemoFigures(t, h, dir) })
	require.Contains(t, h.starter("__complete", "revert", dir, "--to", ""), "cp-PA-3\tpass 56, round 3, $5.",
		"the shell completes checkpoints")
	t.Run("pictures", func(t *testing.T) { testPictures(t, dir) })
}

func testDemoCalls(t *testing.T, h *environment, dir string, events []run.Event) {
	o := foretell(t, filepath.Join(filepath.Dir(tiny()), "pipeline.yaml"))
	require.Equal(t, o.artifact(), artifactOf(t, dir), "the plain loop gives another page")
	h.oncePerAnswer(70, 0)
	h.noAgents()
	asked := map[string]string{}
	for _, c := range h.calls() {
		if _, err := strconv.Atoi(c.At); err == nil {
			asked[c.At] = c.PromptSHA256
		}
	}
	require.Equal(t, o.prompts, asked, "the plain loop asks other questions")
	var scores []float64
	for _, s := range of[run.ScoreRecorded](events, run.KindScoreRecorded) {
		scores = append(scores, *s.Score)
	}
	require.Equal(t, []float64{2.5, 3, 3.5}, scores)
	var untouched []int
	for _, p := range of[run.PassEnd](events, run.KindPassEnd) {
		if p.Artifact != nil && !p.Modified {
			untouched = append(untouched, p.Number)
		}
	}
	require.Equal(t, []int{15, 31}, untouched)
}

func testDemoRecords(t *testing.T, h *environment, dir string, events []run.Event) {
	state := stateOf(t, dir)
	id, err := uuid.Parse(state.RunID)
	require.NoError(t, err)
	require.Equal(t, uuid.Version(4), id.Version())
	require.Len(t, state.PassRecords, 56)
	var before string // hash that the next builder must find
	backups := 0
	for n := 1; n <= 56; n++ {
		r, ok := state.PassRecords[strconv.Itoa(n)]
		require.True(t, ok, "pass %d has no record", n)
		require.Equal(t, n, r.GlobalPassNumber)
		require.True(t, r.ValidationPassed, "pass %d", n)
		require.NotEmpty(t, read(t, filepath.Join(dir, r.PromptPath)))
		require.NotEmpty(t, read(t, filepath.Join(dir, r.RawOutputPath)))
		if r.BackupPath == nil {
			continue
		}
		backups++
		backup := sum(read(t, filepath.Join(dir, *r.BackupPath)))
		if before != "" {
			require.Equal(t, before, backup, "the backup of pass %d is not what the builder before it gave", n)
		}
		require.NotNil(t, r.ArtifactHash)
		before = *r.ArtifactHash
	}
	require.Equal(t, 35, backups)
	require.Len(t, state.PACycleRecords, 3)
	first := state.PACycleRecords["1"]
	require.Equal(t, before, sum(read(t, filepath.Join(dir, first.Refine.BackupPath))))
	relative(t, h, read(t, filepath.Join(dir, layout.StateFile)))
}

// relative wants no absolute path in a JSON text.
func relative(t *testing.T, h *environment, raw []byte) {
	t.Helper()
	require.NotContains(t, string(raw), h.root)
	dec := json.NewDecoder(bytes.NewReader(raw))
	for {
		token, err := dec.Token()
		if err != nil {
			break
		}
		if s, ok := token.(string); ok {
			require.False(t, strings.HasPrefix(s, "/"), "an absolute path: %s", s)
		}
	}
}

func headings(raw []byte) int { return strings.Count("\n"+string(raw), "\n## Pass ") }

func testDemoNotes(t *testing.T, dir string) {
	state := stateOf(t, dir)
	require.Equal(t, 56, state.ConvictionEntryCount)
	require.Equal(t, 55, state.DiscoveryEntryCount)
	require.Equal(t, 56, headings(read(t, filepath.Join(dir, state.ConvictionLayerPath))))
	require.Equal(t, 55, headings(read(t, filepath.Join(dir, state.DiscoveryLogPath))))
}

func testDemoCheckpoints(t *testing.T, dir string, events []run.Event) {
	names := []string{"cp-S1", "cp-S2", "cp-S3", "cp-S4", "cp-S5", "cp-S6", "cp-S7", "cp-PA-1", "cp-PA-2", "cp-PA-3"}
	state := stateOf(t, dir)
	require.Len(t, state.Checkpoints, len(names))
	for i, rec := range state.Checkpoints {
		require.Equal(t, names[i], rec.ID)
		at := func(name string) []byte { return read(t, filepath.Join(dir, rec.CheckpointDir, name)) }
		var manifest rundir.CheckpointRecord
		require.NoError(t, json.Unmarshal(at("manifest.json"), &manifest))
		require.Equal(t, rec, manifest)
		require.Equal(t, rec.ArtifactHash, sum(at("artifact.html")))
		require.Equal(t, rec.StateHash, sum(at("state-snapshot.json")))
		require.Equal(t, rec.QualitySnapshot.ConvictionEntries, headings(at("conviction-layer.md")))
		require.Equal(t, rec.QualitySnapshot.DiscoveryEntries, headings(at("discovery-log.md")))
		var snapshot rundir.PipelineState
		require.NoError(t, json.Unmarshal(at("state-snapshot.json"), &snapshot))
		require.Equal(t, rec.AtPassNumber, snapshot.LastCompletedCorpusPass)
		require.Equal(t, rec.ArtifactHash, snapshot.CurrentArtifactHash)
	}
	var last []string
	for _, c := range of[run.CheckpointCreated](events, run.KindCheckpointCreated) {
		last = append(last, c.ID)
	}
	require.Equal(t, names, last)
}
