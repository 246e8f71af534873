package pipeline

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

var (
	yamlError     = lazyregexp.New(`^yaml: (?:line (\d+): )?(.*)`)
	unknownAnchor = lazyregexp.New(`^unknown anchor '(.+)' referenced$`)
)

// syntax reports an error of the YAML parser.
func (d *decoder) syntax(err error, src []byte) {
	line, what := 1, err.Error()
	if m := yamlError.FindStringSubmatch(what); m != nil {
		what = m[2]
		line = yamlLine(m[1], what)
	}
	if m := unknownAnchor.FindStringSubmatch(what); m != nil {
		before, _, _ := bytes.Cut(src, []byte("*"+m[1]))
		d.problemAt(bytes.Count(before, []byte("\n"))+1,
			"*%s is not defined; write &%s in front of its value, further up", m[1], m[1])
		return
	}
	d.problemAt(line, "not valid YAML: %s; check the indentation, quotes and brackets here and on the line before",
		what)
}

// yamlLine returns the line of a message, from 1. The library counts lines from 0 in errors of its parser and from 1 in
// errors of its scanner.
func yamlLine(digits, what string) int {
	line, err := strconv.Atoi(digits)
	if err != nil {
		return 1
	}
	if strings.HasPrefix(what, "did not find expected") {
		line++
	}
	return line
}
