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

// requestFilter filters the requests of one tab, and handles dialogs and crashes.
type requestFilter struct {
	ctx    context.Context
	origin string
	fail   context.CancelCauseFunc

	mu      sync.Mutex
	opened  bool // the document was requested
	blocked []string
}

// handle is called for each event of the tab, in order. It must not block.
func (g *requestFilter) handle(ev any) {
	switch ev := ev.(type) {
	case *fetch.EventRequestPaused:
		g.decide(ev)
	case *network.EventWebSocketCreated:
		g.block(ev.URL)
	case *page.EventJavascriptDialogOpening:
		send(g, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
	case *inspector.EventTargetCrashed:
		g.fail(errCrashed)
	}
}

// decide allows the document once, and other requests to its origin, which serves nothing else. A later document
// would replace the page and is dropped.
func (g *requestFilter) decide(ev *fetch.EventRequestPaused) {
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
		send(g, fetch.FailRequest, fetch.FailRequestParams{RequestID: ev.RequestID,
			ErrorReason: network.ErrorReasonAborted})
	default:
		g.block(ev.Request.URL)
		send(g, fetch.FailRequest, fetch.FailRequestParams{
			RequestID: ev.RequestID, ErrorReason: network.ErrorReasonBlockedByClient,
		})
	}
}

func (g *requestFilter) block(url string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.blocked = append(g.blocked, url)
}

func (g *requestFilter) blockedURLs() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.blocked
}

// send sends a command and ignores the response: if the tab is gone, its other commands fail.
func send[P any](g *requestFilter, c cdp.Command[P, cdp.Empty], params P) {
	target := chromedp.FromContext(g.ctx).Target
	go func() { _, _ = cdp.Call(g.ctx, target, c, params) }()
}
