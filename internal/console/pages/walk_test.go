package pages

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/api"
)

// reached returns what the Tab key reaches on a page, in order, and each place that it must reach but does not, or that
// does not show the focus.
const reached = `(() => {
	const seen = e => e.checkVisibility({visibilityProperty: true}) && !e.disabled;
	window.wanted = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, " +
		"[tabindex='0']")].filter(seen);
	const nameOf = e => e.tagName.toLowerCase() + " " + (e.getAttribute("aria-label") || e.innerText || e.name || e.id || "").trim().slice(0, 40);
	window.plain = new Map(wanted.map(e => [e, getComputedStyle(e).outlineStyle]));
	window.visit = () => {
		const e = document.activeElement;
		if (!e || e === document.body) return "";
		const box = e.getBoundingClientRect(), style = getComputedStyle(e), x = box.x + box.width / 2, y = box.y + box.height / 2;
		let wrong = "";
		if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2) wrong = "shows no focus";
		else if (box.width < 1 || box.height < 1 || box.right <= 0 || box.bottom <= 0 || box.left >= innerWidth ||
			box.top >= innerHeight) wrong = "is not on the screen";
		wanted = wanted.filter(w => w !== e && !(w.type === "radio" && w.name === e.name && w.form === e.form));
		return nameOf(e) + (wrong ? " !" + wrong : "");
	};
	window.missed = () => wanted.map(nameOf);
	document.activeElement.blur();
	return wanted.length;
})()`

// walk presses Tab through a page. Everything that can be used is reached once, in the order of the page, and shows the
// focus; then the browser's own controls are reached, so that the page is not a trap.
func (b *tabOf) walk(path string) {
	b.t.Helper()
	b.open(path)
	n := eval[int](b, reached)
	var order []string
	for range n + 3 {
		b.press(kb.Tab)
		at := eval[string](b, `visit()`)
		if at == "" {
			break
		}
		require.NotContains(b.t, at, "!", path)
		order = append(order, at)
	}
	require.Empty(b.t, eval[[]string](b, `missed()`), "%s: the Tab key does not reach these; it reaches %q", path, order)
	require.Equal(b.t, "a Skip to the content", order[0], path)
	require.LessOrEqual(b.t, len(order), n, "%s: the Tab key returns to %q", path, order)
}

// honest walks through a page, which promises nothing that its scripts would have to do, and has no dead control.
func (b *tabOf) honest(path string, off bool) {
	b.t.Helper()
	b.walk(path)
	text := eval[string](b, `document.body.innerText`)
	for _, p := range promises {
		require.False(b.t, off && strings.Contains(text, p), "%s promises %q", path, p)
	}
	require.False(b.t, !off && strings.Contains(text, "Reload it"), "%s does not update itself", path)
	require.Empty(b.t, eval[[]string](b, `[...document.forms].filter(f => !f.querySelector("button")).map(f => f.action)`),
		path)
	require.Empty(b.t, eval[[]string](b, `[...document.querySelectorAll("a:not([href]), a[href=''], a[href='#']")]
		.filter(a => a.checkVisibility() && !a.closest("[data-unscripted]")).map(a => a.outerHTML)`), path)
	require.NotEqual(b.t, off, eval[bool](b, `document.documentElement.classList.contains("scripts")`), path)
}

// promises are words of pages about what only scripts do.
var promises = []string{"updates itself", "results appear here"}

// TestKeysReachEverythingInBrowser walks through every page with the Tab key, with and without scripts. Without
// them no page promises what only scripts do, and each form has a button that sends it.
func TestKeysReachEverythingInBrowser(t *testing.T) {
	d := newDesk(t)
	b := openTab(t, d)
	b.look(360, "light")
	b.scripts(false)
	b.honest("/inbox", true) // without a question
	b.honest("/runs", true)
	paths := stored(t, d)
	for _, off := range []bool{true, false} {
		b.scripts(!off)
		for _, name := range slices.Sorted(maps.Keys(paths)) {
			if off || *everything { // the scripts change neither links nor forms
				b.honest(paths[name], off)
			}
		}
	}
}

