package pass

import (
	"path"
	"strings"

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

var backticks = lazyregexp.New("`+")

// fence wraps body in a code fence that is longer than any run of backticks inside.
func fence(language, body string) string {
	length := 3
	for _, run := range backticks.FindAllString(body, -1) {
		length = max(length, len(run)+1)
	}
	mark := strings.Repeat("`", length)
	if body != "" && !strings.HasSuffix(body, "\n") {
		body += "\n"
	}
	return mark + language + "\n" + body + mark
}

var plainWord = lazyregexp.New(`^[a-z0-9]+$`)

// language returns the info string of a fence for a file.
func language(file string) string {
	ext := strings.ToLower(strings.TrimPrefix(path.Ext(file), "."))
	switch {
	case ext == "htm":
		return "html"
	case ext == "md":
		return "markdown"
	case plainWord.MatchString(ext):
		return ext
	default:
		return ""
	}
}

// heading returns a label as a heading on one line.
func heading(label string) string { return "## " + strings.Join(strings.Fields(label), " ") }
