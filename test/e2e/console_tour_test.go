package e2e_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// tourDefinition is a pipeline whose second call lasts until a file exists.
const tourDefinition = `pipeline: tour
workspace: {git: worktree}
budget: {calls: %d}
agents:
  writer: {run: [sh, -c, "echo line >>work.txt; echo I added a line."], reply: text}
  slow: {run: [sh, -c, "until [ -e '%s' ]; do sleep 0.05; done; echo more >>work.txt; echo I added more."], reply: text}
roles:
  writer: {prompt: p.md, gives: changes, agent: writer}
  slow: {prompt: p.md, gives: changes, agent: slow}
stages:
  - {name: first, steps: [{role: writer}]}
  - {name: second, steps: [{role: slow}]}
  - {name: third, steps: [{run: "grep -q more work.txt"}, {ask: "Is this right?"}]}
`

// shows waits until the page has a text, which it may get without a reload.
func (b *chromium) shows(text string) {
	b.t.Helper()
	b.until(`document.body.innerText.includes(` + jsText(text) + `)`)
}

// follow follows a link by key, to a page with a heading.
func (b *chromium) follow(link, heading string) {
	b.t.Helper()
	b.tab(link)
	b.press(kb.Enter)
	b.until(`document.querySelector("h1").innerText.startsWith(` + jsText(heading) + `)`)
}

// TestBrowserTour controls a run from the pages with keys alone: it pauses, amends, resumes, cancels, reverts
// and decides it, and starts a fork and a replay. At the end the browser is logged out.
func TestBrowserTour(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	tr := h.repository(h.dir("source"), "line\n")
	tr.dir = h.dir("run")
	definition, gate := h.dir("pipeline.yaml"), h.dir("gate")
	write := func(calls int) {
		require.NoError(t, os.WriteFile(definition, fmt.Appendf(nil, tourDefinition, calls, gate), 0o600))
	}
	require.NoError(t, os.WriteFile(h.dir("p.md"), []byte("Do it.\n"), 0o600))
	write(50)
	h.starter("run", definition, "--source", tr.source, "--output-dir", tr.dir, "--task", "Add lines.", "--detach")
	b := h.chromium(t, h.console(""), true)
	path := "/runs/" + metaOf(t, tr.dir).RunID

	b.open(path)
	b.until(`!!document.querySelector("#now article")`) // the call runs
	b.send(`form[action$="/do/pause"] button`)
	b.open(path)
	b.shows("a pause is requested by ")
	write(60)
	b.follow(`a[href$="/do/amend"]`, "Amend")
	b.enter("#config", definition)
	b.send(`form.form button`)
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	b.shows("The run is paused")
	b.send(`form[action$="/do/resume"] button`)
	b.shows("Is this right?")

	b.follow(`a[href$="/do/cancel"]`, "Cancel")
	b.send(`form.form button`)
	b.shows("The run was cancelled")
	b.open(path + "/checkpoints")
	b.follow(`ol.marks li:last-child a[href*="/do/revert?at="]`, "Revert to ")
	b.shows("What is left behind")
	b.shows("Passes after the checkpoint")
	b.send(`form.form button`)
	b.until(`!!document.querySelector("#asks h2")`) // its timeline shows the question that was reverted
	b.open(path + "/do/decide")
	b.tab(`input[name=action][value=continue]`)
	b.press(" ")
	b.send(`.send button`)
	b.open(path)
	b.shows("The run is completed")

	for _, branch := range []string{"Fork", "Replay"} {
		b.open(path + "/checkpoints")
		b.follow(fmt.Sprintf(`ol.marks li:last-child a[href*="/do/%s?at="]`, strings.ToLower(branch)), branch+" from ")
		b.send(`form.form button`)
		b.shows("This is the new run, a " + strings.ToLower(branch))
		b.until(`location.pathname !== ` + jsText(path))
		b.shows("Is this right?")
	}
	b.open(path)
	b.follow(`form[action="/logout"] button`, "Logged out")
	b.open(path)
	b.until(`document.querySelector("h1").innerText === "Log in"`)

	events := eventsOf(t, tr.dir)
	require.Len(t, of[run.RunPaused](events, run.KindRunPaused), 1)
	require.Len(t, of[run.RunAmended](events, run.KindRunAmended), 1)
	require.Len(t, of[run.RunReverted](events, run.KindRunReverted), 1)
	require.Equal(t, 2, metaOf(t, tr.dir).Epoch)
	require.Equal(t, string(run.Done), metaOf(t, tr.dir).Status)
}
