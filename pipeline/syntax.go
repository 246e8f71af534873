package pipeline

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

var (
	yamlError     = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)
	unknownAnchor = regexp.MustCompile(`^unknown anchor '(.+)' referenced$`)
)

// syntax reports what the YAML parser stopped at.
func (d *decoder) syntax(err error, src []byte) {
	line, what := 1, err.Error()
	if m := yamlError.FindStringSubmatch(what); m != nil {
		what = m[2]
		line = yamlLine(m[1], what)
	}
	if m := unknownAnchor.FindStringSubmatch(what); m != nil {
		before, _, _ := bytes.Cut(src, []byte("*"+m[1]))
		d.problemAt(bytes.Count(before, []byte("\n"))+1, "*%s stands for nothing; write &%s in front of what it stands for, further up", m[1], m[1])
		return
	}
	d.problemAt(line, "not valid YAML: %s; check the indentation, quotes and brackets here and on the line before", what)
}

// yamlLine is the line of a message, from 1. Errors of the parser proper are counted from 0 by the library, those of its scanner from 1.
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
