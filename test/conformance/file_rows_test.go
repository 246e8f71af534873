package conformance

import (
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pictures returns the pictures of a cycle.
func pictures(t *testing.T, r result, cycle int) []string {
	t.Helper()
	found, err := filepath.Glob(r.path(fmt.Sprintf("_orchestrator/screenshots/cycle-%d/*.png", cycle)))
	require.NoError(t, err)
	return found
}

// fileRows are the files of a run directory.
func fileRows() rows {
	return rows{
		"AR-01": func(t *testing.T) {
			r := archivedRun.get(t)
			require.Subset(t, names(t, r.dir), []string{"_orchestrator", "artifact.html"})
			require.Subset(t, names(t, r.path("_orchestrator")), []string{
				"archives", "checkpoints", "conviction-layer.md", "discovery-log.md", "logs", "passes", "screenshots",
				"state.json",
			})
		},
		"AR-02 BR-03": func(t *testing.T) {
			r := demoRun.get(t)
			require.Len(t, names(t, r.path("_orchestrator/passes")), 56)
			for n := 1; n <= 56; n++ {
				want := []string{"agent.jsonl", "artifact-backup.html", "prompt.md", "raw-output.txt"}
				if verifies(n) {
					want = []string{"agent.jsonl", "prompt.md", "raw-output.txt"}
				}
				require.Equal(t, want, names(t, r.path(passDir(n))), "pass %d", n)
			}
		},
		"AR-04 AR-06": testPictures,
		"AR-07": func(t *testing.T) {
			for _, r := range []result{demoRun.get(t), recoveredRun.get(t)} {
				require.Greater(t, len(r.seen.files), 60)
				require.Empty(t, r.seen.gone(), r.dir)
			}
		},
		"AR-08": func(t *testing.T) {
			total := int64(0)
			for path := range demoRun.get(t).seen.files {
				fi, err := os.Stat(path)
				require.NoError(t, err)
				total += fi.Size()
			}
			require.Less(t, total, int64(12<<20))
			require.Greater(t, total, int64(1<<20))
		},
		"AR-05 AR-09 AR-10": func(t *testing.T) {
			r := demoRun.get(t)
			prompts, replies := map[string]string{}, map[string]string{}
			for _, c := range where(r.calls, "event", "start") {
				prompts[c.text(t, "at")] = c.text(t, "prompt_sha256")
			}
			for _, c := range where(r.calls, "event", "answered") {
				replies[c.text(t, "at")] = c.text(t, "reply_sha256")
			}
			require.Len(t, prompts, 70)
			require.Len(t, replies, 70)
			eachCall(func(at, prompt, reply string) {
				require.Equal(t, prompts[at], digest(r.file(t, prompt)), at)
				require.Equal(t, replies[at], digest(r.file(t, reply)), at)
			})
		},
	}
}

// testPictures compares the names and sizes of the pictures of a cycle. Pictures of Chromium are compared by the tests
// of package browser.
func testPictures(t *testing.T) {
	for n := 1; n <= 3; n++ {
		var found []string
		for _, p := range pictures(t, demoRun.get(t), n) {
			name := filepath.Base(p)
			found = append(found, name)
			f, err := os.Open(p)
			require.NoError(t, err)
			got, err := png.DecodeConfig(f)
			require.NoError(t, f.Close())
			require.NoError(t, err, p)
			var width, height int
			_, err = fmt.Sscanf(regexp.MustCompile(`\d+x\d+`).FindString(name), "%dx%d", &width, &height)
			require.NoError(t, err, name)
			require.Equal(t, width, got.Width, p)
			if strings.HasPrefix(name, "full-") {
				require.Greater(t, got.Height, height, "the page is higher than the window")
			} else {
				require.Equal(t, height, got.Height, p)
			}
		}
		require.Equal(t, []string{"full-1440x900.png", "full-768x1024.png", "scroll-1440x900-step1.png",
			"scroll-768x1024-step1.png", "viewport-1440x900.png", "viewport-768x1024.png"}, found)
	}
}

// eachCall calls a function with the files of each of the demo's 70 calls, by the agent's name of the call.
func eachCall(look func(at, prompt, reply string)) {
	for n := 1; n <= 56; n++ {
		look(padded(n), passDir(n)+"prompt.md", passDir(n)+"raw-output.txt")
	}
	for n := 1; n <= 3; n++ {
		folder := fmt.Sprintf("_orchestrator/screenshots/cycle-%d/", n)
		for role, reply := range map[string]string{
			"auditor-A": "auditor-A-report.md", "auditor-B": "auditor-B-report.md", "auditor-C": "auditor-C-report.md",
			"weaver": "weaver-synthesis.md", "refine": "refine-output.txt",
		} {
			if role != "refine" || n < 3 {
				look(fmt.Sprintf("%s-%d", role, n), folder+role+"-prompt.md", folder+reply)
			}
		}
	}
}
