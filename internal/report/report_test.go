package report_test

import (
	"bytes"
	"flag"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/report"
	"github.com/passbook-run/passbook/internal/terminal"
	"github.com/passbook-run/passbook/internal/testenv"
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
	tags    = regexp.MustCompile(`<[^>]*>`)
	space   = regexp.MustCompile(`\s+`)
	unshown = regexp.MustCompile(`(?s)<svg.*?</svg>`)
	block   = regexp.MustCompile(`</?(section|h[1-6]|tr|p|li|summary|dl|pre|figure|div)\b[^>]*>`)
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

// shown returns the visible text of a page, a line for each block. It requires that texts of agents are neither markup
// nor change the order of other text.
func shown(t *testing.T, page string) string {
	t.Helper()
	for _, markup := range []string{"<script", "<img src=x", "\x00", "\u202e", "\u2066"} {
		require.NotContains(t, page, markup)
	}
	head, body, ok := strings.Cut(page, "<body")
	require.True(t, ok)
	require.Contains(t, head, `http-equiv="Content-Security-Policy" content="default-src 'none'`)
	var lines []string
	for _, piece := range block.Split(unshown.ReplaceAllString("<body"+body, ""), -1) {
		if text := words(piece); text != "" {
			lines = append(lines, strings.ReplaceAll(text, terminal.Safe(evil), "EVIL"))
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

var update = flag.Bool("update", false, "rewrite the texts of pages in testdata")

// TestPages compares the texts of pages with reviewed files. The figures of the story follow from four passes of $0.25,
// a failed attempt of $0.05, a first cycle of 3 × $0.125 + $0.25, and a second of 3 × $0.125.
func TestPages(t *testing.T) {
	for name, story := range map[string]func(testing.TB) *story{"story": wholeStory, "waiting": waitingStory,
		"stages": stagesStory, "lanes": lanesStory, "files": filesStory} {
		t.Run(name, func(t *testing.T) {
			s := story(t)
			o := report.Options{Next: []string{"starter NEXT"}, Contents: s.blobs.copy}
			testenv.Golden(t, *update, name, shown(t, write(t, s.dir(), o)))
		})
	}
}

// waitingStory waits for an answer.
func waitingStory(t testing.TB) *story {
	s := newStory(t)
	s.start()
	s.pass(1, 1)
	s.add(run.KindHandoffRequested, run.QuestionRequested{Kind: run.QuestionHandoff, ID: "h-1", Phase: "write",
		Type: run.HandoffFeedbackAlways, Trigger: "approved", Round: 1,
		Question: "Is this right?", Actions: []string{"continue", "halt"}})
	return s
}

func TestPageNamesChangesItLacks(t *testing.T) {
	d := storyDir(t)
	require.NoError(t, os.WriteFile(d.Path("_orchestrator/passes/pass-003/artifact-backup.html"),
		[]byte("another text"), 0o644))
	output := section(t, write(t, d, report.Options{}), "changes")
	// of passes 1 and 3
	require.Equal(t, 2, strings.Count(output, "Its text before or after is no longer in the directory."), output)
	require.Contains(t, output, "Refine · round 1 +1 −0")

	page := write(t, storyDir(t), report.Options{Diffs: 1})
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
			page := write(t, d, report.Options{Pictures: row.room})
			require.Equal(t, row.pictures, strings.Count(page, "<img "))
			summary := section(t, page, "summary")
			require.Contains(t, summary, row.left)
			require.Equal(t, row.left != "", strings.Contains(summary, "not on this page"))
		})
	}
	page := write(t, d, report.Options{})
	require.Contains(t, page, `alt="The page in cycle 1, Top of the page, 1440x900" width="144" height="90"`)
	require.Contains(t, page, `width="1200" height="300"`, "a big picture is made smaller")
}

func TestPageCutsLongLists(t *testing.T) {
	page := write(t, storyDir(t), report.Options{Rows: 2})
	require.Contains(t, section(t, page, "summary"), "the first 9 passes (")
	require.NotContains(t, section(t, page, "passes"), "builder 3.0s")
	require.Contains(t, section(t, page, "passes"), "weaver")
}

// TestPageOfDamagedDirectoryListsGaps shows what can be read, and lists the rest.
func TestPageOfDamagedDirectoryListsGaps(t *testing.T) {
	d := storyDir(t)
	require.NoError(t, os.WriteFile(d.Path(rundir.StateFile), []byte("{"), 0o644))
	require.NoError(t, os.WriteFile(d.Path("_orchestrator/screenshots/cycle-1/viewport-1440x900.png"),
		[]byte("no picture"), 0o644))
	require.NoError(t, os.Remove(d.Path("_orchestrator/screenshots/cycle-2/manifest.json")))
	page := func() string { return strings.ReplaceAll(shown(t, write(t, d, report.Options{})), d.Root, "DIR") }
	testenv.Golden(t, *update, "damaged", page())
	require.NoError(t, os.Remove(d.Path(rundir.EventsFile)))
	require.NoError(t, os.Remove(d.Path(rundir.MetaFile)))
	testenv.Golden(t, *update, "no-events", page())
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
	page := write(t, d, report.Options{})
	require.Equal(t, 3, strings.Count(page, "<img "), "those of the second cycle")
}
