package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// location is a position in a definition: keys, and indexes into lists.
type location []string

func (l location) key(k string) location { return append(slices.Clone(l), k) }

func (l location) last() string {
	if len(l) == 0 {
		return ""
	}
	return l[len(l)-1]
}

func (l location) item(i int) location { return l.key(strconv.Itoa(i)) }

// find returns the key and the value at a location. If the location does not exist, ok is false and they are those of
// the innermost mapping or list on its path.
func (d *decoder) find(at location) (key, value *yaml.Node, ok bool) {
	key, value = d.root, d.root
	for _, step := range at {
		switch value.Kind {
		case yaml.MappingNode:
			i := 0
			for i < len(value.Content) && value.Content[i].Value != step {
				i += 2
			}
			if i >= len(value.Content) {
				return key, value, false
			}
			key, value = value.Content[i], value.Content[i+1]
		case yaml.SequenceNode:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(value.Content) {
				return key, value, false
			}
			key, value = value.Content[i], value.Content[i]
		default:
			return key, value, false
		}
	}
	return key, value, true
}

// get returns the value at a location, or nil.
func (d *decoder) get(at location) *yaml.Node {
	if _, value, ok := d.find(at); ok {
		return value
	}
	return nil
}

// keys lists the keys of the mapping at a location.
func (d *decoder) keys(at location) []string {
	var keys []string
	if n := d.get(at); n != nil && n.Kind == yaml.MappingNode {
		for i := 0; i < len(n.Content); i += 2 {
			keys = append(keys, n.Content[i].Value)
		}
	}
	return keys
}

// items lists the items of the list at a location.
func (d *decoder) items(at location) []*yaml.Node {
	if n := d.get(at); n != nil && n.Kind == yaml.SequenceNode {
		return n.Content
	}
	return nil
}

// name is the location in messages: roles.judge.score, or stage "polish" step 2.
func (d *decoder) name(at location) string {
	text := ""
	for i, step := range at {
		_, parent, _ := d.find(at[:i])
		switch {
		case i == 1 && at[0] == "stages":
			text = "a stage"
			if name := d.get(at[:2].key("name")); name != nil && name.Value != "" {
				text = fmt.Sprintf("stage %q", name.Value)
			}
		case i == 3 && at[0] == "stages" && parent.Kind == yaml.SequenceNode && (at[2] == "steps" || at[2] == "passes"):
			number, _ := strconv.Atoi(step)
			text = fmt.Sprintf("%s step %d", d.name(at[:2]), number+1)
		case parent.Kind != yaml.SequenceNode:
			text += "." + step
		}
	}
	return cmp.Or(strings.TrimPrefix(text, "."), "the pipeline")
}

// flattener copies a tree of nodes without aliases and merge keys. Aliased nodes are shared, so that the copy stays as
// small as the file.
type flattener struct {
	d     *decoder
	ready map[*yaml.Node]*yaml.Node // nil while it is being copied
}

func (d *decoder) flatten(root *yaml.Node) *yaml.Node {
	return (&flattener{d: d, ready: map[*yaml.Node]*yaml.Node{}}).node(root)
}

func (f *flattener) node(n *yaml.Node) *yaml.Node {
	alias := n
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if made, seen := f.ready[n]; seen {
		if made == nil { // it contains itself
			return &yaml.Node{Kind: yaml.AliasNode, Value: alias.Value, Line: n.Line, Column: n.Column}
		}
		return made
	}
	f.ready[n] = nil
	made := *n
	made.Anchor, made.Content = "", nil
	switch n.Kind {
	case yaml.SequenceNode:
		for _, item := range n.Content {
			made.Content = append(made.Content, f.node(item))
		}
	case yaml.MappingNode:
		made.Content = f.mapping(n)
	}
	f.ready[n] = &made
	return &made
}

// mapping lists keys and values in the order of the file. Merged entries come last and are overridden by the mapping's
// own.
func (f *flattener) mapping(n *yaml.Node) []*yaml.Node {
	var pairs, merged []*yaml.Node
	first := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		at, key := n.Content[i], f.node(n.Content[i])
		switch {
		case key.Kind != yaml.ScalarNode:
			f.d.problem(key, "a key is %s; write a word", kindOf(key))
		case key.Tag == "!!merge":
			merged = append(merged, f.node(n.Content[i+1]))
		case first[key.Value] != nil:
			line := first[key.Value].Line
			f.d.problem(at, "%q is there twice in one mapping, first on line %d; keep one of them", key.Value, line)
		default:
			first[key.Value] = at
			pairs = append(pairs, key, f.node(n.Content[i+1]))
		}
	}
	for len(merged) > 0 {
		m := merged[0]
		merged = merged[1:]
		switch m.Kind {
		case yaml.SequenceNode:
			merged = append(slices.Clone(m.Content), merged...)
		case yaml.MappingNode:
			for i := 0; i < len(m.Content); i += 2 {
				if key := m.Content[i]; first[key.Value] == nil {
					first[key.Value] = key
					pairs = append(pairs, key, m.Content[i+1])
				}
			}
		default:
			f.d.problem(m, "<< merges %s; write the alias of a mapping", kindOf(m))
		}
	}
	return pairs
}

// kindOf describes a node for messages.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return fmt.Sprintf("*%s, which contains this", n.Value)
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
