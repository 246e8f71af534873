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

// readNotes takes the marked blocks of the role's notes. A block that is missing is worth a warning only where an artifact is given:
// those who build are asked to say what they found.
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

// block is the text between a note's two comments, the first time they occur, trimmed.
func block(marker, reply string) string {
	m := regexp.QuoteMeta(marker)
	re, err := regexp.Compile(`(?s)<!--\s*` + m + `_START\s*-->(.*?)<!--\s*` + m + `_END\s*-->`)
	if err != nil {
		return "" // not a marker that a checked pipeline can have
	}
	if found := re.FindStringSubmatch(reply); found != nil {
		return strings.TrimSpace(found[1])
	}
	return ""
}

// noteTitle names a note after its file: discovery-log.md is the "Discovery log".
func noteTitle(n pipeline.Note) string {
	title := strings.TrimSuffix(n.File, path.Ext(n.File))
	title = strings.NewReplacer("-", " ", "_", " ").Replace(title)
	first, size := utf8.DecodeRuneInString(title)
	return string(unicode.ToUpper(first)) + title[size:]
}
