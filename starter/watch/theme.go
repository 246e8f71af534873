package watch

import (
	"strings"

	"charm.land/lipgloss/v2"
)

// theme is how words are set off. Colour never carries a meaning alone: every state has a word or a sign too, so NO_COLOR loses nothing.
type theme struct {
	good, warn, bad, accent, dim, strong, frame, filled, empty lipgloss.Style
}

// newTheme picks colours that can be read on a dark or a light background. They are of the palette of 256, so that they are the same on terminals that have no more.
func newTheme(dark bool) theme {
	pick := lipgloss.LightDark(dark)
	ink := func(light, onDark string) lipgloss.Style {
		return lipgloss.NewStyle().Foreground(pick(lipgloss.Color(light), lipgloss.Color(onDark)))
	}
	return theme{
		good: ink("#008700", "#5fd75f"), warn: ink("#875f00", "#d7af5f"), bad: ink("#d70000", "#ff8787"), accent: ink("#005faf", "#87afff"), dim: ink("#626262", "#9e9e9e"),
		strong: lipgloss.NewStyle().Bold(true), frame: ink("#b2b2b2", "#585858"), filled: ink("#008700", "#5faf5f"), empty: ink("#c6c6c6", "#4e4e4e"),
	}
}

// bar draws cells of which some are filled.
func (t theme) bar(filled, width int) string {
	filled = max(0, min(filled, width))
	return t.filled.Render(strings.Repeat("█", filled)) + t.empty.Render(strings.Repeat("░", width-filled))
}

// fit cuts or fills a line to a width, escape codes not counted.
func fit(line string, width int) string {
	if width <= 0 {
		return ""
	}
	if w := lipgloss.Width(line); w > width {
		line = cut(line, width)
	}
	return line + strings.Repeat(" ", max(0, width-lipgloss.Width(line)))
}

// cut shortens a line that is too long, and says so with an ellipsis.
func cut(line string, width int) string {
	if width <= 0 {
		return ""
	}
	if lipgloss.Width(line) <= width {
		return line
	}
	return lipgloss.NewStyle().Inline(true).MaxWidth(width-1).Render(line) + "…"
}

// pair puts two texts side by side, the second from the middle on, or further right if the first needs it.
func pair(left, right string, width int) string {
	half := max(width/2, lipgloss.Width(left)+2)
	if right == "" {
		return fit(left, width)
	}
	return fit(fit(left, half)+right, width)
}

// ends puts one text at the left and one at the right end.
func ends(left, right string, width int) string {
	room := width - lipgloss.Width(right)
	if room < 1 {
		return fit(left, width)
	}
	return fit(left, room) + right
}
