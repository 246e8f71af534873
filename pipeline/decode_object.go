package pipeline

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// object is a mapping with a closed set of keys.
type object struct {
	d      *decoder
	node   *yaml.Node
	path   string // "roles.builder", for messages
	keys   map[string]*yaml.Node
	values map[string]*yaml.Node
}

// object reads n as a mapping that may have the known keys and no other. What is not a mapping reads as one without keys, and ok is false.
func (d *decoder) object(n *yaml.Node, path string, known ...string) (o object, ok bool) {
	o = object{d: d, node: n, path: path, keys: map[string]*yaml.Node{}, values: map[string]*yaml.Node{}}
	entries, ok := d.mapping(n, path)
	for _, e := range entries {
		if !slices.Contains(known, e.key.Value) {
			d.problem(e.key, "unknown key %q in %s; %s", e.key.Value, path, suggest(e.key.Value, known))
			continue
		}
		o.keys[e.key.Value], o.values[e.key.Value] = e.key, e.value
	}
	return o, ok
}

func (o object) at(key string) string {
	if o.path == top {
		return key
	}
	return o.path + "." + key
}

func (o object) has(key string) bool { return o.values[key] != nil }

// line is where key is written, or where the object begins.
func (o object) line(key string) int {
	if n := o.keys[key]; n != nil {
		return n.Line
	}
	return o.node.Line
}

// need returns the value of a key that must be there. example is what to write.
func (o object) need(key, example string) *yaml.Node {
	n := o.values[key]
	if n == nil {
		o.d.problem(o.node, "%s is missing in %s; write %s", key, o.path, example)
	}
	return n
}

// needText is need for a text.
func (o object) needText(key, example string) string {
	if n := o.need(key, example); n != nil {
		return o.d.text(n, o.at(key))
	}
	return ""
}

// text is the text under key, or "" when the key is not there.
func (o object) text(key string) string {
	if n := o.values[key]; n != nil {
		return o.d.text(n, o.at(key))
	}
	return ""
}

// oneOf is the text under key, which must be one of words; without the key it is the first of them.
func (o object) oneOf(key string, words ...string) string {
	n := o.values[key]
	if n == nil {
		return words[0]
	}
	return o.d.word(n, o.at(key), words...)
}

// texts is the list of texts under key.
func (o object) texts(key string) []string {
	if n := o.values[key]; n != nil {
		return o.d.texts(n, o.at(key))
	}
	return nil
}

func (d *decoder) text(n *yaml.Node, path string) string {
	switch {
	case n.Kind != yaml.ScalarNode, n.Tag == "!!null":
		d.problem(n, "%s is %s; write a text", path, kindOf(n))
	case n.Tag != "!!str":
		d.problem(n, "%s is %s, not a text; put it in quotes: %q", path, kindOf(n), n.Value)
	case strings.TrimSpace(n.Value) == "":
		d.problem(n, "%s is blank; write a text or leave the key out", path)
	default:
		return n.Value
	}
	return ""
}

func (d *decoder) texts(n *yaml.Node, path string) []string {
	var out []string
	for _, item := range d.list(n, path) {
		if s := d.text(item, path); s != "" {
			out = append(out, s)
		}
	}
	return out
}

func (d *decoder) word(n *yaml.Node, path string, words ...string) string {
	s := d.text(n, path)
	if s != "" && !slices.Contains(words, s) {
		d.problem(n, "%s is %q; %s", path, s, suggest(s, words))
	}
	return s
}
