package repo

import (
	"fmt"
	"strings"
)

// What errors say at most: they end up in histories and in questions.
const (
	mostSaid  = 1 << 10 // bytes of git's own words, or of a list of paths
	mostPaths = 20
)

// clip is the text, or its beginning where it has more bytes than most.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}

// some names the first paths, and says how many more there are.
func some(paths []string) string {
	text := clip(fmt.Sprintf("%q", paths[:min(mostPaths, len(paths))]), mostSaid)
	if more := len(paths) - mostPaths; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
