package pipeline

import (
	"io/fs"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/passbook-run/passbook/pipeline/template"
)

// prompt checks a role's prompt file and says which parts of the prompt it places itself. Problems inside it carry its own name and line.
func (d *decoder) prompt(n *yaml.Node, where string, with []KeyText) (p string, places []string) {
	p, ok := d.existing(n, where, d.text(n, where))
	if !ok {
		return p, nil
	}
	src, err := fs.ReadFile(d.folder, p)
	if err != nil {
		d.problem(n, "%s names %s, which cannot be read: %v; correct the path or its permissions", where, p, err)
		return p, nil
	}
	if strings.TrimSpace(string(src)) == "" {
		d.problem(n, "%s names %s, which is blank; write what the role is asked", where, p)
	}
	keys := make([]string, len(with))
	for i, w := range with {
		keys[i] = w.Key
	}
	for _, t := range template.Check(string(src), keys) {
		d.found = append(d.found, Problem{File: p, Line: t.Line, What: t.What})
	}
	return p, template.Placed(string(src))
}
