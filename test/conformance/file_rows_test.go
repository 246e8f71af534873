package conformance

import (
	"fmt"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pictures lists the pictures of a cycle.
func pictures(t *testing.T, r result, cycle int) []string {
	t.Helper()
	found, err := filepath.Glob(r.path(fmt.Sprintf("_orchestrator/screenshots/cycle-%d/*.png", cycle)))
	require.NoError(t, err)
	return found
}

// fileRows are the files of a run directory: what lies where, and that it stays.
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
		"AR-02": func(t *testing.T) {
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
		"AR-03": func(t *testing.T) {
			r := troubledRun.get(t)
			require.Contains(t, names(t, r.path(passDir(9))), "raw-output-FAILED.txt")
			failed := string(r.file(t, passDir(9)+"raw-output-FAILED.txt"))
			require.Regexp(t, `^\{"type":"result"`, failed)
			require.NotRegexp(t, `\}\s*$`, failed, "the half of a reply, as it came")
			require.NotEmpty(t, r.file(t, passDir(9)+"raw-output.txt"))
		},
		"AR-04": func(t *testing.T) {
			for n := 1; n <= 3; n++ {
				steps := map[string][]int{}
				for _, p := range pictures(t, demoRun.get(t), n) {
					name := filepath.Base(p)
					m := regexp.MustCompile(`^(?:(?:full|viewport)-(\d+x\d+)|` +
						`scroll-(\d+x\d+)-step(\d+))\.png$`).FindStringSubmatch(name)
					require.NotNil(t, m, name)
					step, _ := strconv.Atoi(m[3])
					steps[m[1]+m[2]] = append(steps[m[1]+m[2]], step)
				}
				require.Len(t, steps, 2)
				for _, size := range []string{"1440x900", "768x1024"} {
					require.GreaterOrEqual(t, len(steps[size]), 3, "full, viewport and at least one step")
					for i, step := range steps[size][1 : len(steps[size])-1] {
						require.Equal(t, i+1, step, "steps count from 1")
					}
				}
			}
		},
		"AR-05": func(t *testing.T) {
			for n := 1; n <= 3; n++ {
				want := []string{"auditor-A-report.md", "auditor-B-report.md", "auditor-C-report.md",
					"weaver-synthesis.md"}
				if n < 3 {
					want = append(want, "artifact-before-refine.html")
				}
				require.Subset(t, names(t, demoRun.get(t).path(fmt.Sprintf("_orchestrator/screenshots/cycle-%d", n))),
					want)
			}
		},
		"AR-06": func(t *testing.T) {
			for _, p := range pictures(t, demoRun.get(t), 1) {
				f, err := os.Open(p)
				require.NoError(t, err)
				size, err := png.DecodeConfig(f)
				require.NoError(t, f.Close())
				require.NoError(t, err, p)
				var w, h int
				_, err = fmt.Sscanf(regexp.MustCompile(`\d+x\d+`).FindString(filepath.Base(p)), "%dx%d", &w, &h)
				require.NoError(t, err)
				require.Equal(t, w, size.Width, p)
				if strings.HasPrefix(filepath.Base(p), "full-") {
					require.Greater(t, size.Height, h, "the page is higher than the window")
				} else {
					require.Equal(t, h, size.Height, p)
				}
			}
		},
		"AR-07": func(t *testing.T) {
			for _, r := range []result{demoRun.get(t), troubledRun.get(t)} {
				require.Greater(t, len(r.seen.files), 60)
				require.Empty(t, r.seen.gone(), "files that were there and are not any more")
				require.Empty(t, r.seen.kernel.removed, "files that were unlinked or moved away")
			}
		},
		"AR-08": func(t *testing.T) {
			total := int64(0)
			require.NoError(t, filepath.WalkDir(demoRun.get(t).dir, func(path string, e fs.DirEntry, err error) error {
				if err != nil || e.IsDir() {
					return err
				}
				fi, err := e.Info()
				total += fi.Size()
				return err
			}))
			require.Less(t, total, int64(12<<20))
			require.Greater(t, total, int64(1<<20))
		},
		"AR-09": func(t *testing.T) {
			r := demoRun.get(t)
			asked := map[string]string{}
			for _, c := range where(r.calls, "event", "start") {
				asked[c.text(t, "at")] = c.text(t, "prompt_sha256")
			}
			require.Len(t, asked, 70)
			eachCall(r, func(at, prompt, _ string) { require.Equal(t, asked[at], digest(r.file(t, prompt)), at) })
		},
		"AR-10": func(t *testing.T) {
			r := demoRun.get(t)
			answered := map[string]string{}
			for _, c := range where(r.calls, "event", "answered") {
				answered[c.text(t, "at")] = c.text(t, "reply_sha256")
			}
			require.Len(t, answered, 70)
			eachCall(r, func(at, _, reply string) { require.Equal(t, answered[at], digest(r.file(t, reply)), at) })
		},
		"BR-01": func(t *testing.T) {
			r := demoRun.get(t)
			last := digest(read(t, example("seed/page.html")))
			for n := 1; n <= 56; n++ {
				if !verifies(n) {
					require.Equal(t, last, digest(r.file(t, passDir(n)+"artifact-backup.html")), "pass %d", n)
					last = r.record(t, n).text(t, "artifactHash")
				}
			}
		},
		"BR-02": func(t *testing.T) {
			r := demoRun.get(t)
			require.Equal(t, r.record(t, 55).text(t, "artifactHash"),
				digest(r.file(t, "_orchestrator/screenshots/cycle-1/artifact-before-refine.html")))
			require.FileExists(t, r.path("_orchestrator/screenshots/cycle-2/artifact-before-refine.html"))
			require.NoFileExists(t, r.path("_orchestrator/screenshots/cycle-3/artifact-before-refine.html"))
		},
		"BR-03": func(t *testing.T) {
			without := 0
			for n := 1; n <= 56; n++ {
				if _, err := os.Stat(demoRun.get(t).path(passDir(n) + "artifact-backup.html")); os.IsNotExist(err) {
					require.True(t, verifies(n))
					without++
				}
			}
			require.Equal(t, 21, without)
		},
	}
}

// eachCall gives the files of each of the demo's 70 calls, by the agent's name for the call.
func eachCall(r result, look func(at, prompt, reply string)) {
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
