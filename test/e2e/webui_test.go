package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/internal/browser"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// pausedQuery is the query of docs/operating.md for paused runs.
const pausedQuery = `WorkflowType = "Pipeline" AND ExecutionStatus = "Running" AND PassbookStatus = "paused"`

// webUI is a real browser that opens the environment's Web UI.
type webUI struct {
	ctx  context.Context
	base string
}

func (h *environment) webUI() webUI {
	h.t.Helper()
	program, err := browser.Find("")
	if err != nil {
		h.t.Skip(err)
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.WindowSize(1400, 1000),
		chromedp.Flag("disable-background-networking", true))
	alloc, stop := chromedp.NewExecAllocator(h.t.Context(), opts...)
	h.t.Cleanup(stop)
	ctx, end := chromedp.NewContext(alloc)
	h.t.Cleanup(end)
	require.NoError(h.t, chromedp.Do(ctx)) // the browser lives as long as the context that opens it
	w := webUI{ctx: ctx, base: h.running().Server.UI}
	w.navigate(h.t, strings.TrimSpace(h.starter("server", "ui")))
	until(h.t, "the link leads to the list of runs", func() bool { // over pages, each of which ends the script
		at, err := chromedp.Run(w.ctx, chromedp.Evaluate[string]("location.pathname"))
		return err == nil && strings.HasPrefix(at, "/namespaces")
	})
	return w
}

// navigate opens an address. Each step has a separate deadline.
func (w webUI) navigate(t *testing.T, address string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, deadline)
	defer cancel()
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(address)), address)
}

// pageText is all that a page shows. Markdown is in separate frames.
const pageText = `[document.body?.innerText ?? '', ...[...document.querySelectorAll('svg text')].map(x => ` +
	`x.textContent), ...[...document.querySelectorAll('iframe')].map(f => f.contentDocument?.body?.innerText ?? ` +
	`'')].join('\\n')`

// page opens a page, waits until a text is on it, and returns all of its text.
func (w webUI) page(t *testing.T, path, wait string) string {
	t.Helper()
	w.navigate(t, w.base+path)
	shown := func() error {
		_, err := chromedp.Run(w.ctx, chromedp.Poll[bool](`(`+pageText+`).includes(`+quoted(wait)+`)`,
			chromedp.WithPollingTimeout(deadline)))
		return err
	}
	err := shown()
	for err != nil && strings.Contains(err.Error(), "Cannot find context") { // the page loads itself again
		err = shown()
	}
	require.NoError(t, err, "%s does not show %q", path, wait)
	output, err := chromedp.Run(w.ctx, chromedp.Evaluate[string](pageText))
	require.NoError(t, err)
	return output
}

func quoted(s string) string { return "'" + s + "'" }

// TestWebUI reads the runs in Temporal's Web UI alone: a list that can be filtered, and a page that shows what a run
// waits for and what to type.
func TestWebUI(t *testing.T) {
	t.Parallel()
	h := sharedEnv(t)
	other := metaOf(t, h.asksAboutThePlan("asks")).RunID
	h.spoil("- {at: 3, do: slow, seconds: 600}\n")
	dir := h.dir("paused")
	h.begin(dir)
	h.mid("003")
	h.spoil("[]\n")
	h.starter("budget", dir, "--usd", "0.3")
	h.starter("pause", dir, "--now")
	until(t, "the run is paused", func() bool { return statusIs(dir, run.Paused) })
	h.starter("resume", dir)
	until(t, "the budget is spent", func() bool { return metaOf(t, dir).Reason == run.BudgetThreshold })
	id := h.id("paused")
	until(t, "the list has it", func() bool { return counted(t, h.dial(), pausedQuery+` AND WorkflowId = "`+id+`"`) == 1 })
	w := h.webUI()
	w.columns(t, "Status", "PassbookPipeline", "PassbookStatus", "PassbookStage", "PassbookCostUSD", "Workflow ID")
	list := w.page(t, "/namespaces/default/workflows?query="+
		url.QueryEscape(`PassbookPipeline = "corpus-tiny" AND `+pausedQuery), id)
	require.NotContains(t, list, other, "the list is not filtered")
	require.Regexp(t, `(?s)corpus-tiny\s+paused\s+corpus-integration\s+0\.\d+\s+`+id, list)

	page := w.page(t, h.tab("paused", "user-metadata"), "budget-threshold")
	for _, text := range []string{"corpus-tiny in " + dir, run.Next(run.Paused, run.BudgetThreshold),
		"starter budget " + dir, " of 0.30 USD ("} {
		require.Contains(t, page, text)
	}
	require.Contains(t, w.page(t, h.tab("paused", "search-attributes"), "PassbookStatus"), "paused")
	require.Contains(t, w.page(t, h.tab("paused", "timeline"), "Turn"), "Rotation")
}

