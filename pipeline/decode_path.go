package pipeline

import (
	"errors"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

var drive = regexp.MustCompile(`^[A-Za-z]:`)

// localPath checks that a text is a path inside the definition's folder, by its letters alone, and returns it cleaned.
func (d *decoder) localPath(n *yaml.Node, where, p string) (string, bool) {
	clean := path.Clean(p)
	switch {
	case p == "":
		return "", false // already reported
	case strings.ContainsAny(p, "\\\x00\r\n"):
		d.problem(n, "%s is %q; write a path with forward slashes", where, p)
	case path.IsAbs(p) || drive.MatchString(p):
		d.problem(n, "%s is the absolute path %s; write it relative to the folder of this file", where, p)
	case clean == ".." || strings.HasPrefix(clean, "../"):
		d.problem(n, "%s is %s, outside the folder of this file; move what it names into the folder", where, p)
	default:
		return clean, true
	}
	return "", false
}

// existing is localPath for a file that must be there.
func (d *decoder) existing(n *yaml.Node, where, p string) (string, bool) {
	clean, ok := d.localPath(n, where, p)
	if !ok {
		return "", false
	}
	info, err := fs.Stat(d.folder, clean)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.problem(n, "%s names %s, and there is no such file; create it or correct the path", where, clean)
	case err != nil:
		d.problem(n, "%s names %s, which cannot be looked at: %v; correct the path or its permissions", where, clean, err)
	case info.IsDir():
		d.problem(n, "%s names %s, which is a folder; name a file", where, clean)
	default:
		return clean, true
	}
	return clean, false
}

// files reads a list of one-key mappings, label: path. All files must be there and all labels differ.
func (d *decoder) files(n *yaml.Node, where string) []File {
	var out []File
	lines := map[string]int{}
	for _, item := range d.list(n, where) {
		if item.Kind != yaml.MappingNode || len(item.Content) != 2 {
			d.problem(item, "an entry of %s is %s; write one label and its path, such as Rules: grammar/rules.md", where, entryKind(item))
			continue
		}
		key, value := resolve(item.Content[0]), resolve(item.Content[1])
		if key.Kind != yaml.ScalarNode || !d.label(key, "label", key.Value) {
			continue
		}
		if line, dup := lines[key.Value]; dup {
			d.problem(key, "label %q is there twice in %s, first on line %d; give each file a label of its own", key.Value, where, line)
		}
		lines[key.Value] = key.Line
		p, _ := d.existing(value, where+" "+key.Value, d.text(value, where+" "+key.Value))
		out = append(out, File{Label: key.Value, Path: p})
	}
	return out
}

func entryKind(n *yaml.Node) string {
	if n.Kind == yaml.MappingNode {
		return "a mapping with several keys"
	}
	return kindOf(n)
}
