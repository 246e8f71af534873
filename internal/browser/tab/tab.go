// Package tab is a tab of a real Chromium in tests of pages: it records what a page prints, and what it loads from
// elsewhere.
package tab

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/browser"
)

// Tab records messages and requests.
type Tab struct {
	Context context.Context // of chromedp
	own     string
	mu      sync.Mutex
	log     []string
}

// Open starts a Chromium until the test ends, or skips the test if there is none. own is the beginning of the URLs that
// pages may load.
func Open(t *testing.T, own string, timeout time.Duration, options ...chromedp.ExecAllocatorOption) *Tab {
	t.Helper()
	program, err := browser.Find("")
	if err != nil {
		t.Skip(err)
	}
	options = append(append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.Flag("disable-background-networking", true)), options...)
	alloc, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(alloc)
	t.Cleanup(end)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	t.Cleanup(cancel)
	b := &Tab{Context: ctx, own: own}
	require.NoError(t, chromedp.Listen(ctx, b.record))
	require.NoError(t, chromedp.Do(ctx, Command(network.Enable, network.EnableParams{}),
		Command(runtime.Enable, cdp.Empty{}), Command(cdplog.Enable, cdp.Empty{})))
	return b
}

// Keep writes a picture of the whole page into a folder; empty: none.
func (b *Tab) Keep(t *testing.T, folder, name string) {
	t.Helper()
	if folder == "" {
		return
	}
	png, err := chromedp.Run(b.Context, chromedp.FullScreenshot(100))
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(folder, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(folder, name+".png"), png, 0o644))
}

// Command is the action that sends a command of the DevTools protocol.
func Command[P any](c cdp.Command[P, cdp.Empty], p P) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, c, p)
		return chromedp.Void{}, err
	}
}

func (b *Tab) record(ev any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch ev := ev.(type) {
	case *network.EventRequestWillBeSent:
		if u := ev.Request.URL; !strings.HasPrefix(u, b.own) && !strings.HasPrefix(u, "data:") {
			b.log = append(b.log, "request for "+u)
		}
	case *runtime.EventConsoleAPICalled:
		b.log = append(b.log, "console: "+string(ev.Type))
	case *runtime.EventExceptionThrown:
		b.log = append(b.log, "exception: "+ev.ExceptionDetails.Text)
	case *cdplog.EventEntryAdded:
		b.log = append(b.log, "log: "+ev.Entry.Text)
	}
}

// Messages are messages of the console, exceptions, and requests for URLs that are not own.
func (b *Tab) Messages() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.log)
}
