package watch

import "strings"

// screen draws header, visible panels and foot. last is the maximum offset of the window on the panels.
// Texts of the scene come from agents and from directories of others: none may control the terminal.
func (t theme) screen(s Scene, foot []string, offset, width, height int) (text string, last int) {
	s = safeTexts(s)
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
