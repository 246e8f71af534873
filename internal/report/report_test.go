package report_test

import (
	"bytes"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/records"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/report"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func write(t testing.TB, d rundir.Dir, o report.Options) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, report.Write(&out, d, o))
	return out.String()
}

var (
	tags  = regexp.MustCompile(`<[^>]*>`)
	space = regexp.MustCompile(`\s+`)
)

// words returns the visible text of a part of the page.
func words(piece string) string {
	return strings.TrimSpace(space.ReplaceAllString(html.UnescapeString(tags.ReplaceAllString(piece, " ")), " "))
}

// section returns the visible text of a section.
func section(t *testing.T, page, id string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, `<section id="`+id+`"`)
	require.True(t, ok, id)
	_, rest, _ = strings.Cut(rest, ">")
	rest, _, ok = strings.Cut(rest, "</section>")
	require.True(t, ok, id)
	return words(rest)
}

// TestPageShowsFigures expects figures calculated by hand: four passes of $0.25, a failed attempt of $0.05, a first
// cycle of 3 × $0.125 + $0.25, and a second of 3 × $0.125.
func TestPageShowsFigures(t *testing.T) {
	d := storyDir(t)
	book, err := records.State(d.Dir)
	require.NoError(t, err)
	require.InDelta(t, 2.05, book.Cost.TotalEstimatedCostUSD, 1e-9)
	page := write(t, d.Dir, report.Options{Next: []string{"starter cost-report run"}})
	for _, row := range []struct{ section, want string }{
		{"summary", "Passes 4/4 2 cycles of at most 6"},
		{"summary", "Cost $2.05 51% of $4.00"},
		{"summary", "Score 3.5 target 3.5, met"},
		{"summary", "2.5s a pass"}, // (1 + 2 + 3 + 4) / 4
		{"summary", "Checks passed 4/4 1 retry, 0 warnings"},
		{"summary", "Errors 1 1 recovered, 0 not"},
		{"summary", "The run is completed. Read the results"},
		{"summary", "Next, type: starter cost-report run"},
		{"quality", "1 2.5 3.5 auditor-A 2.0 auditor-B 3.0 yes"},
		{"quality", "2 3.5 3.5 auditor-A 3.0 auditor-B 4.0 no"},
		{"quality", "4 4 0"}, // the second verifier
		{"cost", "$2.05 of $4.00."},
		{"cost", "builder 2 200 40 $0.55 27%"},
		{"cost", "pa 7 700 140 $1.00 49%"},
		{"cost", "verifier 2 200 40 $0.50 24%"},
		{"cost", "S1 2 200 40 $0.50 24%"},
		{"cost", "S2 2 200 40 $0.55 27%"},
		{"cost", "cycle 1 4 400 80 $0.62 30%"}, // 0.625, to even
		{"cost", "cycle 2 3 300 60 $0.38 18%"},
		{"passes", "S2 2 passes · 7.0s · $0.55 · 1 retry"},
		{"passes", "3 builder 3.0s 2 ok 1/1 checks artifact $0.30"},
		{"passes", "Harden · cycle 1 4 passes · 9.0s · $0.62"},
		{"gallery", "Cycle 1: 2.5"},
		{"gallery", "Cycle 2: 3.5, after refining"},
		{"changes", "Refine · round 1 +1 −0"},
		{"decisions", "continue by op, 2026-01-02 03:"},
		{"errors", "output-truncated in pass-3: half of it:"},
		{"errors", "recovered at attempt 2"},
		{"lineage", "Comes of run-0 (follow_up)"},
		{"lineage", "cp-S1 2 0 – $0.50"},
		{"lineage", "cp-S2 4 0 – $1.05"},
	} {
		require.Contains(t, section(t, page, row.section), row.want)
	}
}

func TestPageEscapesTextOfRun(t *testing.T) {
	d := storyDir(t)
	page := write(t, d.Dir, report.Options{})
	require.NotContains(t, page, "<script")
	require.NotContains(t, page, "<img src=x")
	require.Contains(t, page, `http-equiv="Content-Security-Policy" content="default-src 'none'`)
	for _, in := range []struct{ section, want string }{
		{"quality", "absent" + evil}, {"changes", "Pass 1 " + evil}, {"changes", "+<p>line 1 " + evil + "</p>"},
		{"decisions", "Go on with " + evil}, {"decisions", "yes " + evil},
		{"errors", "half of it: " + evil}, {"errors", "the end: " + evil},
	} {
		require.Contains(t, section(t, page, in.section), in.want)
	}
	require.Contains(t, words(page), "A page about "+evil)
}

