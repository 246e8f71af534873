package pass

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/passbook-run/passbook/pipeline"
)

// readNotes reads the marked blocks of the role's notes. A missing block causes a warning only for roles that
// return an artifact.
func (r *Reading) readNotes(role pipeline.Role, notes []pipeline.Note, reply string) {
	for _, n := range notes {
		if !slices.Contains(role.Notes, n.Name) {
			continue
		}
		if body := block(n.Marker, reply); body != "" {
			r.Notes = append(r.Notes, Text{Label: n.Name, Body: body})
		} else if role.Gives == pipeline.GivesArtifact {
			r.warn("%s entry missing", noteTitle(n))
		}
	}
}

// block returns the text between the first pair of a note's comments, trimmed.
func block(marker, reply string) string {
	m := regexp.QuoteMeta(marker)
	re, err := regexp.Compile(`(?s)<!--\s*` + m + `_START\s*-->(.*?)<!--\s*` + m + `_END\s*-->`)
	if err != nil {
		return "" // not a marker of a valid pipeline
	}
	if found := re.FindStringSubmatch(reply); found != nil {
		return strings.TrimSpace(found[1])
	}
	return ""
}

// noteTitle returns a note's title from its file: discovery-log.md is the "Discovery log".
func noteTitle(n pipeline.Note) string {
	title := strings.TrimSuffix(n.File, path.Ext(n.File))
	title = strings.NewReplacer("-", " ", "_", " ").Replace(title)
	first, size := utf8.DecodeRuneInString(title)
	return string(unicode.ToUpper(first)) + title[size:]
}
