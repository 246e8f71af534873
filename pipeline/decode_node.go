package pipeline

import (
	"fmt"
	"io/fs"
	"slices"

	"go.yaml.in/yaml/v3"
)

// decoder walks the YAML nodes of one file. It never stops at a problem: it notes it and goes on with a zero value.
type decoder struct {
	file   string
	folder fs.FS
	def    *Definition
	found  Problems
	lines  lines
}

// lines remembers where things were written, for problems found after decoding.
type lines struct {
	steps map[string]int // of each `as`
	until map[string]int // by stage
	gate  map[string]int // by stage
}

func (d *decoder) problem(n *yaml.Node, format string, args ...any) {
	d.problemAt(n.Line, format, args...)
}

func (d *decoder) problemAt(line int, format string, args ...any) {
	d.found = append(d.found, Problem{File: d.file, Line: max(line, 1), What: fmt.Sprintf(format, args...)})
}

// entry is one key of a mapping with its value, aliases followed.
type entry struct {
	key   *yaml.Node
	value *yaml.Node
}

func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// entries lists a mapping in the order of the file, merge keys (<<) last and overruled by the mapping's own keys.
func (d *decoder) entries(n *yaml.Node, path string) []entry {
	w := mergeWalk{d: d, path: path, first: map[string]int{}, visited: map[*yaml.Node]bool{}}
	w.add(n, true)
	return w.entries
}

type mergeWalk struct {
	d       *decoder
	path    string
	entries []entry
	first   map[string]int // line of each key
	visited map[*yaml.Node]bool
}

func (w *mergeWalk) add(n *yaml.Node, own bool) {
	if w.visited[n] {
		return
	}
	w.visited[n] = true
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolve(n.Content[i]), resolve(n.Content[i+1])
		switch {
		case key.Kind != yaml.ScalarNode:
			w.d.problem(key, "a key in %s is %s; write a word", w.path, kindOf(key))
		case key.Tag == "!!merge":
			merged = append(merged, value)
		default:
			w.addKey(n.Content[i], key, value, own)
		}
	}
	for _, m := range merged {
		w.merge(m)
	}
}

func (w *mergeWalk) addKey(at, key, value *yaml.Node, own bool) {
	if line, dup := w.first[key.Value]; dup {
		if own {
			w.d.problem(at, "%q is there twice in %s, first on line %d; keep one of them", key.Value, w.path, line)
		}
		return
	}
	w.first[key.Value] = at.Line
	w.entries = append(w.entries, entry{key, value})
}

func (w *mergeWalk) merge(m *yaml.Node) {
	switch m.Kind {
	case yaml.MappingNode:
		w.add(m, false)
	case yaml.SequenceNode:
		for _, item := range m.Content {
			if item = resolve(item); item.Kind == yaml.MappingNode {
				w.add(item, false)
			} else {
				w.d.problem(item, "<< in %s merges %s; write the alias of a mapping", w.path, kindOf(item))
			}
		}
	default:
		w.d.problem(m, "<< in %s merges %s; write the alias of a mapping", w.path, kindOf(m))
	}
}

// mapping checks that n is a mapping and lists it.
func (d *decoder) mapping(n *yaml.Node, path string) ([]entry, bool) {
	if n.Kind != yaml.MappingNode {
		d.problem(n, "%s is %s; write a mapping of keys and values", path, kindOf(n))
		return nil, false
	}
	return d.entries(n, path), true
}

// list checks that n is a list with something in it.
func (d *decoder) list(n *yaml.Node, path string) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		d.problem(n, "%s is %s; write a list", path, kindOf(n))
		return nil
	}
	if len(n.Content) == 0 {
		d.problem(n, "%s is an empty list; put something in it or leave the key out", path)
	}
	items := slices.Clone(n.Content)
	for i := range items {
		items[i] = resolve(items[i])
	}
	return items
}

// kindOf names what a node is, for people.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.Tag {
	case "!!null":
		return "empty"
	case "!!bool":
		return fmt.Sprintf("the yes-or-no value %s", n.Value)
	case "!!int", "!!float":
		return fmt.Sprintf("the number %s", n.Value)
	case "!!str":
		return fmt.Sprintf("the text %q", n.Value)
	default:
		return fmt.Sprintf("%q with the tag %s", n.Value, n.Tag)
	}
}
