package report_test

import (
	"flag"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/browser/tab"
)

var pictures = flag.String("pictures", "", "a folder for pictures of the pages")

// screen is a tab that loads nothing but files.
type screen struct{ *tab.Tab }

func open(t *testing.T) *screen {
	t.Helper()
	return &screen{tab.Open(t, "file://", 4*time.Minute)} // for a busy machine
}

// show opens a file at a width; scheme is light or dark.
func (s *screen) show(t *testing.T, path string, width int, scheme string) {
	t.Helper()
	require.NoError(t, chromedp.Do(s.Context, chromedp.EmulateViewport(int64(width), 900),
		tab.Command(emulation.SetEmulatedMedia,
			emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme",
				Value: scheme}}}),
		chromedp.Navigate((&url.URL{Scheme: "file", Path: path}).String())))
}

// keep takes a picture of the whole page with -pictures.
func (s *screen) keep(t *testing.T, name string) {
	t.Helper()
	s.Keep(t, *pictures, name)
}

func ask[T any](t *testing.T, s *screen, script string) T {
	t.Helper()
	v, err := chromedp.Run(s.Context, chromedp.Evaluate[T](script))
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
	require.Empty(t, s.Messages())
}

var of = flag.String("of", "", "a page to take pictures of, with -pictures")

func TestPageRendersInBrowser(t *testing.T) {
	if *of == "" {
		t.Skip("-of names none")
	}
	fits(t, *of, strings.TrimSuffix(filepath.Base(*of), ".html"))
}
