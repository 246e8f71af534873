package e2e_test

import (
	"context"
	"encoding/json"
	"flag"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/browser/tab"
	"github.com/passbook-run/passbook/workflows/contract"
)

var bothWays = flag.Bool("pages.scripts", false, "use the pages in Chromium also without scripts")

// tourDeadline limits all that a test does in a browser. Each wait has its own limit, which fails first.
const tourDeadline = 3 * deadline

// chromium is a real browser on a console, used by keys alone.
type chromium struct {
	t    *testing.T
	ctx  context.Context
	base string
}

// chromium opens the login link of a console in a window as small as a phone.
func (h *environment) chromium(t *testing.T, c *console, scripts bool) *chromium {
	t.Helper()
	b := &chromium{t: t, ctx: tab.Open(t, c.url, tourDeadline).Context, base: c.url}
	require.NoError(t, chromedp.Do(b.ctx, chromedp.EmulateViewport(360, 760),
		tab.Command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !scripts}),
		chromedp.Navigate(h.loginLink(c))))
	b.until(`location.pathname === "/inbox"`)
	return b
}

func (b *chromium) open(path string) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, chromedp.Navigate(b.base+path)))
}

// is evaluates a condition in the page, also where its own scripts are switched off. It fails if the browser has ended.
func (b *chromium) is(condition string) bool {
	b.t.Helper()
	require.NoError(b.t, b.ctx.Err(), "the browser has ended before the page shows: %s", condition)
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](condition))
	return err == nil && v // the page may be loading
}

func (b *chromium) until(condition string) {
	b.t.Helper()
	defer func() {
		if b.t.Failed() {
			b.t.Log(b.text())
		}
	}()
	until(b.t, "the page shows: "+condition, func() bool { return b.is(condition) })
}

// text is the address and the text of the page.
func (b *chromium) text() string {
	page, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
	if err != nil {
		return err.Error()
	}
	return page
}

func (b *chromium) press(keys string) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, chromedp.KeyEvent(keys)))
}

// tab presses Tab until an element has the focus.
func (b *chromium) tab(selector string) {
	b.t.Helper()
	for range 80 {
		if b.is(`document.activeElement.matches(` + jsText(selector) + `)`) {
			return
		}
		b.press(kb.Tab)
	}
	b.t.Fatalf("no Tab leads to %s on %s", selector, b.text())
}

// enter writes a text into a field; nothing if the text is empty.
func (b *chromium) enter(selector, text string) {
	b.t.Helper()
	if text == "" {
		return
	}
	b.tab(selector)
	b.press(text)
}

// unfold opens the folded fields of a form.
func (b *chromium) unfold() {
	b.t.Helper()
	b.tab(`details.extra summary`)
	b.press(kb.Enter)
}

// send presses the button of a form, and waits for the text about its result.
func (b *chromium) send(button string) {
	b.t.Helper()
	b.tab(button)
	b.press(kb.Enter)
	b.until(`!!document.querySelector(".note")`)
}

func jsText(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err) // it is a text
	}
	return string(raw)
}

// message answers a question from the inbox, or steers the run from its page.
func (b *chromium) message(tr *trial, verb string, m contract.Message) {
	path := "/runs/" + metaOf(tr.t, tr.dir).RunID
	if verb == contract.VerbSteer {
		b.open(path)
		b.tab(`a[href$="/do/steer"]`)
		b.press(kb.Enter)
		b.until(`!!document.querySelector("#text")`)
		b.enter("#text", m.Text)
		b.enter("#role", m.Role)
		b.send(`form.form button`)
		return
	}
	b.open(path + "/do/decide")
	b.tab(`input[name=action]`)
	b.press(" ")
	for range 8 {
		if b.is(`document.querySelector("input[name=action]:checked").value === ` + jsText(m.Action)) {
			break
		}
		b.press(kb.ArrowDown)
	}
	require.True(b.t, b.is(`document.querySelector("input[name=action]:checked").value === `+jsText(m.Action)))
	b.enter("#feedback", m.Feedback)
	if m.Note != "" {
		b.unfold()
		b.enter("#note", m.Note)
	}
	b.send(`.send button`)
}

// chromiums are the browsers that tell the story of a run: with scripts; with the flag also without them.
func chromiums() map[string]bool {
	all := map[string]bool{"Chromium": true}
	if *bothWays {
		all["Chromium without scripts"] = false
	}
	return all
}
