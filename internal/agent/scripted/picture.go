package scripted

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path"
	"slices"
	"strings"
)

// proof are the colours of the proof mark, a block in the page's top left corner: one for each level of polish.
// The page draws it from data-polish, so a picture of the page shows how polished it is.
var proof = []color.RGBA{
	{R: 0xa6, G: 0x3d, B: 0x2f, A: 0xff},
	{R: 0xd0, G: 0x8c, B: 0x2e, A: 0xff},
	{R: 0x4d, G: 0x7c, B: 0x57, A: 0xff},
	{R: 0x2f, G: 0x5d, B: 0x8a, A: 0xff},
}

// The proof mark is proofSize CSS pixels wide and high. A colour may be off by proofSlack in each channel.
const (
	proofSize  = 24
	proofSlack = 24
)

// look returns how polished the page is, and the source of that.
func (c call) look() (polish int, from string, err error) {
	if len(c.pictures) == 0 {
		if c.page == nil {
			return 0, "", errors.New("the prompt holds neither pictures nor the page's source")
		}
		return c.page.polish, "the source", nil
	}
	isTop := func(name string) bool { return strings.HasPrefix(path.Base(name), "viewport-") }
	name := c.pictures[max(0, slices.IndexFunc(c.pictures, isTop))]
	polish, err = readProof(name)
	return polish, path.Base(name), err
}

func readProof(name string) (int, error) {
	raw, err := os.ReadFile(name)
	if err != nil {
		return 0, fmt.Errorf("read picture: %w", err)
	}
	picture, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		return 0, fmt.Errorf("read picture %s: %w", name, err)
	}
	for level, want := range proof {
		if shows(picture, want) {
			return level, nil
		}
	}
	return 0, fmt.Errorf("read picture %s: no proof mark in its top left corner, %d pixels wide", name, proofSize)
}

// shows reports whether the whole mark except its edge has this colour.
func shows(picture image.Image, want color.RGBA) bool {
	for _, at := range []int{proofSize / 4, proofSize / 2, proofSize * 3 / 4} {
		corner := picture.Bounds().Min
		got := color.RGBAModel.Convert(picture.At(corner.X+at, corner.Y+at)).(color.RGBA)
		if far(got.R, want.R) || far(got.G, want.G) || far(got.B, want.B) {
			return false
		}
	}
	return true
}

func far(a, b uint8) bool {
	d := int(a) - int(b)
	return d > proofSlack || d < -proofSlack
}
