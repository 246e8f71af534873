package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Chart is one drawing in two shapes. The template "drawing" writes a shape as SVG, whose colours are variables of the
// page's style, for light and dark themes.
type Chart struct {
	Title        string // description for screen readers
	Wide, Narrow shape
	Legend       []Key
}

// hues is the number of colours for series.
const hues = 6

// Key is an entry of the legend.
type Key struct {
	Name   string
	Ink    int // 1 to 6: --c1 to --c6
	Dashed bool
}

// shape is a drawing of one size. Y grows downwards.
type shape struct {
	Width, Height, Left, Right, Bottom px
	Rows, Columns                      []mark // of the axes
	Bars                               []rect
	Lines                              []curve
}

// px is a length or a position.
type px float64

func (p px) String() string { return strconv.FormatFloat(math.Round(float64(p)*100)/100, 'f', -1, 64) }

type mark struct {
	At    px
	Label string
}

type rect struct {
	X, Y, Width, Height px
	Ink                 int
}

type curve struct {
	Path   string
	Ink    int
	Dashed bool
	Dots   []spot
	Radius px
}

type spot struct{ X, Y px }

// bars are the bars of one series, stacked on the series before.
type bars struct {
	name   string
	ink    int
	values []float64
}

type point struct{ X, Y float64 }

// line is a line through points, dots, or both.
type line struct {
	name   string
	ink    int
	points []point
	dashed bool
	step   bool
	dots   bool
	bare   bool // no line between the dots
}

// drawing is the content of a chart. Y starts at zero.
type drawing struct {
	title string
	bars  []bars
	lines []line
	names []string             // of the bars; nil: numbers from 1
	x, y  func(float64) string // labels of the axes; nil: plain numbers
	top   float64              // minimum height of the y axis
}

// chart draws both shapes.
func (d drawing) chart() *Chart {
	c := &Chart{Title: d.title, Wide: d.shape(720, 220), Narrow: d.shape(340, 200)}
	for _, b := range d.bars {
		c.Legend = append(c.Legend, Key{Name: b.name, Ink: b.ink})
	}
	for _, l := range d.lines {
		c.Legend = append(c.Legend, Key{Name: l.name, Ink: l.ink, Dashed: l.dashed})
	}
	return c
}

// frame is the area between the axes.
type frame struct{ left, right, top, bottom, minX, maxX, maxY float64 }

func (f frame) x(v float64) px {
	return px(f.left + (v-f.minX)/(f.maxX-f.minX)*(f.right-f.left))
}

func (f frame) y(v float64) px { return px(f.bottom - v/f.maxY*(f.bottom-f.top)) }

func (d drawing) shape(width, height float64) shape {
	x, y := d.x, d.y
	if len(d.bars) > 0 { // counts, and numbers of what is counted
		x, y = or(x, whole), or(y, whole)
	}
	x, y = or(x, plain), or(y, plain)
	f := frame{right: width - 14, top: 8, bottom: height - 22}
	f.minX, f.maxX, f.maxY = d.extent()
	rows := ticks(0, f.maxY, 6, y)
	for _, r := range rows {
		f.left = max(f.left, 14+6.2*float64(utf8.RuneCountInString(r.label)))
	}
	s := shape{Width: px(width), Height: px(height), Left: px(f.left), Right: px(f.right), Bottom: px(height - 6),
		Bars: d.stacked(f)}
	for _, r := range rows {
		s.Rows = append(s.Rows, mark{f.y(r.at), r.label})
	}
	columns := d.columns(width)
	if columns == nil {
		columns = ticks(f.minX, f.maxX, int(width/80), x)
	}
	for _, c := range columns {
		s.Columns = append(s.Columns, mark{f.x(c.at), c.label})
	}
	for _, l := range d.lines {
		s.Lines = append(s.Lines, l.curve(f))
	}
	return s
}

func or(f, otherwise func(float64) string) func(float64) string {
	if f == nil {
		return otherwise
	}
	return f
}

func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// extent returns the ranges of the axes.
func (d drawing) extent() (minX, maxX, maxY float64) {
	minX, maxX, maxY = math.Inf(1), math.Inf(-1), d.top
	for _, l := range d.lines {
		for _, p := range l.points {
			minX, maxX, maxY = min(minX, p.X), max(maxX, p.X), max(maxY, p.Y)
		}
	}
	if n := d.count(); n > 0 {
		minX, maxX = 0.4, float64(n)+0.6
		for i := range n {
			sum := 0.0
			for _, b := range d.bars {
				sum += b.values[i]
			}
			maxY = max(maxY, sum)
		}
	}
	switch {
	case minX > maxX:
		minX, maxX = 0, 1
	case minX == maxX:
		minX, maxX = minX-0.5, maxX+0.5
	}
	return minX, maxX, cmp.Or(maxY*1.04, 1)
}

// count returns the number of bars side by side.
func (d drawing) count() int {
	if len(d.bars) == 0 {
		return 0
	}
	return len(d.bars[0].values)
}

// stacked returns the bars.
func (d drawing) stacked(f frame) []rect {
	n := d.count()
	width := min(34, max(1, (f.right-f.left)/float64(n)*0.72))
	var all []rect
	below := make([]float64, n)
	for _, b := range d.bars {
		for i, v := range b.values {
			low, high := f.y(below[i]), f.y(below[i]+v)
			below[i] += v
			all = append(all, rect{f.x(float64(i+1)) - px(width/2), high, px(width), low - high, b.ink})
		}
	}
	return all
}

// tick is a mark of an axis.
type tick struct {
	at    float64
	label string
}

// columns returns the names of the bars, as far as they fit.
func (d drawing) columns(width float64) []tick {
	var all []tick
	n := len(d.names)
	each := int(math.Ceil(float64(n) * 22 / width)) // maximum number of names side by side
	for i, name := range d.names {
		if i%each == 0 {
			all = append(all, tick{float64(i + 1), short(name, max(3, each*int(width)/n/7))})
		}
	}
	return all
}

// ticks returns at most that number of marks at round numbers.
func ticks(low, high float64, most int, write func(float64) string) []tick {
	step := math.Pow(10, math.Floor(math.Log10((high-low)/float64(most))))
	for _, factor := range []float64{1, 2, 5, 10} {
		if (high-low)/(step*factor) < float64(most) {
			step *= factor
			break
		}
	}
	var all []tick
	for i := math.Ceil(low / step); i*step <= high; i++ {
		label := write(math.Round(i*step*1e9) / 1e9)
		// a mark between two labels has none, or that of the mark before
		if label != "" && !slices.ContainsFunc(all, func(t tick) bool { return t.label == label }) {
			all = append(all, tick{i * step, label})
		}
	}
	return all
}

func (l line) curve(f frame) curve {
	c := curve{Ink: l.ink, Dashed: l.dashed, Radius: 3.5}
	if l.bare {
		c.Radius = 2.5
	}
	var path strings.Builder
	for i, p := range l.points {
		x, y := f.x(p.X), f.y(p.Y)
		switch {
		case i == 0:
			fmt.Fprintf(&path, "M%s %s", x, y)
		case l.step:
			fmt.Fprintf(&path, "H%sV%s", x, y)
		default:
			fmt.Fprintf(&path, "L%s %s", x, y)
		}
		if l.dots {
			c.Dots = append(c.Dots, spot{x, y})
		}
	}
	if !l.bare {
		c.Path = path.String()
	}
	return c
}

// short cuts a name to a number of characters.
func short(name string, most int) string {
	r := []rune(name)
	if len(r) <= most {
		return name
	}
	return string(r[:max(1, most-1)]) + "…"
}
