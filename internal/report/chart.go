package report

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"regexp"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Chart is one drawing in two shapes, as SVG. Its colours are variables of the page's style, for light and dark themes.
type Chart struct {
	Title        string // description for screen readers
	Wide, Narrow template.HTML
	Legend       []Key
}

// Key is an entry of the legend.
type Key struct {
	Name   string
	Ink    int
	Dashed bool
}

// Inks of a drawing, by the style variables that they become: 1 to hues are --c1 to --c6.
const (
	hues  = 6
	text  = 7
	grid  = 8
	faint = 9
)

// bars are the bars of one series, stacked on the series before.
type bars struct {
	name   string
	ink    int
	values []float64
}

// line is a line through points, dots, or both.
type line struct {
	name   string
	ink    int
	points plotter.XYs
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
func (d drawing) chart() (*Chart, error) {
	c := &Chart{Title: d.title}
	for _, b := range d.bars {
		c.Legend = append(c.Legend, Key{Name: b.name, Ink: b.ink})
	}
	for _, l := range d.lines {
		if l.name != "" {
			c.Legend = append(c.Legend, Key{Name: l.name, Ink: l.ink, Dashed: l.dashed})
		}
	}
	for _, shape := range []struct {
		to            *template.HTML
		width, height vg.Length
	}{{&c.Wide, 720, 220}, {&c.Narrow, 340, 200}} {
		svg, err := d.svg(shape.width, shape.height)
		if err != nil {
			return nil, fmt.Errorf("chart %q: %w", d.title, err)
		}
		*shape.to = svg
	}
	return c, nil
}

func (d drawing) svg(width, height vg.Length) (template.HTML, error) {
	p := d.plot()
	if err := d.addBars(p, width); err != nil {
		return "", err
	}
	for _, l := range d.lines {
		if err := l.add(p); err != nil {
			return "", err
		}
	}
	p.Y.Min, p.Y.Max = 0, max(p.Y.Max, d.top, 0)*1.04
	if p.Y.Max == 0 {
		p.Y.Max = 1
	}
	canvas := vgsvg.NewWith(vgsvg.UseWH(width, height))
	p.Draw(draw.New(canvas))
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return "", err
	}
	return inPage(out.String()), nil
}

// plot returns an empty plot in the style of the page.
func (d drawing) plot() *plot.Plot {
	p := plot.New()
	p.BackgroundColor = color.Transparent
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.LineStyle.Width = 0
		axis.Tick.LineStyle.Width = 0
		axis.Tick.Length = 3
		axis.Tick.Label.Color = ink(text)
		axis.Tick.Label.Font.Variant = "Sans"
		axis.Tick.Label.Font.Size = 10
	}
	p.X.Padding, p.Y.Padding, p.X.Tick.Length = 6, 4, 7
	x, y := d.x, d.y
	if len(d.bars) > 0 { // counts, and numbers of what is counted
		if x == nil {
			x = whole
		}
		if y == nil {
			y = whole
		}
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = labels(x, 9), labels(y, 6)
	lines := plotter.NewGrid()
	lines.Vertical.Width, lines.Horizontal.Width, lines.Horizontal.Color = 0, 0.75, ink(grid)
	p.Add(lines)
	return p
}

func (d drawing) addBars(p *plot.Plot, width vg.Length) error {
	if len(d.bars) == 0 {
		return nil
	}
	n := len(d.bars[0].values)
	if n == 0 {
		return nil
	}
	var below *plotter.BarChart
	for _, b := range d.bars {
		chart, err := plotter.NewBarChart(plotter.Values(b.values), min(34, max(1, (width-60)/vg.Length(n)*0.72)))
		if err != nil {
			return err
		}
		chart.Color, chart.LineStyle.Width, chart.XMin = ink(b.ink), 0, 1
		if below != nil {
			chart.StackOn(below)
		}
		below = chart
		p.Add(chart)
	}
	p.X.Min, p.X.Max = 0.4, float64(n)+0.6
	if d.names != nil {
		ticks := make(plot.ConstantTicks, n)
		each := (n*22 + int(width) - 1) / int(width) // maximum number of names side by side
		for i, name := range d.names {
			ticks[i] = plot.Tick{Value: float64(i + 1)}
			if i%each == 0 {
				ticks[i].Label = short(name, max(3, each*int(width)/n/7))
			}
		}
		p.X.Tick.Marker = ticks
	}
	return nil
}

