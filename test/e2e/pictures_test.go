package e2e_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// proofs are the colours of the mark in the page's top left corner, 24 pixels wide and high: one for each level of
// polish.
var proofs = []color.RGBA{{0xa6, 0x3d, 0x2f, 0xff}, {0xd0, 0x8c, 0x2e, 0xff}, {0x4d, 0x7c, 0x57, 0xff}}

var pictureName = regexp.MustCompile(`^(full|viewport|scroll)-(\d+)x(\d+)(?:-step(\d+))?\.png$`)

// testPictures decodes what the auditors of the demo saw: sizes, numbers, and that each cycle shows the page as it was
// then.
func testPictures(t *testing.T, dir string) {
	for cycle := 1; cycle <= 3; cycle++ {
		folder := filepath.Join(dir, stateOf(t, dir).PACycleRecords[strconv.Itoa(cycle)].ScreenshotDir)
		names, err := filepath.Glob(filepath.Join(folder, "*.png"))
		require.NoError(t, err)
		require.Len(t, names, stateOf(t, dir).PACycleRecords[strconv.Itoa(cycle)].ScreenshotCount)
		kinds := map[string]int{}
		for _, name := range names {
			kinds[testPicture(t, name, proofs[cycle-1])]++
		}
		for _, size := range []string{"1440x900", "768x1024"} {
			require.Equal(t, 1, kinds["full-"+size])
			require.Equal(t, 1, kinds["viewport-"+size])
			for n := 1; n <= kinds["scroll-"+size]; n++ {
				require.FileExists(t, filepath.Join(folder, fmt.Sprintf("scroll-%s-step%d.png", size, n)),
					"scroll steps are numbered from 1")
			}
			require.Positive(t, kinds["scroll-"+size])
		}
	}
}

// testPicture checks one picture and says of which kind and size it is.
func testPicture(t *testing.T, name string, proof color.RGBA) string {
	t.Helper()
	m := pictureName.FindStringSubmatch(filepath.Base(name))
	require.NotNil(t, m, "a picture of another name: %s", name)
	raw, err := os.ReadFile(name)
	require.NoError(t, err)
	img, err := png.Decode(bytes.NewReader(raw))
	require.NoError(t, err, name)
	size := img.Bounds().Size()
	require.Equal(t, m[2], strconv.Itoa(size.X), name)
	if m[1] == "full" {
		require.GreaterOrEqual(t, size.Y, atoi(t, m[3]), "%s is smaller than its window", name)
	} else {
		require.Equal(t, m[3], strconv.Itoa(size.Y), name)
	}
	if m[1] != "scroll" {
		require.Equal(t, proof, at(img, 12, 12), "the mark in %s", name)
		require.Equal(t, proof, at(img, 22, 22), "the mark in %s", name)
		require.NotEqual(t, proof, at(img, 30, 30), "the mark in %s is 24 pixels wide", name)
	}
	return fmt.Sprintf("%s-%sx%s", m[1], m[2], m[3])
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}

func at(img image.Image, x, y int) color.RGBA {
	p := img.Bounds().Min
	return color.RGBAModel.Convert(img.At(p.X+x, p.Y+y)).(color.RGBA)
}