// TestPageShowsTextInItsOrder: characters that change the order of a text are shown as codes.
func TestPageShowsTextInItsOrder(t *testing.T) {
	d := storyDir(t)
	for _, name := range []string{layout.EventsFile, layout.MetaFile} {
		raw, err := os.ReadFile(d.Path(name))
		require.NoError(t, err)
		raw = bytes.ReplaceAll(raw, []byte("A page about"), []byte("A page \u202eabout\u2066"))
		require.NoError(t, os.WriteFile(d.Path(name), raw, 0o600))
	}
	page := write(t, d.Dir, report.Options{})
	require.Contains(t, words(page), `A page \u202eabout\u2066`)
	require.NotContains(t, page, "\u202e")
	require.NotContains(t, page, "\u2066")
}

func TestPageShowsChangesOfEachPass(t *testing.T) {
	d := storyDir(t)
	output := section(t, write(t, d.Dir, report.Options{}), "changes")
	require.Contains(t, output, `@@ -1,3 +1,4 @@ <html> <h1>Page</h1> +<p>line 1 `)
	require.NotContains(t, output, "-<h1>")

	require.NoError(t, os.WriteFile(d.Path("_orchestrator/passes/pass-003/artifact-backup.html"),
		[]byte("another text"), 0o644))
	output = section(t, write(t, d.Dir, report.Options{}), "changes")
	// of passes 1 and 3
	require.Equal(t, 2, strings.Count(output, "Its text before or after is no longer in the directory."), output)
	require.Contains(t, output, "Refine · round 1 +1 −0")

	page := write(t, storyDir(t).Dir, report.Options{Diffs: 1})
	require.Contains(t, section(t, page, "summary"), "what the last 2 passes changed")
	require.NotContains(t, section(t, page, "changes"), "Refine")
}

func TestPicturesAreLimited(t *testing.T) {
	d := storyDir(t)
	for _, row := range []struct {
		name     string
		room     int64
		pictures int
		left     string
	}{
		{"all", 0, 6, ""},
		{"only the small ones", 20_000, 4, "2 pictures of"},
		{"none", -1, 0, "6 pictures of"},
	} {
		t.Run(row.name, func(t *testing.T) {
			page := write(t, d.Dir, report.Options{Pictures: row.room})
			require.Equal(t, row.pictures, strings.Count(page, "<img "))
			if row.left == "" {
				require.NotContains(t, section(t, page, "summary"), "not on the page")
			} else {
				require.Contains(t, section(t, page, "summary"), row.left)
			}
		})
	}
	page := write(t, d.Dir, report.Options{})
	require.Contains(t, page, `alt="The page in cycle 1, Top of the page, 1440x900" width="144" height="90"`)
	require.Contains(t, page, `width="1200" height="300"`, "a big picture is made smaller")
}

func TestPageCutsLongLists(t *testing.T) {
	page := write(t, storyDir(t).Dir, report.Options{Rows: 2})
	output := section(t, page, "summary")
	for _, want := range []string{"the first 9 passes (", "What is not on this page"} {
		require.Contains(t, output, want)
	}
	require.NotContains(t, section(t, page, "passes"), "builder 3.0s")
	require.Contains(t, section(t, page, "passes"), "weaver")
}

// TestPageOfDamagedDirectoryListsGaps shows what can be read, and lists the rest.
func TestPageOfDamagedDirectoryListsGaps(t *testing.T) {
	d := storyDir(t)
	require.NoError(t, os.WriteFile(d.Path(layout.StateFile), []byte("{"), 0o644))
	require.NoError(t, os.WriteFile(d.Path("_orchestrator/screenshots/cycle-1/viewport-1440x900.png"),
		[]byte("no picture"), 0o644))
	require.NoError(t, os.Remove(d.Path("_orchestrator/screenshots/cycle-2/manifest.json")))
	page := write(t, d.Dir, report.Options{})
	for _, want := range []string{"_orchestrator/state.json cannot be read", "viewport-1440x900.png: not a PNG",
		"the pictures of round 2 cannot be read"} {
		require.Contains(t, section(t, page, "summary"), want)
	}
	require.Contains(t, section(t, page, "passes"), "3 builder 3.0s 2 ok")
	require.NoError(t, os.Remove(d.Path(layout.EventsFile)))
	require.NoError(t, os.Remove(d.Path(layout.MetaFile)))
	require.Contains(t, section(t, write(t, d.Dir, report.Options{}), "summary"),
		"No event records the status of the run yet.")
}

