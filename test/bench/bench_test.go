package main

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// The shell loop is the one engine without a server: it shows that the measurements work.
func TestLoopIsMeasured(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash")
	}
	agent := filepath.Join(t.TempDir(), "agent")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", agent, "./agent").CombinedOutput()
	require.NoError(t, err, string(out))
	m := trial{amounts: amounts{Latency: 1, Many: 2, Passes: 3, Steps: 8, Call: time.Second / 5, Patience: time.Minute},
		contender: contender{name: "shell loop", open: func(dir string) engine { return newShellLoop(dir) }}, agent: agent,
		dir: t.TempDir(), values: map[string]float64{}}
	require.NoError(t, m.run(t.Context()))
	for _, f := range []string{figStart, figOne, figMany, figLoop, figKill} {
		require.Positive(t, m.values[f], f)
	}
	require.InDelta(t, 4, m.values[figCalls], 0, "the killed call is repeated")
	require.InDelta(t, 300, m.values[figBytes], 100)
}

func TestTableShowsMediansAndRatios(t *testing.T) {
	tab := table{reps: 3, contenders: []contender{{name: passbookName}, {name: "A"}},
		values: map[string]map[string][]float64{}}
	for _, n := range []float64{0.03, 0.01, 0.02} {
		tab.add(passbookName, map[string]float64{figOne: n, figCalls: 3})
		tab.add("A", map[string]float64{figOne: n / 2, figCalls: 4, figBytes + " journal": 200})
	}
	var out strings.Builder
	tab.write(&out)
	for _, line := range []string{
		"| | Passbook | A |",
		"| five empty steps, one workflow | 20.0 ms | 10.0 ms (0.50) |",
		"| calls started for three passes | 3 | 4 |",
		"Stored bytes per step: A: journal 200.\n",
	} {
		require.Contains(t, out.String(), line)
	}
}
