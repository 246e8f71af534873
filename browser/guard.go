package browser

import (
	"context"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// guard decides on every request of one tab, and keeps the page from stopping
// the work.
type guard struct {
	ctx    context.Context
	origin string
	fail   context.CancelCauseFunc

	mu      sync.Mutex
	opened  bool // the document was asked for
	blocked []string
}

// watch is called for each event of the tab, in order. It must not wait.
func (g *guard) watch(ev any) {
	switch ev := ev.(type) {
	case *fetch.EventRequestPaused:
		g.answer(ev)
	case *network.EventWebSocketCreated:
		g.block(ev.URL)
	case *page.EventJavascriptDialogOpening:
		send(g, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
	case *inspector.EventTargetCrashed:
		g.fail(errCrashed)
	}
}

// answer lets the document through once, and what else comes from its origin,
// where nothing is. A later document would replace the page: it is dropped
// without a trace in the tab.
func (g *guard) answer(ev *fetch.EventRequestPaused) {
	mine := strings.HasPrefix(ev.Request.URL, g.origin)
	document := ev.ResourceType == network.ResourceTypeDocument
	g.mu.Lock()
	first := !g.opened
	g.opened = true
	g.mu.Unlock()
	switch {
	case mine && (first || !document):
		send(g, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: ev.RequestID})
	case document:
		g.block(ev.Request.URL)
		send(g, fetch.FailRequest, fetch.FailRequestParams{RequestID: ev.RequestID, ErrorReason: network.ErrorReasonAborted})
	default:
		g.block(ev.Request.URL)
		send(g, fetch.FailRequest, fetch.FailRequestParams{RequestID: ev.RequestID, ErrorReason: network.ErrorReasonBlockedByClient})
	}
}

func (g *guard) block(url string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.blocked = append(g.blocked, url)
}

func (g *guard) seen() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.blocked
}

// send sends a command of which the answer does not matter: if the tab is gone,
// the work on it fails by itself.
func send[P any](g *guard, c cdp.Command[P, cdp.Empty], params P) {
	target := chromedp.FromContext(g.ctx).Target
	go func() { _, _ = cdp.Call(g.ctx, target, c, params) }()
}