// TestPageReadsOnlyPicturesOfRun does not let a list of pictures add other files of the machine.
func TestPageReadsOnlyPicturesOfRun(t *testing.T) {
	d := storyDir(t)
	secret := filepath.Join(filepath.Dir(d.Root), "secret.png")
	raw, err := os.ReadFile(d.Path("_orchestrator/screenshots/cycle-1/viewport-1440x900.png"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(secret, raw, 0o600))
	list := fmt.Sprintf(`[{"name":%q,"size":1},{"name":"../../../../secret.png","size":1}]`, secret)
	require.NoError(t, os.WriteFile(d.Path("_orchestrator/screenshots/cycle-1/manifest.json"), []byte(list), 0o644))
	page := write(t, d.Dir, report.Options{})
	require.Equal(t, 3, strings.Count(page, "<img "), "those of the second cycle")
}

// TestPageOfForeignRun shows runs of other programs too.
func TestPageOfForeignRun(t *testing.T) {
	d := rundir.At("../../rundir/testdata/reference/planning_retry_then_continue")
	page := write(t, d, report.Options{})
	require.Contains(t, section(t, page, "decisions"), "retry_feedback by")
	require.Contains(t, section(t, page, "decisions"), "more detail")
	require.NotContains(t, section(t, page, "summary"), "state.json")
}

// TestPageOfWaitingRunShowsQuestion shows the open question.
func TestPageOfWaitingRunShowsQuestion(t *testing.T) {
	s := newStory(t)
	s.start()
	s.pass(1, 1)
	s.add(run.KindHandoffRequested, run.QuestionRequested{Kind: run.QuestionHandoff, ID: "h-1", Phase: "write",
		Type: run.HandoffFeedbackAlways, Trigger: "approved", Round: 1,
		Question: "Is this right?", Actions: []string{"continue", "halt"}})
	page := write(t, s.dir().Dir, report.Options{})
	require.Contains(t, section(t, page, "summary"), "A phase is finished and waits for your decision.")
	require.Contains(t, section(t, page, "summary"), "Is this right? handoff, asked 2026-01-02 03:0")
	require.Contains(t, section(t, page, "summary"), "answers: continue , halt")
	require.Contains(t, section(t, page, "decisions"), "not decided")
	// 0.25 + (3 passes + 6 cycles × 5 calls) × 0.25
	require.Contains(t, section(t, page, "cost"), "If no loop ends early it will have cost $8.50 in the end.")
}

// TestPageShownOnScreen opens the page in a real browser: no requests, no messages, no overflow, no injected markup.
func TestPageShownOnScreen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.html")
	require.NoError(t, os.WriteFile(path, []byte(write(t, storyDir(t).Dir, report.Options{})), 0o600))
	fits(t, path, "page")

	s := open(t)
	s.show(t, path, 800, "light")
	require.Zero(t, ask[int](t, s, `document.querySelectorAll('script, img[src="x"], [onerror]').length`))
	require.Contains(t, ask[string](t, s, `document.querySelector('.task').innerText`), "<script>alert(1)</script>")
	width := `document.querySelector('.shot img').getBoundingClientRect().width`
	small := ask[float64](t, s, width)
	ask[int](t, s, `document.querySelector('.shot summary').focus(), document.activeElement.click(), 0`)
	require.True(t, ask[bool](t, s, `getComputedStyle(document.querySelector('.shot summary')).position === 'fixed'`),
		"the picture does not fill the screen")
	ask[int](t, s, `document.activeElement.click(), 0`)
	require.Equal(t, small, ask[float64](t, s, width))
	require.Empty(t, s.Messages())
}
