package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/passbook-run/passbook/internal/layout"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/rundir"
)

// TestReport reads the page about a real run, in a real browser: what it shows is what state.json says. With -pictures
// the page is kept.
func TestReport(t *testing.T) {
	t.Parallel()
	h := newEnv(t, realBrowser)
	h.finish(h.dir("done"))
	file := filepath.Join(h.root, "page.html")
	h.starter("report", h.dir("done"), "--out", file)
	w := h.webUI()
	w.base = (&url.URL{Scheme: "file", Path: file}).String()
	w.shows(t, 1400)
	output := strings.Join(strings.Fields(w.page(t, "", "Checks passed", "")), " ")

	var state rundir.PipelineState
	raw, err := os.ReadFile(filepath.Join(h.dir("done"), filepath.FromSlash(layout.StateFile)))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &state))
	require.Equal(t, 16, state.LastCompletedCorpusPass)
	for _, want := range []string{
		"Passes 16/16", fmt.Sprintf("Cost $%.2f", state.Cost.TotalEstimatedCostUSD),
		fmt.Sprintf("Score %.1f", *state.LastPAScore), "Checks passed 16/16",
		fmt.Sprintf("Conviction %d", state.ConvictionEntryCount), fmt.Sprintf("Discovery %d", state.DiscoveryEntryCount),
		"Cycle 1: 2.5", "cp-S2 16",
	} {
		require.Contains(t, output, want)
	}
	w.keepTop(t, 1400, 1000, "report")
	w.keepTop(t, 390, 1100, "report-phone")
	w.jump(t, 1400, 1000, "gallery", "report-gallery")
}

// shows makes the window as wide as a screen.
func (w webUI) shows(t *testing.T, width int64) {
	t.Helper()
	require.NoError(t, chromedp.Do(w.ctx, chromedp.EmulateViewport(width, 1000)))
}

func (w webUI) keepTop(t *testing.T, width, height int64, name string) {
	t.Helper()
	w.jump(t, width, height, "", name)
}

// jump goes to a section of the page, and keeps what is there.
func (w webUI) jump(t *testing.T, width, height int64, section, name string) {
	t.Helper()
	require.NoError(t, chromedp.Do(w.ctx, chromedp.EmulateViewport(width, height), chromedp.Navigate(w.base)))
	if section != "" {
		w.do(t, `(document.documentElement.style.scrollBehavior = 'auto', document.getElementById(`+quoted(section)+
			`).scrollIntoView(), true)`)
	}
	w.keep(t, name)
}