// TestKeysWorkInBrowser: Enter and Space act where they should, and the skip link leads past the navigation.
func TestKeysWorkInBrowser(t *testing.T) {
	d := newDesk(t)
	paths := stored(t, d)
	b := openTab(t, d)
	b.look(1400, "light")
	b.open(paths["runs"])
	b.press(kb.Tab)
	require.True(t, eval[bool](b, `document.activeElement.matches(".skip") &&
		document.activeElement.getBoundingClientRect().left >= 0`), "the skip link is seen")
	b.press(kb.Enter)
	b.press(kb.Tab)
	require.True(t, eval[bool](b, `document.activeElement.matches("main a")`), "the first link of the content")
	b.open(paths["steer"])
	b.tabTo(`#text`)
	b.press("Keep the API.")
	b.tabTo(`form.form button`)
	b.press(" ")
	b.until(`document.readyState === "complete" && document.querySelector("h1").textContent === "That did not work"`)
	require.Equal(t, "Keep the API.", eval[string](b, `document.querySelector(".typed textarea").value`))
	require.Equal(t, api.CanOperate, d.can)
	require.Equal(t, 1, d.connected)
	b.tabTo(`main .button`)
	b.press(kb.Enter)
	b.until(fmt.Sprintf(`location.pathname === %q`, "/runs/"+second))
}

// TestOldPageIsMarkedInBrowser: a page that cannot be updated shows why, and continues when it can.
func TestOldPageIsMarkedInBrowser(t *testing.T) {
	d := newDesk(t)
	dir := asking(t, first, morning).write(d.root)
	b := openTab(t, d)
	b.open("/runs/" + first)
	require.Eventually(t, func() bool { return d.streams.open.Load() == 1 }, time.Minute, 5*time.Millisecond)
	away := filepath.Join(t.TempDir(), "away")
	require.NoError(t, os.Rename(dir.Root, away))
	b.until(`document.getElementById("connection").innerText.includes("can no longer be read")`)
	require.NoError(t, os.Rename(away, dir.Root))
	b.until(`document.getElementById("connection").hidden`)
	b.server.CloseClientConnections()
	b.server.Close()
	b.until(`document.getElementById("connection").innerText.includes("does not answer")`)
	require.Contains(t, eval[string](b, `document.querySelector("h1").innerText`), "A page about", "the last state stays")
}

// TestTypedAnswerStaysInBrowser: the inbox reports that another client answered the question, and keeps the text.
func TestTypedAnswerStaysInBrowser(t *testing.T) {
	d := newDesk(t)
	s := asking(t, first, morning)
	dir := s.write(d.root)
	b := openTab(t, d)
	b.look(360, "light")
	b.open("/inbox")
	b.tabTo(`input[name=action]`)
	b.press(kb.ArrowDown)
	b.tabTo(`#feedback`)
	b.press("Name the source.")
	eval[int](b, `scrollTo(0, 0), 0`) // to the question
	before := len(s.lines)
	s.decide("h-1", "continue")
	s.extend(dir, before)
	b.until(`document.getElementById("answered").innerText.includes("This question was answered")`)
	require.True(t, eval[bool](b, `(() => { const r = document.getElementById("answered").getBoundingClientRect();
		return document.elementFromPoint(r.left + 20, r.top + r.height / 2).id === "answered" })()`), "it is seen")
	require.Equal(t, "Name the source.", eval[string](b, `document.getElementById("feedback").value`))
}

// TestFormCoversNoFocusInBrowser: what has the focus is not behind the form of a question, on a phone also if the form asks for
// feedback.
func TestFormCoversNoFocusInBrowser(t *testing.T) {
	d := newDesk(t)
	asking(t, first, morning).write(d.root)
	b := openTab(t, d)
	b.look(360, "light")
	for _, action := range []string{"continue", "retry_feedback"} {
		b.open("/inbox")
		eval[int](b, fmt.Sprintf(`document.querySelector("input[value=%s]").click(), document.activeElement.blur(), 0`,
			action))
		for {
			b.press(kb.Tab)
			if eval[bool](b, `document.querySelector("form.answer").contains(document.activeElement)`) {
				break
			}
			require.Empty(t, eval[string](b, `(() => { const e = document.activeElement, r = e.getBoundingClientRect(),
				form = document.querySelector("form.answer").getBoundingClientRect();
				return r.top < form.top - 8 && r.bottom > 0 ? "" : e.outerHTML.slice(0, 200) })()`), action)
		}
		before := eval[int](b, `Math.round(scrollY)`)
		b.tabTo(`.send button`)
		require.Equal(t, before, eval[int](b, `Math.round(scrollY)`), "the page does not move under the form")
	}
}
