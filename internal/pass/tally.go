package pass

import (
	"strings"
	"unicode"

	"github.com/passbook-run/passbook/internal/lazyregexp"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// readTally counts list items under the role's headings.
func (r *Reading) readTally(role pipeline.Role, reply string) {
	if len(role.Tally) == 0 {
		return
	}
	lines := strings.Split(reply, "\n")
	for _, t := range role.Tally {
		count := run.Count{Name: t.Name}
		if section, found := sectionUnder(t.Heading, lines); found {
			n := topItems(section)
			count.Count = &n
		} else {
			r.warn("Heading %q not found", t.Heading)
		}
		r.Tally = append(r.Tally, count)
	}
}

// sectionUnder returns the text between the first heading with the wanted words and the next one of its level or
// above.
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

// plainHeading is the level of an unmarked heading: bold, or all capitals.
const plainHeading = 7

var (
	marked   = lazyregexp.New(`^\s{0,3}(#{1,6})\s+(.*)$`)
	bold     = lazyregexp.New(`^\s*(?:[0-9]{1,2}[.)]\s+)?(\*\*|__)([^*]+?)(?:\*\*|__)\s*:?\s*$`)
	numbered = lazyregexp.New(`^\s*(?:[0-9]{1,2}[.)]\s+)?`)
	item     = lazyregexp.New(`^([ \t]*)(?:[-*+•]|[0-9]{1,3}[.)])[ \t]+(.*)$`)
)

// headingOf returns level and text of a line's heading; level 0: it is none.
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

// allCapitals reports whether a line looks like a heading: several letters, all upper case, without a list mark.
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

// topItems counts the least indented list items, except "none".
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
		if indent == least && !isNone(m[2]) {
			count++
		}
	}
	return count
}

func isNone(text string) bool {
	return strings.EqualFold(strings.Trim(text, " \t()[]*_`.—-"), "none")
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
