package pages

import (
	"errors"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	chrome "github.com/passbook-run/passbook/internal/browser/tab"
	"github.com/passbook-run/passbook/run"
)

var everything = flag.Bool("pages.all", false, "every page at every width, in both themes and without scripts")

// tabOf is a tab with the pages of a server.
type tabOf struct {
	*chrome.Tab
	t      *testing.T
	server *httptest.Server
}

// openTab starts a Chromium.
func openTab(t *testing.T, d *desk) *tabOf {
	t.Helper()
	server := httptest.NewServer(d.handler)
	t.Cleanup(func() {
		server.CloseClientConnections() // the pages follow their runs
		server.Close()
	})
	return &tabOf{chrome.Open(t, server.URL, 10*time.Minute), t, server} // for a busy machine
}

// look sets the width of the window and the theme.
func (b *tabOf) look(width int, scheme string) {
	b.t.Helper()
	height := int64(900)
	if width < 500 {
		height = 760
	}
	require.NoError(b.t, chromedp.Do(b.Context, chromedp.EmulateViewport(int64(width), height),
		chrome.Command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme},
				{Name: "prefers-reduced-motion", Value: "reduce"}}})))
}

func (b *tabOf) open(path string) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.Context, chromedp.Navigate(b.server.URL+path)))
}

// eval evaluates JavaScript in the page, also where its own is switched off.
func eval[T any](b *tabOf, script string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.Context, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	require.NoError(b.t, err, script)
	return v
}

// until waits for a condition in the page.
func (b *tabOf) until(script string) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		v, err := chromedp.Run(b.Context, chromedp.Evaluate[bool](script))
		return err == nil && v // the page may be loading
	}, time.Minute, 50*time.Millisecond, script)
}

func (b *tabOf) press(keys string) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.Context, chromedp.KeyEvent(keys)))
}

// tabTo presses Tab until an element that matches has the focus.
func (b *tabOf) tabTo(selector string) {
	b.t.Helper()
	for range 60 {
		if eval[bool](b, fmt.Sprintf(`document.activeElement.matches(%q)`, selector)) {
			return
		}
		b.press(kb.Tab)
	}
	b.t.Fatalf("no Tab leads to %s", selector)
}

// axe is the version of the accessibility checker.
const axe = "4.14.1"

// accessibility returns the script of axe-core, which npm installs once into the user's cache.
func accessibility(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	folder := filepath.Join(cache, "passbook", "tests", "axe-core-"+axe)
	file := filepath.Join(folder, "node_modules", "axe-core", "axe.min.js")
	raw, err := os.ReadFile(file)
	if err == nil {
		return string(raw)
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("accessibility is not checked without npm")
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(folder), 0o755))
	temp, err := os.MkdirTemp(filepath.Dir(folder), ".installing-")
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix",
		temp, "axe-core@"+axe).CombinedOutput()
	require.NoError(t, err, string(out))
	if err := os.Rename(temp, folder); err != nil { // another process was faster
		require.NoError(t, errors.Join(os.RemoveAll(temp)))
	}
	raw, err = os.ReadFile(file)
	require.NoError(t, err)
	return string(raw)
}

// violations are the serious findings of axe-core on the page.
func (b *tabOf) violations(script string) []string {
	b.t.Helper()
	eval[int](b, script+";0")
	return eval[[]string](b, `axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations
		.filter(v => v.impact === "serious" || v.impact === "critical")
		.map(v => v.id + ": " + v.nodes.map(n => n.html.slice(0, 200) + " " + n.failureSummary).join(" | ")))`)
}

// stored writes runs, and returns one page of each kind.
func stored(t *testing.T, d *desk) map[string]string {
	t.Helper()
	asking(t, first, morning).write(d.root)
	paused := begin(t, second, morning.Add(time.Minute))
	paused.pass(1, "One.")
	paused.ask("h-1")
	paused.decide("h-1", "continue")
	paused.pass(2, strings.Repeat("x", 1<<20))
	paused.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested, By: "ada " + evil})
	paused.write(d.root)
	done := begin(t, third, morning.Add(2*time.Minute))
	done.pass(1, "One.")
	done.phase = "harden"
	done.add(run.KindPhaseStart, run.PhaseStart{Key: "harden", Title: "Harden", Round: 1, Dir: "screenshots/cycle-1"})
	done.add(run.KindRunEnd, run.RunEnd{Status: run.Done})
	done.write(d.root)
	other := asking(t, fourth, morning.Add(3*time.Minute))
	other.write(d.root)
	d.session = "of this browser"
	id := "/runs/" + first
	paths := map[string]string{
		"inbox": "/inbox", "runs": "/runs", "start": "/start",
		"run": id, "changes": id + "/changes", "cost": id + "/cost", "pictures": id + "/pictures",
		"history": id + "/history", "log": id + "/log", "pass": id + "/passes/4", "question": id + "/question",
		"checkpoints": "/runs/" + second + "/checkpoints", "revert": "/runs/" + second + "/do/revert?at=cp-S1",
		"done": "/runs/" + third, "promote": "/runs/" + third + "/do/promote",
		"none":    "/runs?text=none",
		"missing": "/runs/nothing", "refused": "/runs/" + third + "/do/pause",
	}
	for _, operation := range []string{"steer", "cancel", "budget", "amend", "fork", "replay", "resume"} {
		paths[operation] = "/runs/" + second + "/do/" + operation
	}
	return paths
}

