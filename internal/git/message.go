package git

import (
	"fmt"
	"strings"
)

// Limits of error messages, which become part of histories and questions.
const (
	maxMessage = 1 << 10 // bytes of git's message, or of a list of paths
	maxPaths   = 20
)

// clip truncates a text to most bytes.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}

// firstPaths lists the first paths and the number of further ones.
func firstPaths(paths []string) string {
	text := clip(fmt.Sprintf("%q", paths[:min(maxPaths, len(paths))]), maxMessage)
	if more := len(paths) - maxPaths; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
