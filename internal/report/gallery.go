package report

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"html/template"
	"image"
	"image/jpeg"
	"image/png"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/image/draw"

	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// strip is one view of the page in each cycle: the pictures before and after each refinement side by side.
type strip struct {
	Name  string
	Shots []shot
}

// shot is one picture.
type shot struct {
	Caption string
	Alt     string
	Source  template.URL // a data URI
	Width   int
	Height  int
}

const (
	maxPicture = 300 << 10 // bytes of a PNG that is embedded unchanged
	maxWide    = 1200      // width in pixels of a reduced picture
	maxTall    = 4000
	maxPixels  = 60_000_000 // of a picture that is decoded at all
)

// gallery adds pictures to the page, as far as there is space: first the whole page and its top in every cycle, then
// the others.
func (v *page) gallery(s source) {
	room := s.opt.Pictures
	left, size := 0, int64(0)
	for _, n := range namesOf(v, s) {
		st := strip{Name: ViewOf(n.name)}
		for _, p := range n.shots {
			pic, used, err := embed(s.dir, p.shot, room)
			switch {
			case err != nil:
				v.leave("picture %s: %v", p.shot.Name, err)
			case used == 0:
				left++
				size += p.shot.Size
			default:
				room -= used
				pic.Caption, pic.Alt = caption(s, p.round), fmt.Sprintf("The page in %s %d, %s", s.words().Round, p.round, st.Name)
				st.Shots = append(st.Shots, pic)
			}
		}
		switch {
		case len(st.Shots) == 0:
		case n.first:
			v.Strips = append(v.Strips, st)
		default:
			v.More = append(v.More, st)
		}
	}
	if left > 0 {
		v.leave("%s of %.1f MB are not on the page", plural(left, "picture"),
			float64(size)/1e6)
	}
}

// ViewOf describes a picture: full-1440x900.png is "Whole page, 1440x900".
func ViewOf(name string) string {
	name = strings.TrimSuffix(name, path.Ext(name))
	kind, rest, _ := strings.Cut(name, "-")
	size, step, scrolled := strings.Cut(rest, "-step")
	switch {
	case kind == "full":
		return "Whole page, " + size
	case kind == "viewport":
		return "Top of the page, " + size
	case kind == "scroll" && scrolled:
		return fmt.Sprintf("Further down, screen %s, %s", step, size)
	}
	return name
}

// picture is a picture of a round.
type picture struct {
	round int
	shot  run.Shot
}

type named struct {
	name  string
	first bool // shown initially
	shots []picture
}

// namesOf sorts the pictures by their view.
func namesOf(v *page, s source) []named {
	var all []named
	for _, taken := range s.found.History.Shots {
		shots, err := s.dir.Pictures(taken.Screenshots)
		if err != nil {
			v.leave("the pictures of round %d cannot be read: %v", taken.Round, err)
			continue
		}
		for _, one := range shots {
			name := path.Base(one.Name)
			i := slices.IndexFunc(all, func(n named) bool { return n.name == name })
			if i < 0 {
				i, all = len(all), append(all, named{name: name, first: !strings.HasPrefix(name, "scroll-")})
			}
			all[i].shots = append(all[i].shots, picture{taken.Round, one})
		}
	}
	slices.SortStableFunc(all, func(a, b named) int { return cmp.Compare(rank(a.name), rank(b.name)) })
	return all
}

// rank sorts the top of the page first, then the whole page, then scrolled views.
func rank(name string) int {
	for i, kind := range []string{"viewport-", "full-"} {
		if strings.HasPrefix(name, kind) {
			return i
		}
	}
	return 2
}

// caption names the cycle and whether the picture is before or after its refinement.
func caption(s source, round int) string {
	text := fmt.Sprintf("%s %d", view.Title(s.words().Round), round)
	if r, ok := s.book.PACycleRecords[fmt.Sprint(round)]; ok && r.PAScore != nil {
		text += fmt.Sprintf(": %.1f", *r.PAScore)
	}
	if r, ok := s.book.PACycleRecords[fmt.Sprint(round-1)]; ok && r.Refine != nil {
		return text + ", after refining"
	}
	return text
}

// embed reads a picture and reduces it for the page. It returns its size in bytes; 0: no space left.
func embed(d rundir.Dir, p run.Shot, room int64) (shot, int64, error) {
	if room <= 0 {
		return shot{}, 0, nil
	}
	raw, err := readLocal(d, p.Name)
	if err != nil {
		return shot{}, 0, err
	}
	c, err := png.DecodeConfig(bytes.NewReader(raw))
	if err != nil {
		return shot{}, 0, fmt.Errorf("not a PNG: %w", err)
	}
	kind, width, height := "image/png", c.Width, c.Height
	if len(raw) > maxPicture && c.Width*c.Height <= maxPixels {
		if raw, width, height, err = smaller(raw); err != nil {
			return shot{}, 0, err
		}
		kind = "image/jpeg"
	}
	if int64(len(raw)) > room {
		return shot{}, 0, nil
	}
	uri := "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(raw)
	img := template.URL(uri) //nolint:gosec // base64 of an image
	return shot{Source: img, Width: width, Height: height}, int64(len(raw)), nil
}

// smaller reduces a picture.
func smaller(raw []byte) (out []byte, width, height int, err error) {
	from, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		return nil, 0, 0, err
	}
	b := from.Bounds()
	scale := min(1, float64(maxWide)/float64(b.Dx()), float64(maxTall)/float64(b.Dy()))
	width, height = max(1, int(math.Round(float64(b.Dx())*scale))), max(1, int(math.Round(float64(b.Dy())*scale)))
	to := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.ApproxBiLinear.Scale(to, to.Bounds(), from, b, draw.Src, nil)
	var buf bytes.Buffer
	err = jpeg.Encode(&buf, to, &jpeg.Options{Quality: 82})
	return buf.Bytes(), width, height, err
}

// readLocal reads a file of the directory, and none outside of it, whatever its name.
func readLocal(d rundir.Dir, name string) ([]byte, error) {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return nil, fmt.Errorf("%q is not in the run directory", name)
	}
	return d.ReadFile(name)
}
