package browser_test

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/browser"
)

var (
	desktop = browser.Size{W: 1440, H: 900}
	tablet  = browser.Size{W: 768, H: 1024}
	cycle   = browser.Request{
		Sizes: []browser.Size{desktop, tablet},
		Kinds: []string{browser.Full, browser.Viewport, browser.Scroll},
	}
)

// needBrowser skips a test of a real browser where there is none.
func needBrowser(t *testing.T) {
	t.Helper()
	if _, err := browser.Find(""); err != nil {
		t.Skipf("%v: run `make chromium`", err)
	}
}

func shoot(t *testing.T, html []byte, r browser.Request) browser.Result {
	t.Helper()
	needBrowser(t)
	temp := t.TempDir()
	res, err := browser.Shoot(t.Context(), browser.Options{TempDir: temp}, browser.Page{HTML: html, Name: "test page"},
		r)
	require.NoError(t, err)
	requireGone(t, temp)
	return res
}

func markerPage(t *testing.T) []byte {
	t.Helper()
	html, err := os.ReadFile("testdata/page.html")
	require.NoError(t, err)
	return html
}

func decode(t *testing.T, s browser.Shot) image.Image {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(s.PNG))
	require.NoError(t, err, s.Name)
	require.Equal(t, image.Pt(s.Width, s.Height), img.Bounds().Size(), s.Name)
	return img
}

func at(t *testing.T, img image.Image, x, y int, want uint32) {
	t.Helper()
	got := color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)
	require.Equal(t, color.RGBA{uint8(want >> 16), uint8(want >> 8), uint8(want), 255}, got, "at %d,%d", x, y)
}

func TestCycleScreenshots(t *testing.T) {
	res := shoot(t, markerPage(t), cycle)
	again := shoot(t, markerPage(t), cycle)
	var names []string
	shots := map[string]image.Image{}
	for i, s := range res.Shots {
		names = append(names, s.Name)
		shots[s.Name] = decode(t, s)
		require.Equal(t, s.PNG, again.Shots[i].PNG, "%s of the same page differ", s.Name)
	}
	require.Equal(t, []string{
		"full-1440x900.png", "viewport-1440x900.png",
		"scroll-1440x900-step1.png", "scroll-1440x900-step2.png", "scroll-1440x900-step3.png",
		"full-768x1024.png", "viewport-768x1024.png",
		"scroll-768x1024-step1.png", "scroll-768x1024-step2.png",
	}, names)
	require.Empty(t, res.Blocked)
	require.Empty(t, res.Notes)

	for _, size := range []browser.Size{desktop, tablet} {
		view, full := shots["viewport-"+size.String()+".png"], shots["full-"+size.String()+".png"]
		require.Equal(t, image.Pt(size.W, size.H), view.Bounds().Size())
		require.Equal(t, image.Pt(size.W, 3000), full.Bounds().Size())
		for _, img := range []image.Image{view, full} {
			at(t, img, 300, 38, 0x222222)
			at(t, img, 10, 110, 0x00ffff)  // endless motion at rest
			at(t, img, 110, 110, 0xff00ff) // finite motion at its end
			at(t, img, 210, 110, 0x808000) // endless motion of a script at rest
			at(t, img, 310, 110, 0x800000) // a transition at its end
			at(t, img, 600, size.H-1, 0x00ff00)
		}
		at(t, full, 600, size.H, 0xffffff) // the hero is one viewport high, not one page
		at(t, full, 600, 1850, 0xff8000)   // loaded by scrolling
		at(t, full, 600, 2950, 0x0000ff)
		at(t, full, 600, 2899, 0xffffff)
	}
	first := shots["scroll-1440x900-step1.png"]
	at(t, first, 600, 39, 0x222222)
	at(t, first, 600, 41, 0xffffff)
	second := shots["scroll-1440x900-step2.png"] // 1800 to 2700
	at(t, second, 600, 50, 0xff8000)
	at(t, second, 600, 100, 0xffffff)
	last := shots["scroll-1440x900-step3.png"] // as far as it goes: 2100 to 3000
	at(t, last, 600, 799, 0xffffff)
	at(t, last, 600, 800, 0x0000ff)
}
