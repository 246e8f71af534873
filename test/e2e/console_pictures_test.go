package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/browser/tab"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestConsolePictures takes the pictures of the console for its documentation, which -pictures keeps.
func TestConsolePictures(t *testing.T) {
	if !*pictures {
		t.Skip("only with -pictures")
	}
	h := newEnv(t, realBrowser, "PASSBOOK_CONSOLE_URL=https://passbook.example.org")
	h.spoil(slow("12", "3"))
	h.begin(h.dir("reverted"))
	until(t, "the twelfth pass is out", func() bool { return h.count("start", "012") == 1 })
	h.starter("pause", h.dir("reverted"), "--now")
	h.finish(h.dir("done"))
	link := h.reviewed()
	b := h.chromium(t, h.console(""), true)
	done := "/runs/" + metaOf(t, h.dir("done")).RunID
	seventh := int64(0)
	for _, e := range eventsOf(t, h.dir("done")) {
		if p := run.PayloadOf[run.PassEnd](e); e.Kind == run.KindPassEnd && p.Number == 7 {
			seventh = e.Seq
		}
	}

	b.picture("console-inbox", "/inbox", "light", 1280, 1100, `document.querySelector(".talks input").click()`)
	require.True(t, b.is(`(() => { const r = document.querySelector(".send button").getBoundingClientRect();
		return r.top >= 0 && r.bottom <= innerHeight })()`), "the button that sends is in the picture")
	b.picture("console-run", done, "dark", 1280, 1000, "")
	b.picture("console-pass", fmt.Sprintf("%s/passes/%d", done, seventh), "light", 1280, 800, "")
	require.True(t, b.is(`[...document.querySelectorAll(".boxed .prose")].every(e => e.scrollHeight <= e.clientHeight)`),
		"only the page scrolls")
	b.picture("console-revert", "/runs/"+metaOf(t, h.dir("reverted")).RunID+"/do/revert?at=cp-S1", "light", 1280, 1000, "")
	require.True(t, b.is(`document.body.innerText.includes("What is left behind")`), b.text())
	b.picture("console-link", link, "light", 390, 860, "")
}

// reviewed starts the runs of examples/review that the inbox shows: one asks about rejected work, another one about its
// plan. It returns the path of the link in the notice of the second one.
func (h *environment) reviewed() (link string) {
	h.t.Helper()
	folder, links := h.dir("review"), h.dir("links")
	require.NoError(h.t, os.CopyFS(folder, os.DirFS(filepath.Join(project, "examples", "review"))))
	replace(h.t, folder, "pipeline.yaml", "[claude,", "["+filepath.Join(folder, "scripted", "claude")+",")
	replace(h.t, folder, "pipeline.yaml", "max: 3", "max: 2")
	replace(h.t, folder, "scripted/claude", `review "Both are as planned, and the tests pass."`,
		`review "The fix works, and its test passes." README.md 3 "it does not mention a last line without a line feed"`)
	replace(h.t, folder, "pipeline.yaml", "\nroles:", "\nnotify:\n  - run: [sh, -c, 'echo $PASSBOOK_LINK >>"+links+
		"']\n    on: [question]\n    link: true\nroles:")
	source := filepath.Join(folder, "repository")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."},
		{"-c", "user.name=Demo", "-c", "user.email=demo@localhost", "commit", "-q", "-m", "A sum with a bug"}} {
		out, err := exec.Command("git", append([]string{"-C", source}, args...)...).CombinedOutput()
		require.NoError(h.t, err, string(out))
	}
	asks := func(dir, stage string) {
		until(h.t, "the run asks about "+stage, func() bool {
			m, err := rundir.At(dir).Meta()
			q, open := m.State.Asks()
			return err == nil && open && q.Phase == stage
		})
	}
	for _, of := range [][2]string{
		{"planned", "total.sh leaves out the last number if no line feed follows it. Fix it."},
		{"rejected", "total.sh loses the last number when its line has no line feed at the end. Fix it."},
	} {
		dir := h.dir(of[0])
		h.starter("run", filepath.Join(folder, "pipeline.yaml"), "--source", source, "--output-dir", dir, "--task", of[1],
			"--detach")
		asks(dir, "plan")
	}
	h.starter("decide", h.dir("rejected"), "--action", run.ActionContinue)
	asks(h.dir("rejected"), "review")
	until(h.t, "the notice has arrived", func() bool {
		raw, _ := os.ReadFile(links) // it is missing until a notice arrives
		for line := range strings.Lines(string(raw)) {
			if path, ok := strings.CutPrefix(strings.TrimSpace(line), "https://passbook.example.org"); ok {
				link = path
				return true
			}
		}
		return false
	})
	return link
}

// picture opens a page, does something there, and keeps what is seen.
func (b *chromium) picture(name, path, scheme string, width, height int64, action string) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, chromedp.EmulateViewport(width, height),
		tab.Command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})))
	b.open(path)
	b.until(`document.readyState === "complete"`)
	require.True(b.t, b.is(`document.querySelector("main h1, main h2") !== null && !document.title.includes("404")`),
		b.text())
	if action != "" {
		require.True(b.t, b.is("("+action+", true)"))
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(project, "docs", "images", name+".png"), png, 0o644))
}