func (l line) add(p *plot.Plot) error {
	path, dots, err := plotter.NewLinePoints(l.points)
	if err != nil {
		return err
	}
	path.Color, path.Width = ink(l.ink), 1.75
	if l.step {
		path.StepStyle = plotter.PostStep
	}
	if l.dashed {
		path.Dashes, path.Width = []vg.Length{4, 4}, 1.25
	}
	if !l.bare {
		p.Add(path)
	}
	if l.dots {
		dots.Color, dots.Shape, dots.Radius = ink(l.ink), draw.CircleGlyph{}, 3.5
		if l.bare {
			dots.Radius = 2.5
		}
		p.Add(dots)
	}
	return nil
}

// labels limits the labelled marks of an axis.
func labels(write func(float64) string, most int) plot.Ticker {
	return plot.TickerFunc(func(low, high float64) []plot.Tick {
		var kept []plot.Tick
		for _, t := range (plot.DefaultTicks{}).Ticks(low, high) {
			if t.IsMinor() {
				continue
			}
			if write != nil {
				t.Label = write(t.Value)
			}
			if t.Label == "" {
				continue
			}
			if len(kept) > 0 && kept[len(kept)-1].Label == t.Label {
				continue // a mark between two labels
			}
			kept = append(kept, t)
		}
		for len(kept) > most {
			half := kept[:0]
			for i := 0; i < len(kept); i += 2 {
				half = append(half, kept[i])
			}
			kept = half
		}
		return kept
	})
}

// ink is a colour that is replaced by a style variable on the page.
func ink(n int) color.Color { return color.NRGBA{R: 1, G: uint8(n), B: 1, A: 255} }

var inkShape = regexp.MustCompile(`(fill|stroke):#01(0[1-9])01`)

// inPage adapts a drawing to the page: it removes size and fonts, and replaces colours. Styles become attributes, which
// the policy of a page that allows no inline style does not forbid. Text in it is already escaped.
func inPage(svg string) template.HTML {
	_, svg, _ = strings.Cut(svg, "viewBox=")
	svg = inkShape.ReplaceAllStringFunc(svg, func(m string) string {
		name, _, _ := strings.Cut(m, ":")
		n := int(m[len(m)-3] - '0')
		if n <= hues {
			return fmt.Sprintf("%s:var(--c%d)", name, n)
		}
		return name + ":var(" + map[int]string{text: "--muted", grid: "--line", faint: "--faint"}[n] + ")"
	})
	svg = fontShape.ReplaceAllString(svg, "")
	svg = styleShape.ReplaceAllStringFunc(svg, attributes)
	return template.HTML(`<svg aria-hidden="true" viewBox=` + svg) //nolint:gosec // the library escapes texts
}

var fontShape = regexp.MustCompile(`font-family:[^;"]*;font-variant:[^;"]*;font-weight:[^;"]*;font-style:[^;"]*;?`)

var styleShape = regexp.MustCompile(`style="[^"]*"`)

// attributes returns a style as attributes of the element.
func attributes(style string) string {
	var out []string
	for _, one := range strings.Split(strings.TrimSuffix(strings.TrimPrefix(style, `style="`), `"`), ";") {
		if name, value, ok := strings.Cut(one, ":"); ok {
			out = append(out, fmt.Sprintf("%s=%q", strings.TrimSpace(name), strings.TrimSpace(value)))
		}
	}
	return strings.Join(out, " ")
}

// short cuts a name to a number of characters.
func short(name string, most int) string {
	r := []rune(name)
	if len(r) <= most {
		return name
	}
	return string(r[:max(1, most-1)]) + "…"
}
