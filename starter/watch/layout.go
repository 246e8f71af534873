package watch

import (
	"cmp"
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"
)

// Widths that the layout knows: under the first everything is cut, from the second on there are two columns.
const (
	narrowest  = 70
	twoColumns = 110
)

// panel is one part of the screen. Its lines are drawn for a width; most of them need no more.
type panel struct {
	title string
	short string // where there is no frame; empty: the title
	lines func(width int) []string
	wide  bool // it stands above both columns
	grows bool // it is given the lines that are left, by lines at most
	tint  *lipgloss.Style
}

// boxed draws a panel with a frame.
func (t theme) boxed(p panel, width, most int) []string {
	frame := t.frame
	if p.tint != nil {
		frame = *p.tint
	}
	title := " " + p.title + " "
	out := []string{frame.Render("┌─") + t.strong.Render(title) + frame.Render(strings.Repeat("─", max(0, width-4-lipgloss.Width(title)))+"─┐")}
	for _, l := range limited(p, width-4, most) {
		out = append(out, frame.Render("│")+" "+fit(l, width-4)+" "+frame.Render("│"))
	}
	return append(out, frame.Render("└"+strings.Repeat("─", max(0, width-2))+"┘"))
}

// labelled draws a panel without a frame: its title stands before the first line.
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

// limited gives the last lines of a panel that grows, and all of another.
func limited(p panel, width, most int) []string {
	lines := p.lines(width)
	if p.grows && len(lines) > most {
		lines = lines[len(lines)-most:]
	}
	return lines
}

// fewestGrown is how many lines a panel that grows has at least where there is room for them.
const fewestGrown = 3

// body lays the panels out in a width and a height: with frames if they fit, else without. What does not fit even so is for scrolling.
func (t theme) body(panels []panel, width, height int) []string {
	if width >= twoColumns {
		if lines := t.columns(panels, width, height); len(lines) <= height {
			return lines
		}
	}
	if lines := t.column(panels, t.boxed, width, height); len(lines) <= height {
		return lines
	}
	return t.column(panels, t.labelled, width, height)
}

type drawer func(p panel, width, most int) []string

// column stacks panels. One that grows is given what the others leave.
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
			if room = max(room, height-fixed-frame); room > mostGrown {
				room = mostGrown
			}
		}
		out = append(out, draw(p, width, room)...)
	}
	return out
}

// mostGrown is how many lines a panel that grows has at most.
const mostGrown = 16

// columns puts the panels into two columns of about the same height; the first panel and those that are wide stand above both.
func (t theme) columns(panels []panel, width, height int) []string {
	if len(panels) == 0 {
		return nil
	}
	out := t.boxed(panels[0], width, fewestGrown)
	rest := panels[1:]
	for len(rest) > 0 && rest[0].wide {
		out, rest = append(out, t.boxed(rest[0], width, fewestGrown)...), rest[1:]
	}
	left, right := halves(rest, func(p panel) int { return len(t.boxed(p, width/2, fewestGrown)) })
	room, w := height-len(out), (width-1)/2
	a, b := t.column(left, t.boxed, w, room), t.column(right, t.boxed, width-1-w, room)
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

// halves cuts a list of panels where both parts are about as high.
func halves(panels []panel, height func(panel) int) (left, right []panel) {
	total := 0
	for _, p := range panels {
		total += height(p)
	}
	sum := 0
	for i, p := range panels {
		if sum > 0 && 2*sum+height(p) > total {
			return panels[:i], panels[i:]
		}
		sum += height(p)
	}
	return panels, nil
}

// window cuts the lines that are visible out of all, from offset on, and says in the last of them that there are more.
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
