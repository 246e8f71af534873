package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// screenshotRun has no browser, then one that fails twice and then works, and in the second cycle always fails.
var screenshotRun = &shared{make: makeScreenshots}

var viewing = []part{
	{"before", "report", ""},
	{"viewer_A", "report", ""},
	{"viewer_B", "report", ""},
	{"critic", "report", `score: {name: PA-05, find: 'PA-05: ([0-4])/4', range: [0, 4]}`},
}

func makeScreenshots(t *testing.T) result {
	setRowsFaults(t, "[]")
	folder := filepath.Join(base, "planned")
	program := filepath.Join(folder, "installed", "browser") // does not exist before it is installed
	install := fmt.Sprintf("mkdir %s; ln -s %s %s; echo x >> %s", filepath.Dir(program),
		filepath.Join(base, "bin", "browser"), program, installedMark())
	config := writePlays(t, "screenshots", viewing, `  - name: look
    repeat: {max: 2, until: score >= 3.5}
    checkpoint: cp-PA-{n}
    dir: screenshots/cycle-{n}
    steps:
      - screenshots:
          {sizes: [100x100], kinds: [full, viewport, scroll], attempts: 3, if_failing: continue, install: [sh, -c, "`+
		install+`"]}
      - together: [viewer-A, viewer-B]
      - role: critic
`)
	raw := strings.Replace(string(read(t, config)), "time_scale: 0.001", "time_scale: 0.1", 1)
	require.NoError(t, os.WriteFile(config, []byte(raw), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "browser"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "browser", "plan"), []byte("die die show die die die\n"),
		0o600))
	restartWorker(t, "browser: "+program+"\n")
	defer restartWorker(t, blankPictures())
	r := result{dir: filepath.Join(base, "screenshots")}
	r.output = starter(t, "run", "--config", config, "--output-dir", r.dir)
	return r
}

// installedMark is the file in which each installation of the browser leaves a line.
func installedMark() string { return filepath.Join(base, "planned", "browser", "installations") }

// restartWorker changes the settings of the environment and starts a new worker, which reads them.
func restartWorker(t *testing.T, settings string) {
	t.Helper()
	require.NoError(t, os.WriteFile(rowsEnv.settings(), []byte(settings), 0o600))
	if workerPID(t) != 0 {
		require.NoError(t, rowsEnv.killWorker())
	}
	require.NoError(t, rowsEnv.start())
}

// screenshotRows are failures of screenshots.
func screenshotRows() rows {
	return rows{
		"RX-17": func(t *testing.T) {
			r := screenshotRun.get(t)
			var starts []time.Time
			for line := range strings.Lines(string(read(t, filepath.Join(base, "planned", "browser", "starts")))) {
				starts = append(starts, when(t, strings.TrimSpace(line)))
			}
			require.Len(t, starts, 6, "three attempts in each cycle")
			for i, gap := range map[int]time.Duration{1: 500 * time.Millisecond, 2: time.Second,
				4: 500 * time.Millisecond, 5: time.Second} {
				require.GreaterOrEqual(t, starts[i].Sub(starts[i-1]), gap,
					"5 s and then 10 s, of which this run waits a tenth")
			}
			require.Equal(t, "x\n", string(read(t, installedMark())), "a browser that is missing is installed, once")
			require.EqualValues(t, 3, r.cycle(t, 1).number(t, "screenshotCount"))
			var shown []string
			for _, p := range pictures(t, r, 1) {
				shown = append(shown, filepath.Base(p))
			}
			require.Equal(t, []string{"full-100x100.png", "scroll-100x100-step1.png", "viewport-100x100.png"}, shown)
			require.Equal(t, 1, count(r.text(t), `\[INFO\]    Screenshots captured \(3 pictures`))
			failed := where(r.state(t).objects(t, "errorHistory"), "context", "pa-cycle-1-screenshot")
			require.Len(t, failed, 3, "one for each failed attempt")
			require.Contains(t, failed[0].text(t, "message"), "browser not found")
			require.Contains(t, failed[0].text(t, "diagnostics"), "installed one with: sh -c mkdir")
			for i, at := range []float64{1, 3, 3} {
				requireError(t, failed[i], "screenshot-failed", at)
			}
		},
		"RX-18": func(t *testing.T) {
			r := screenshotRun.get(t)
			require.EqualValues(t, 0, r.cycle(t, 2).number(t, "screenshotCount"))
			require.Empty(t, pictures(t, r, 2))
			require.Equal(t, "complete", r.state(t).text(t, "currentPhase"))
			require.EqualValues(t, 2, r.state(t).number(t, "completedPACycles"))
			complaint := `chrome failed to start: the browser fell over its own feet`
			require.Equal(t, 1, count(r.text(t), `\[WARN\]    No screenshots after 3 attempts: .+ `+complaint+
				`\. .+; quality may be degraded$`))
			failed := where(r.log(t, "errors.jsonl"), "context", "pa-cycle-2-screenshot")
			require.Len(t, failed, 3, "one for each attempt")
			for _, e := range failed {
				requireError(t, e, "screenshot-failed", nil)
				require.Contains(t, e.text(t, "message"), "the browser fell over its own feet")
			}
			require.Len(t, where(r.state(t).objects(t, "errorHistory"), "context", "pa-cycle-2-screenshot"), 1)
			page := pageWith("seed", 950)
			require.NotContains(t, string(r.file(t, "_orchestrator/screenshots/cycle-1/viewer-A-prompt.md")), page,
				"there were pictures")
			require.Contains(t, string(r.file(t, "_orchestrator/screenshots/cycle-2/viewer-A-prompt.md")), page)
		},
	}
}
