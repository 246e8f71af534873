package report_test

import (
	"context"
	"flag"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/browser"
)

var pictures = flag.String("pictures", "", "a folder for pictures of the pages")

// screen is a tab of a real Chromium, with its messages and requests.
type screen struct {
	ctx context.Context
	mu  sync.Mutex
	log []string // messages of the console, and requests except for the page itself
}

func open(t *testing.T) *screen {
	t.Helper()
	program, err := browser.Find("")
	if err != nil {
		t.Skip(err)
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.Flag("disable-background-networking", true))
	alloc, stop := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(alloc)
	t.Cleanup(end)
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute) // for a busy machine
	t.Cleanup(cancel)
	s := &screen{ctx: ctx}
	require.NoError(t, chromedp.Listen(ctx, s.hear))
	require.NoError(t, chromedp.Do(ctx, enable(network.Enable, network.EnableParams{}),
		enable(runtime.Enable, cdp.Empty{}), enable(cdplog.Enable, cdp.Empty{})))
	return s
}

func enable[P any](c cdp.Command[P, cdp.Empty], p P) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, c, p)
		return chromedp.Void{}, err
	}
}

func (s *screen) hear(ev any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch ev := ev.(type) {
	case *network.EventRequestWillBeSent:
		if u := ev.Request.URL; !strings.HasPrefix(u, "file://") && !strings.HasPrefix(u, "data:") {
			s.log = append(s.log, "request for "+u)
		}
	case *runtime.EventConsoleAPICalled:
		s.log = append(s.log, "console: "+string(ev.Type))
	case *runtime.EventExceptionThrown:
		s.log = append(s.log, "exception: "+ev.ExceptionDetails.Text)
	case *cdplog.EventEntryAdded:
		s.log = append(s.log, "log: "+ev.Entry.Text)
	}
}

func (s *screen) messages() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log
}

// show opens a file at a width; scheme is light or dark.
func (s *screen) show(t *testing.T, path string, width int, scheme string) {
	t.Helper()
	require.NoError(t, chromedp.Do(s.ctx, chromedp.EmulateViewport(int64(width), 900),
		enable(emulation.SetEmulatedMedia,
			emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme",
				Value: scheme}}}),
		chromedp.Navigate((&url.URL{Scheme: "file", Path: path}).String())))
}

// keep takes a picture of the whole page with -pictures.
func (s *screen) keep(t *testing.T, name string) {
	t.Helper()
	if *pictures == "" {
		return
	}
	png, err := chromedp.Run(s.ctx, chromedp.FullScreenshot(100))
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(*pictures, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(*pictures, name+".png"), png, 0o644))
}

func ask[T any](t *testing.T, s *screen, script string) T {
	t.Helper()
	v, err := chromedp.Run(s.ctx, chromedp.Evaluate[T](script))
	require.NoError(t, err, script)
	return v
}

var widths = []int{390, 800, 1400}

// fits opens a page at every width, fully unfolded, and requires it to fit the screen without messages.
func fits(t *testing.T, path, name string) {
	s := open(t)
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range widths {
			s.show(t, path, width, scheme)
			s.keep(t, name+"-"+scheme+"-"+strconv.Itoa(width))
			ask[int](t, s, `document.querySelectorAll('details.fold').forEach(d => d.open = true), 0`)
			wide := ask[int](t, s, `document.documentElement.scrollWidth`)
			require.LessOrEqual(t, wide, width, "at %d pixels the page is %d wide", width, wide)
			if scheme == "light" {
				s.keep(t, name+"-open-"+strconv.Itoa(width))
			}
		}
	}
	require.Empty(t, s.messages())
}

var of = flag.String("of", "", "a page to take pictures of, with -pictures")

func TestPageRendersInBrowser(t *testing.T) {
	if *of == "" {
		t.Skip("-of names none")
	}
	fits(t, *of, strings.TrimSuffix(filepath.Base(*of), ".html"))
}
