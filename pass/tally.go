package pass

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/passbook-run/passbook/pipeline"
)

// readTally counts list items under the role's headings.
func (r *Reading) readTally(role pipeline.Role, reply string) {
	if len(role.Tally) == 0 {
		return
	}
	lines := strings.Split(reply, "\n")
	for _, t := range role.Tally {
		count := Count{Name: t.Name}
		if section, found := sectionUnder(t.Heading, lines); found {
			n := topItems(section)
			count.Count = &n
		} else {
			r.warn("Heading %q not found", t.Heading)
		}
		r.Tally = append(r.Tally, count)
	}
}

// sectionUnder is what stands between the first heading that contains the wanted words and the next one of its level or above.
func sectionUnder(wanted string, lines []string) (section []string, found bool) {
	for i, line := range lines {
		level, text := headingOf(line)
		if level == 0 || !strings.Contains(strings.ToUpper(text), strings.ToUpper(wanted)) {
			continue
		}
		for j, next := range lines[i+1:] {
			if l, _ := headingOf(next); l > 0 && l <= level {
				return lines[i+1 : i+1+j], true
			}
		}
		return lines[i+1:], true
	}
	return nil, false
}

// plainHeading is the level of a heading without marks: bold, or all capitals.
const plainHeading = 7

var (
	marked   = regexp.MustCompile(`^\s{0,3}(#{1,6})\s+(.*)$`)
	bold     = regexp.MustCompile(`^\s*(?:[0-9]{1,2}[.)]\s+)?(\*\*|__)([^*]+?)(?:\*\*|__)\s*:?\s*$`)
	numbered = regexp.MustCompile(`^\s*(?:[0-9]{1,2}[.)]\s+)?`)
	item     = regexp.MustCompile(`^([ \t]*)(?:[-*+•]|[0-9]{1,3}[.)])[ \t]+(.*)$`)
)

// headingOf is the level of a line's heading, 0 when it is none, and its text.
func headingOf(line string) (level int, text string) {
	if m := marked.FindStringSubmatch(line); m != nil {
		return len(m[1]), m[2]
	}
	if m := bold.FindStringSubmatch(line); m != nil {
		return plainHeading, m[2]
	}
	text = strings.TrimSpace(numbered.ReplaceAllString(line, ""))
	if allCapitals(text) {
		return plainHeading, text
	}
	return 0, ""
}

// allCapitals says whether a line could be a heading by its letters: several, none of them small, and no list mark in front.
func allCapitals(text string) bool {
	letters, digits := 0, 0
	for _, c := range text {
		if unicode.IsLower(c) {
			return false
		}
		letters += btoi(unicode.IsLetter(c))
		digits += btoi(unicode.IsDigit(c))
	}
	return letters > 3 && (digits == 0 || strings.Contains(text, " ")) && unicode.IsLetter([]rune(text)[0])
}

// topItems counts the list items that are indented least. An item that says there is none does not count.
func topItems(section []string) int {
	count, least := 0, -1
	for _, line := range section {
		m := item.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		indent := len(strings.ReplaceAll(m[1], "\t", "    "))
		if least < 0 || indent < least {
			count, least = 0, indent
		}
		if indent == least && !saysNone(m[2]) {
			count++
		}
	}
	return count
}

func saysNone(text string) bool {
	return strings.EqualFold(strings.Trim(text, " \t()[]*_`.—-"), "none")
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
