package report_test

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/browser/tab"
	"github.com/passbook-run/passbook/internal/report"
)

// screen is a tab that loads nothing but files.
type screen struct{ *tab.Tab }

// open starts a browser, or skips the test if there is none.
func open(t *testing.T) *screen {
	t.Helper()
	return &screen{tab.Open(t, "file://", 4*time.Minute)} // for a busy machine
}

// show opens a page at a width; scheme is light or dark.
func (s *screen) show(t *testing.T, page string, width int, scheme string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.html")
	require.NoError(t, os.WriteFile(path, []byte(page), 0o600))
	require.NoError(t, chromedp.Do(s.Context, chromedp.EmulateViewport(int64(width), 900),
		tab.Command(emulation.SetEmulatedMedia,
			emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme",
				Value: scheme}}}),
		chromedp.Navigate((&url.URL{Scheme: "file", Path: path}).String())))
}

func ask[T any](t *testing.T, s *screen, script string) T {
	t.Helper()
	v, err := chromedp.Run(s.Context, chromedp.Evaluate[T](script))
	require.NoError(t, err, script)
	return v
}

// fits opens a page at several widths, fully unfolded, and requires it to fit the screen without messages.
func (s *screen) fits(t *testing.T, page string) {
	t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int{390, 800, 1400} {
			s.show(t, page, width, scheme)
			ask[int](t, s, `document.querySelectorAll('details.fold').forEach(d => d.open = true), 0`)
			require.LessOrEqual(t, ask[int](t, s, `document.documentElement.scrollWidth`), width)
		}
	}
	require.Empty(t, s.Messages())
}

// TestPagesFitInBrowser opens pages in a real browser: no requests, no messages, no overflow, no injected markup.
func TestPagesFitInBrowser(t *testing.T) {
	s := open(t)
	page := write(t, storyDir(t), report.Options{})
	s.fits(t, page)
	s.show(t, page, 800, "light")
	require.Zero(t, ask[int](t, s, `document.querySelectorAll('script, img[src="x"], [onerror]').length`))
	require.Contains(t, ask[string](t, s, `document.querySelector('.task').innerText`), "<script>alert(1)</script>")
	width := `document.querySelector('.shot img').getBoundingClientRect().width`
	small := ask[float64](t, s, width)
	ask[int](t, s, `document.querySelector('.shot summary').focus(), document.activeElement.click(), 0`)
	require.True(t, ask[bool](t, s, `getComputedStyle(document.querySelector('.shot summary')).position === 'fixed'`),
		"the picture does not fill the screen")
	ask[int](t, s, `document.activeElement.click(), 0`)
	require.Equal(t, small, ask[float64](t, s, width))
	require.Empty(t, s.Messages())
}