// columns chooses the columns of the list, as Configure Columns below it does; the browser keeps them.
func (w webUI) columns(t *testing.T, labels ...string) {
	t.Helper()
	var all []map[string]string
	for _, l := range labels {
		all = append(all, map[string]string{"label": l})
	}
	raw, err := json.Marshal(map[string]any{"default": all})
	require.NoError(t, err)
	w.navigate(t, w.base+"/namespaces/default/workflows")
	w.do(t, `(localStorage.setItem('namespace-workflow-table-columns', `+quoted(string(raw))+`), true)`)
}

// tab is a page of the Web UI about a run.
func (h *environment) tab(name, tab string) string {
	h.t.Helper()
	d, err := h.dial().DescribeWorkflow(h.t.Context(), h.id(name), "")
	require.NoError(h.t, err)
	return "/namespaces/default/workflows/" + h.id(name) + "/" + d.WorkflowExecution.RunID + "/" + tab
}

// id is the ID of the run in a directory of the environment.
func (h *environment) id(name string) string { return metaOf(h.t, h.dir(name)).RunID }

// shown is the first element that can be seen, and that begins with a text.
func shown(selector, text string) string {
	return `[...document.querySelectorAll(` + quoted(selector) +
		`)].find(e => e.checkVisibility() && (e.innerText ?? '').trim().startsWith(` + quoted(text) + `))`
}

// click waits until an element can be seen, and clicks it.
func (w webUI) click(t *testing.T, selector, text string) {
	t.Helper()
	_, err := chromedp.Run(w.ctx, chromedp.Poll[bool](`!!(`+shown(selector, text)+`)`,
		chromedp.WithPollingTimeout(deadline)))
	require.NoError(t, err, "there is no %s %s", selector, text)
	w.do(t, `(() => { `+shown(selector, text)+`.click(); return true })()`)
}

func (w webUI) do(t *testing.T, script string) {
	t.Helper()
	ok, err := chromedp.Run(w.ctx, chromedp.Evaluate[bool](script))
	require.NoError(t, err)
	require.True(t, ok, script)
}

// TestDocumentedQueries finds the runs that matter among fifty, by status, stage and score, with the queries that
// docs/operating.md shows.
func TestDocumentedQueries(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.starter("server", "start")
	stages := []string{"corpus-integration", "pa-hardening"}
	statuses := []run.Status{run.Running, run.Paused, run.AwaitingPhaseHandoff, run.Done, run.Failed}
	c := h.dial()
	for i := range 50 {
		_, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
			ID: fmt.Sprintf("run-%02d", i), TaskQueue: "nobody", TypedSearchAttributes: temporal.NewSearchAttributes(
				temporal.NewSearchAttributeKeyKeyword("PassbookPipeline").ValueSet("corpus"),
				temporal.NewSearchAttributeKeyKeyword("PassbookStatus").ValueSet(string(statuses[i%5])),
				temporal.NewSearchAttributeKeyKeyword("PassbookStage").ValueSet(stages[i/5%2]),
				temporal.NewSearchAttributeKeyFloat64("PassbookScore").ValueSet(float64(i%8)/2),
			),
		}, contract.PipelineWorkflow, contract.Input{})
		require.NoError(t, err)
	}
	until(t, "the list has all of them", func() bool { return counted(t, c, `WorkflowType = "Pipeline"`) == 50 })
	page := string(read(t, filepath.Join(project, "docs", "operating.md")))
	_, table, ok := strings.Cut(page, "\n## In the Web UI\n")
	require.True(t, ok)
	table, _, _ = strings.Cut(table, "\n## ")
	for query, found := range map[string]int64{
		pausedQuery: 10,
		`WorkflowType = "Pipeline" AND ExecutionStatus = "Running" AND PassbookStatus STARTS_WITH "awaiting"`: 10,
		`WorkflowType = "Pipeline" AND ExecutionStatus = "Running" AND PassbookStatus = "running" ` +
			`AND PassbookStage = "pa-hardening"`: 5,
		`WorkflowType = "Pipeline" AND ExecutionStatus = "Running" AND PassbookStage = "pa-hardening" ` +
			`AND PassbookScore < 3`: 18,
		`WorkflowType = "Pipeline" AND PassbookStatus IN ("failed", "interrupted", "halted") ` +
			`AND StartTime > "2026-01-01T00:00:00Z"`: 10,
	} {
		require.Contains(t, table, query)
		require.Equal(t, found, counted(t, c, query), query)
	}
}
