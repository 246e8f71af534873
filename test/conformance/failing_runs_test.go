package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var failingRun = &shared{make: makeFailing}

// part is one pass of a pipeline of plays.
type part struct {
	play  string
	gives string // report, artifact
	more  string // of the role, in YAML
}

// failing are the parts of the failing run.
var failing = []part{
	{"crash", "report", ""},
	{"counted", "report", ""},
	{"limited", "report", ""},
	{"slowpoke", "report", "limits: {timeout: 6s}"},
	{"weary", "report", "limits: {attempts: 7}"},
	{"cut", "artifact", ""},
	{"rest", "artifact", ""},
	{"ellipsis", "artifact", ""},
	{"same", "artifact", "notes: [conviction, discovery]"},
	{"wide", "artifact", "checks: [{name: html-complete}, {name: container-width, between: [940, 960]}]"},
	{"quoting", "report", "checks: [{name: has-observations, any: [ABSENT]}]"},
	{"exhausted", "report", ""},
	{"late", "report", "agent: late"},
	{"hopeless", "report", ""},
	{"cutall", "artifact", "checks: [{name: html-complete}]"},
	{"nopage", "artifact", ""},
	{"sections", "report", "checks: [{name: has-observations, any: [DEEPLY INTEGRATED, SURFACE-LEVEL, ABSENT]}]"},
	{"next", "artifact", ""},
}

// passOf returns the number of the pass with a play.
func passOf(t *testing.T, parts []part, play string) int {
	t.Helper()
	for i, p := range parts {
		if p.play == play {
			return i + 1
		}
	}
	require.FailNow(t, "no part plays "+play)
	return 0
}

// stopped is a paused or completed run: the output and exit code of a command, and state.json after it.
type stopped struct {
	output, status string
	code           int
	state          object
}

var (
	stops   []stopped // of the failing run, in order
	refused []stopped // resumes of it without force
)

// makeFailing meets every failure of an agent once. It pauses where one lasts; the cause is fixed each time.
func makeFailing(t *testing.T) result {
	setRowsFaults(t, "[]")
	config := writePlays(t, "failing", failing, "")
	r := result{dir: filepath.Join(base, "failing")}
	attach := func() int {
		output, code := try(t, "run", "--config", config, "--output-dir", r.dir)
		stops = append(stops, stopped{output: output, code: code, state: r.state(t)})
		return code
	}
	forced := func() {
		output, code := try(t, "resume", r.dir)
		refused = append(refused, stopped{output: output, code: code, state: r.state(t)})
		starter(t, "resume", r.dir, "--force", "--reason", "the cause is fixed")
	}
	latecomer, script := filepath.Join(base, "bin", "latecomer"), "#!/bin/sh\nexec claude \"$@\"\n"
	install := func() { require.NoError(t, os.WriteFile(latecomer, []byte(script), 0o700)) }
	install() // a start needs all programs
	require.Equal(t, 3, attach(), "exhausted")
	require.NoError(t, os.Remove(latecomer))
	starter(t, "resume", r.dir)
	require.Equal(t, 3, attach(), "late")
	install()
	starter(t, "resume", r.dir)
	for range 2 {
		require.Equal(t, 3, attach(), "hopeless")
		starter(t, "resume", r.dir)
	}
	require.Equal(t, 3, attach(), "hopeless, for the third time")
	forced()
	require.Equal(t, 3, attach(), "three consecutive failures")
	forced()
	require.Zero(t, attach(), "the end")
	r.output = stops[len(stops)-1].output
	return r
}

// writePlays writes a pipeline whose passes are plays, with the default limits and another stage, and returns its file.
func writePlays(t *testing.T, name string, parts []part, after string) string {
	t.Helper()
	folder := filepath.Join(base, name+"-pipeline")
	require.NoError(t, os.MkdirAll(folder, 0o700))
	files := map[string]string{"seed.html": pageWith("seed", 950)}
	var roles, steps strings.Builder
	for _, p := range parts {
		files[p.play+".md"] = "PLAY: " + p.play + "\n"
		role := strings.ReplaceAll(p.play, "_", "-")
		fmt.Fprintf(&roles, "  %s:\n    prompt: %s.md\n    gives: %s\n", role, p.play, p.gives)
		if !strings.Contains(p.more, "agent:") {
			roles.WriteString("    agent: claude\n")
		}
		if p.more != "" {
			fmt.Fprintf(&roles, "    %s\n", p.more)
		}
		if !strings.Contains(after, role) {
			fmt.Fprintf(&steps, "      - role: %s\n", role)
		}
	}
	files[name+".yaml"] = "pipeline: " + name + `
wording: corpus
agents:
  claude: {run: [claude, -p, --output-format, json], reply: claude-json, price: {input: 15, output: 75}, env: [FAKE_CLAUDE_DIR]}
  late: {run: [latecomer, -p], reply: claude-json, env: [FAKE_CLAUDE_DIR]}
limits: {time_scale: 0.001}
artifact: {file: page.html, seed: seed.html}
notes:
  conviction: {file: conviction-layer.md, marker: CONVICTION_ADDITION}
  discovery: {file: discovery-log.md, marker: DISCOVERY_LOG}
roles:
` + roles.String() + "stages:\n  - name: ask\n    steps:\n" + steps.String() + after
	for file, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600))
	}
	return filepath.Join(folder, name+".yaml")
}
