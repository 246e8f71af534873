package watch

import (
	"cmp"
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"
)

// Widths of the layout: below the first, lines are cut; from the second on there are two columns, of which the left one
// is as wide as the first, and the right one has what the figures of passes need.
const (
	narrowest  = 70
	twoColumns = 130
)

// label is the width of the titles of panels without a frame.
const label = 11

// panel is one part of the screen. Its lines are rendered for a width; most need less.
type panel struct {
	title string
	short string // without a frame; empty: the title
	lines func(width int) []string
	wide  bool // above both columns
	right bool // in the right one of two columns
	grows bool // uses the remaining lines, up to lines
	tint  *lipgloss.Style
}

// boxed draws a panel with a frame.
func (t theme) boxed(p panel, width, most int) []string {
	frame := t.frame
	if p.tint != nil {
		frame = *p.tint
	}
	title := " " + p.title + " "
	head := t.strong.Render(title) + frame.Render(strings.Repeat("─", max(0, width-4-lipgloss.Width(title)))+"─┐")
	out := []string{frame.Render("┌─") + head}
	for _, l := range limited(p, width-4, most) {
		out = append(out, frame.Render("│")+" "+fit(l, width-4)+" "+frame.Render("│"))
	}
	return append(out, frame.Render("└"+strings.Repeat("─", max(0, width-2))+"┘"))
}

// labelled draws a panel without a frame: the title precedes the first line.
func (t theme) labelled(p panel, width, most int) []string {
	var out []string
	for i, l := range limited(p, width-label, most) {
		name := ""
		if i == 0 {
			ink := t.strong
			if p.tint != nil {
				ink = *p.tint
			}
			name = ink.Render(cut(cmp.Or(p.short, p.title), label-1))
		}
		out = append(out, fit(name, label)+fit(l, width-label))
	}
	return out
}

// limited returns the last lines of a growing panel, and all lines of another.
func limited(p panel, width, most int) []string {
	lines := p.lines(width)
	if p.grows && len(lines) > most {
		lines = lines[len(lines)-most:]
	}
	return lines
}

// fewestGrown is the minimum number of lines of a growing panel, if there is space.
const fewestGrown = 3

// lowest is the height from which panels have frames.
const lowest = 34

// body lays out the panels. The size of the terminal alone decides on frames and columns, so that a panel keeps its
// place while the run proceeds. What does not fit can be scrolled.
func (t theme) body(panels []panel, width, height int) []string {
	draw := t.boxed
	if height < lowest-5 {
		draw = t.labelled
	}
	if width >= twoColumns {
		return t.columns(panels, draw, width, height)
	}
	return t.column(panels, draw, width, height)
}

type drawer func(p panel, width, most int) []string

// column stacks panels. A growing panel gets the remaining lines.
func (t theme) column(panels []panel, draw drawer, width, height int) []string {
	fixed := 0
	for _, p := range panels {
		if !p.grows {
			fixed += len(draw(p, width, 0))
		}
	}
	var out []string
	for _, p := range panels {
		room := fewestGrown
		if p.grows {
			frame := len(draw(panel{title: p.title, lines: func(int) []string { return nil }}, width, 0))
			room = max(room, height-fixed-frame)
		}
		out = append(out, draw(p, width, room)...)
	}
	return out
}

// columns puts each panel into its column; the first panel and wide panels are above both.
func (t theme) columns(panels []panel, draw drawer, width, height int) []string {
	if len(panels) == 0 {
		return nil
	}
	out := draw(panels[0], width, fewestGrown)
	rest := panels[1:]
	for len(rest) > 0 && rest[0].wide {
		out, rest = append(out, draw(rest[0], width, fewestGrown)...), rest[1:]
	}
	var left, right []panel
	for _, p := range rest {
		if p.right {
			right = append(right, p)
		} else {
			left = append(left, p)
		}
	}
	room, w := height-len(out), max(narrowest, (width-1)/2)
	a, b := t.column(left, draw, w, room), t.column(right, draw, width-1-w, room)
	for i := 0; i < max(len(a), len(b)); i++ {
		x, y := "", ""
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		out = append(out, fit(x, w)+" "+fit(y, width-1-w))
	}
	return out
}

// window returns the visible lines from an offset, and marks hidden lines.
func (t theme) window(lines []string, offset, height, width int) (shown []string, last int) {
	if len(lines) <= height {
		return lines, 0
	}
	last = len(lines) - height + 1
	offset = max(0, min(offset, last))
	shown = append(shown, lines[offset:offset+height-1]...)
	note := fmt.Sprintf("↑↓ %d more lines", len(lines)-height+1)
	if offset == last {
		note = "↑↓ the end"
	}
	return append(shown, fit(t.dim.Render(note), width)), last
}
