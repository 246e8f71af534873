package main

import (
	"bytes"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/rundir"
)

var withServer = flag.Bool("bench.server", false, "measure runs on the embedded server")

// TestBench measures as little as possible: two runs of eight passes, and their history.
func TestBench(t *testing.T) {
	if !*withServer {
		t.Skip("-bench.server measures runs on the embedded server")
	}
	t.Setenv("TEMPORAL_ADDRESS", "")
	var out bytes.Buffer
	require.NoError(t, bench(t.Context(), []string{"-root", "../..", "-temp", t.TempDir(), "-reps", "1", "-sizes",
		"2x8"}, &out))
	require.Contains(t, out.String(), "Embedded server; ")
	require.Regexp(t, `(?m)^\| 2 × 8 \| [0-9.]+ m?s \|`, out.String())
}

func TestSizes(t *testing.T) {
	for _, bad := range []string{"", "8", "0x8", "1x0", "ax8", "1x8,"} {
		_, err := parseSizes(bad)
		require.ErrorContains(t, err, "write runs x passes", bad)
	}
}

func TestPassTimesComeFromTheJournal(t *testing.T) {
	journal := `{"seq":1,"ts":"2026-01-02T03:04:05.000Z","kind":"run.start","phase":null,"payload":{}}
{"seq":2,"ts":"2026-01-02T03:04:05.100Z","kind":"pass.start","phase":"bench","payload":{}}
{"seq":3,"ts":"2026-01-02T03:04:05.120Z","kind":"pass.end","phase":"bench","payload":{}}
{"seq":4,"ts":"2026-01-02T03:04:05.130Z","kind":"pass.start","phase":"bench","payload":{}}
{"seq":5,"ts":"2026-01-02T03:04:05.190Z","kind":"pass.end","phase":"bench","payload":{}}
`
	dir := rundir.At(t.TempDir())
	require.NoError(t, os.WriteFile(dir.Path("events.jsonl"), []byte(journal), 0o600))
	begun, ended, err := passTimes(dir)
	require.NoError(t, err)
	require.Equal(t, []time.Duration{30 * time.Millisecond}, gaps(begun))
	require.Equal(t, time.Date(2026, 1, 2, 3, 4, 5, 190e6, time.UTC), ended)
}

func TestPipelineHasOnePassForEachStep(t *testing.T) {
	for _, w := range []work{{Steps: 1}, {Steps: 56}, {Steps: 1001}} {
		w.Agent = []string{"/bin/agent", "-log=/tmp/log"}
		def, err := pipelineFor(t.TempDir(), w)
		require.NoError(t, err, w)
		require.Equal(t, w.Steps, def.Plan.Total, w)
		require.Empty(t, def.Warnings, w)
	}
}
