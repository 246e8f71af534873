package watch

import "strings"

// Render draws a scene for a terminal of that size, without keys.
func Render(s Scene, width, height int, dark bool) string {
	text, _ := newTheme(dark).screen(s, nil, 0, width, height)
	return text
}

// screen is the header, what of the panels fits, and the foot at the bottom. last is how far the window on the panels can be moved.
func (t theme) screen(s Scene, foot []string, offset, width, height int) (text string, last int) {
	drawn := max(width, narrowest)
	lines := t.header(s, drawn)
	room := max(1, height-len(lines)-len(foot))
	body := t.body(t.panels(s), drawn, room)
	shown, last := t.window(body, offset, room, drawn)
	lines = append(lines, shown...)
	if foot != nil {
		for range room - len(shown) {
			lines = append(lines, "")
		}
	}
	lines = append(lines, foot...)
	for i, l := range lines {
		lines[i] = strings.TrimRight(cut(l, width), " ")
	}
	return strings.Join(lines, "\n"), last
}
