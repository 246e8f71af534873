package watch

import (
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"
)

// theme styles text. Each state also has a word or a symbol, so that NO_COLOR loses no meaning.
type theme struct {
	good, warn, bad, accent, dim, strong, frame, filled, empty lipgloss.Style
}

// newTheme returns colours for dark and light backgrounds, from the palette of 256 colours. On a terminal with fewer
// colours the nearest one replaces each, except for the colour of warnings: the nearest to it is red.
func newTheme(dark bool, profile colorprofile.Profile) theme {
	pick := lipgloss.LightDark(dark)
	ink := func(light, onDark string) lipgloss.Style {
		return lipgloss.NewStyle().Foreground(pick(lipgloss.Color(light), lipgloss.Color(onDark)))
	}
	warn := ink("#875f00", "#d7af5f")
	if profile <= colorprofile.ANSI {
		warn = lipgloss.NewStyle().Foreground(pick(lipgloss.Yellow, lipgloss.BrightYellow))
	}
	return theme{
		good: ink("#008700", "#5fd75f"), warn: warn, bad: ink("#d70000", "#ff8787"),
		accent: ink("#005faf", "#87afff"), dim: ink("#626262", "#9e9e9e"),
		strong: lipgloss.NewStyle().Bold(true), frame: ink("#b2b2b2", "#585858"),
		filled: ink("#008700", "#5faf5f"), empty: ink("#c6c6c6", "#4e4e4e"),
	}
}

// bar draws a progress bar.
func (t theme) bar(filled, width int) string {
	filled = max(0, min(filled, width))
	return t.filled.Render(strings.Repeat("█", filled)) + t.empty.Render(strings.Repeat("░", width-filled))
}

// fit cuts or pads a line to a width, not counting escape codes.
func fit(line string, width int) string {
	if width <= 0 {
		return ""
	}
	if w := lipgloss.Width(line); w > width {
		line = cut(line, width)
	}
	return line + strings.Repeat(" ", max(0, width-lipgloss.Width(line)))
}

// cut shortens a long line with an ellipsis.
func cut(line string, width int) string {
	if width <= 0 {
		return ""
	}
	if lipgloss.Width(line) <= width {
		return line
	}
	return lipgloss.NewStyle().Inline(true).MaxWidth(width-1).Render(line) + "…"
}

// pair puts two texts side by side, the second from the middle on, or after the first if that is longer.
func pair(left, right string, width int) string { return beside(left, right, width/2, width) }

// beside puts the second text at a column instead.
func beside(left, right string, column, width int) string {
	if right == "" {
		return fit(left, width)
	}
	return fit(fit(left, max(column, lipgloss.Width(left)+2))+right, width)
}

// ends aligns one text left and one right.
func ends(left, right string, width int) string {
	room := width - lipgloss.Width(right)
	if room < 1 {
		return fit(left, width)
	}
	return fit(left, room) + right
}