const (
	third  = "33333333-cccc-4ccc-8ccc-cccccccccccc"
	fourth = "44444444-dddd-4ddd-8ddd-dddddddddddd"
)

// scripts switches the scripts of pages on or off.
func (b *tabOf) scripts(on bool) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.Context, chrome.Command(emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: !on})))
}

// readable requires that a page shows its content and fits a window.
func (b *tabOf) readable(path string, width int) {
	b.t.Helper()
	wide := eval[int](b, `document.documentElement.scrollWidth`)
	require.LessOrEqual(b.t, wide, width, "%s at %d pixels is %d wide", path, width, wide)
	require.NotEmpty(b.t, eval[string](b, `document.querySelector("main h1").innerText`), path)
	require.Empty(b.t, eval[[]string](b, `[...document.querySelectorAll("table.runs td")].filter(e => e.checkVisibility() &&
		e.getBoundingClientRect().right - parseFloat(getComputedStyle(e).paddingRight) >
		e.closest("table").getBoundingClientRect().right - 8).map(e => e.outerHTML)`),
		"%s at %d pixels cuts cells", path, width)
}

// TestPagesInBrowser requires that every page fits a phone, has no serious accessibility problem, requests nothing from
// elsewhere and runs nothing that an agent wrote. Without scripts, which the accessibility checker needs, every page
// can be read, and every question and operation has a form that can be sent. With -pages.all also on wide screens and
// in the dark.
func TestPagesInBrowser(t *testing.T) {
	d := newDesk(t)
	b := openTab(t, d)
	script := accessibility(t)
	paths := stored(t, d)
	widths, schemes := []int{360}, []string{"light"}
	if *everything {
		widths, schemes = []int{360, 800, 1400}, []string{"light", "dark"}
	}
	for _, scheme := range schemes {
		for _, width := range widths {
			b.look(width, scheme)
			for _, path := range paths {
				b.open(path)
				eval[int](b, `document.querySelectorAll("details:not(.shot details)").forEach(d => d.open = true);
					document.querySelectorAll(".talks input").forEach(i => i.click()), 0`)
				b.readable(path, width)
				require.Empty(t, b.violations(script), "%s at %d pixels, %s", path, width, scheme)
			}
		}
	}
	b.scripts(false)
	for _, width := range widths {
		b.look(width, "light")
		for name, path := range paths {
			b.open(path)
			require.False(t, eval[bool](b, `document.documentElement.classList.contains("scripts")`), path)
			b.readable(path, width)
			require.Empty(t, eval[[]string](b, `[...document.querySelectorAll("[data-scripted]")]
				.filter(e => e.checkVisibility()).map(e => e.outerHTML)`), "%s offers what only scripts do", path)
			if form := formOf(name, path); form != "" {
				require.True(t, eval[bool](b, fmt.Sprintf(`document.querySelector(%q).checkVisibility()`, form)),
					"%s cannot be sent", path)
			}
		}
	}
	for _, m := range b.Messages() { // of the pages about problems
		require.Regexp(t, `^log: Failed to load resource: the server responded with a status of 4(04|09)`, m)
	}
}

// formOf selects the button of the form that a page is for; empty: it only shows something.
func formOf(name, path string) string {
	switch {
	case name == "inbox", name == "question":
		return "form.answer .send button"
	case strings.Contains(path, "/do/") && name != "refused":
		return "form.form button"
	}
	return ""
}

// TestQuestionIsAnsweredInBrowser follows the keys from the inbox to the decision, on a phone, also without scripts.
func TestQuestionIsAnsweredInBrowser(t *testing.T) {
	d := newDesk(t)
	asking(t, first, morning).write(d.root)
	b := openTab(t, d)
	for _, off := range []bool{false, true} {
		b.scripts(!off)
		d.connected = 0
		b.look(360, "light")
		b.open("/inbox")
		b.tabTo(`input[name=action]`)
		b.press(kb.ArrowDown) // the second answer needs feedback
		require.Equal(t, "retry_feedback", eval[string](b, `document.querySelector("input[name=action]:checked").value`))
		b.tabTo(`#feedback`)
		require.True(t, eval[bool](b, `(() => { const r = document.activeElement.getBoundingClientRect();
			return r.top >= 0 && r.bottom <= innerHeight })()`), "the feedback is on the screen")
		b.press("Name the source.")
		b.tabTo(`.send button`)
		b.press(kb.Enter)
		b.until(`document.querySelector("h1").textContent === "That did not work"`)
		require.Equal(t, 1, d.connected, "the decision was sent to the run")
	}
}
