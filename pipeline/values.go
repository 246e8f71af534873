package pipeline

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// finisher is a type whose values follow from more than one key each.
type finisher interface{ finish(d *decoder, at location) }

// reader is a type with a form as text.
type reader interface{ read(text string) error }

// mapping decodes a mapping over the fields of a struct, and reports keys that are unknown, missing or do not go together.
func (d *decoder) mapping(at location, n *yaml.Node, v reflect.Value, k key) bool {
	known := keysOf(v.Type())
	if i := slices.IndexFunc(known, func(k key) bool { return k.short }); i >= 0 && n.Kind == yaml.ScalarNode &&
		(n.Tag == "!!str" || k.wants == "") || i >= 0 && n.Kind != yaml.MappingNode && kinds[known[i].kind].scalar ||
		i >= 0 && len(known) == 1 {
		if !d.value(at, n, v.FieldByIndex(known[i].index), known[i]) {
			return false
		}
		d.finish(at, v)
		return true
	}
	if n.Kind != yaml.MappingNode {
		d.unfit(at, n, cmp.Or(k.wants, "a mapping of keys and values"))
		return false
	}
	known = slices.DeleteFunc(known, func(k key) bool { return len(k.in) > 0 && !slices.Contains(k.in, at[0]) })
	for i := 0; i+1 < len(n.Content); i += 2 {
		word := n.Content[i].Value
		if !slices.ContainsFunc(known, func(k key) bool { return k.name == word }) {
			d.unknown(at, n.Content[i], known)
		}
	}
	for _, k := range known { // in the order of the fields: values follow from those before them
		if value := d.get(at.key(k.name)); value != nil {
			d.value(at.key(k.name), value, v.FieldByIndex(k.index), k)
		} else if k.required {
			d.missing(at, n, k.name, known)
		}
	}
	d.together(at, n, v.Type(), known)
	d.finish(at, v)
	return true
}

func (d *decoder) finish(at location, v reflect.Value) {
	if f, ok := v.Addr().Interface().(finisher); ok {
		f.finish(d, at)
	}
}

// missing reports a key that has to be there.
func (d *decoder) missing(at location, n *yaml.Node, name string, known []key) {
	example := "it"
	for _, k := range known {
		if k.name == name {
			example = k.example()
		}
	}
	d.problem(n, "%s is missing in %s; write %s", name, d.name(at), example)
}

// unknown reports a key that does not exist, or no longer.
func (d *decoder) unknown(at location, n *yaml.Node, known []key) {
	if advice := cmp.Or(changed[at.last()+"."+n.Value], changed[n.Value]); advice != "" {
		d.problem(n, "%s.%s no longer exists: %s", d.name(at), n.Value, advice)
		return
	}
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = k.name
	}
	slices.Sort(names)
	d.problem(n, "unknown key %q in %s; %s", n.Value, d.name(at), suggest(n.Value, names))
}

// changed are keys and values of earlier forms, and what to write instead.
var changed = map[string]string{
	"as":    "write id instead; conditions name members of its output, such as tests.ok",
	"scope": "write schema: plan; the files of the plan are the declared scope",

	"verdict.schema": "write schema: review in the role",
	"gives: list":    "write gives: report and a schema, whose output has the list",
	"rate_limit":     "a limit of the provider uses no attempt; write wait: {first: 30s, max: 15m} and max_wait: 12h",
}

// unfit reports a value of another type.
func (d *decoder) unfit(at location, n *yaml.Node, wants string) {
	d.problem(n, "%s is %s; write %s", d.name(at), kindOf(n), wants)
}

// refused reports a value, which is in the message if it is a scalar.
func (d *decoder) refused(at location, n *yaml.Node, why string) {
	if n.Kind == yaml.ScalarNode {
		why = fmt.Sprintf(": %q %s", n.Value, why)
	} else {
		why = " " + why
	}
	d.problem(n, "%s%s", d.name(at), why)
}

// value decodes a node, and reports what does not fit; false: the value is as it was.
func (d *decoder) value(at location, n *yaml.Node, v reflect.Value, k key) bool {
	t := v.Type()
	_, text := reflect.New(t).Interface().(reader)
	switch {
	case t.Kind() == reflect.Pointer:
		into := d.fresh(t.Elem())
		if !d.value(at, n, into, k) {
			return false
		}
		v.Set(into.Addr())
	case k.kind == "words" || k.kind == "value":
		return d.words(at, n, v, k.kind == "words")
	case k.kind == "pair":
		return d.pair(at, n, v)
	case t == reflect.TypeFor[File]():
		return d.labelled(at, n, v.Addr().Interface().(*File))
	case t.Kind() == reflect.Slice && k.named != "":
		return d.names(at, n, v, k)
	case t.Kind() == reflect.Slice:
		return d.list(at, n, v, k)
	case t.Kind() == reflect.Struct && !text:
		return d.mapping(at, n, v, k)
	case t.Kind() == reflect.Bool:
		if n.Tag != "!!bool" || n.Kind != yaml.ScalarNode {
			d.unfit(at, n, "true or false")
			return false
		}
		v.SetBool(strings.EqualFold(n.Value, "true"))
	case t.Kind() == reflect.String || text || t == reflect.TypeFor[time.Duration]():
		return d.text(at, n, v, k)
	default:
		return d.number(at, n, v, k)
	}
	return true
}

// fresh is a new value with its defaults; limits and questions are laid over those of the definition.
func (d *decoder) fresh(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	if t.Kind() == reflect.Struct {
		setDefaults(v)
	}
	switch p := v.Addr().Interface().(type) {
	case *Role:
		p.Limits = d.def.Limits
	case *Ask:
		p.Questions = d.def.Questions
	}
	return v
}

// text decodes a text.
func (d *decoder) text(at location, n *yaml.Node, v reflect.Value, k key) bool {
	kind := kinds[k.kindOf(v.Type())]
	switch {
	case n.Kind != yaml.ScalarNode && kind.scalar:
		d.refused(at, n, kind.says)
		return false
	case n.Kind == yaml.ScalarNode && (n.Tag == "!!str" || kind.scalar):
	case n.Kind == yaml.ScalarNode && n.Tag != "!!null" && kind.wants == "":
		d.problem(n, "%s is %s, not a text; put it in quotes: %q", d.name(at), kindOf(n), n.Value)
		return false
	default:
		d.unfit(at, n, cmp.Or(kind.wants, k.wants, "a text"))
		return false
	}
	if len(k.choices) > 0 && !slices.Contains(k.choices, n.Value) {
		d.problem(n, "%s is %q; %s", d.name(at), n.Value, cmp.Or(changed[at.last()+": "+n.Value], suggest(n.Value, k.choices)))
	} else if err := kind.fits(n.Value); err != nil {
		d.refused(at, n, err.Error())
		return false
	}
	if r, ok := v.Addr().Interface().(reader); ok {
		return r.read(n.Value) == nil
	}
	if v.Type() == reflect.TypeFor[time.Duration]() {
		wait, err := time.ParseDuration(n.Value)
		v.SetInt(int64(wait))
		return err == nil
	}
	v.SetString(n.Value)
	return true
}

// number decodes a number within the bounds of its key.
func (d *decoder) number(at location, n *yaml.Node, v reflect.Value, k key) bool {
	whole := v.Kind() == reflect.Int || v.Kind() == reflect.Int64
	f, ok := numberOf(n)
	if from, to := k.bounds(); !ok || whole && f != math.Trunc(f) || f < from || f > to || f == from && k.above {
		wants := "a number"
		if whole {
			wants = "a whole number"
		}
		if k.above {
			wants += " above " + k.from + ", up to " + k.to
		} else if k.to != "" {
			wants += " from " + k.from + " to " + k.to
		}
		d.unfit(at, n, wants)
		return false
	}
	if whole {
		v.SetInt(int64(f))
	} else {
		v.SetFloat(f)
	}
	return true
}

// numberOf is the number that a scalar is. One that begins with 0 is octal for YAML, and none here.
func numberOf(n *yaml.Node) (float64, bool) {
	v, err := strconv.ParseFloat(n.Value, 64)
	digits := strings.TrimLeft(n.Value, "+-")
	octal := n.Tag == "!!int" && len(digits) > 1 && digits[0] == '0'
	number := n.Kind == yaml.ScalarNode && (n.Tag == "!!int" || n.Tag == "!!float")
	return v, number && err == nil && !octal && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// list decodes a list; with single, also one value.
func (d *decoder) list(at location, n *yaml.Node, v reflect.Value, k key) bool {
	if n.Kind == yaml.ScalarNode && k.single {
		item, only := d.fresh(v.Type().Elem()), k
		if len(k.singles) > 0 {
			only.kind, only.choices = "", k.singles
		}
		if !d.value(at, n, item, only) {
			return false
		}
		v.Set(reflect.Append(reflect.MakeSlice(v.Type(), 0, 1), item))
		return true
	}
	if n.Kind != yaml.SequenceNode {
		d.unfit(at, n, "a list")
		return false
	}
	if len(n.Content) < k.least {
		why := "is empty; put something in it or leave the key out"
		if k.least > 1 {
			why = "needs two roles or more; for one write role: NAME"
		}
		d.problem(n, "%s %s", d.name(at), why)
	}
	items := reflect.MakeSlice(v.Type(), 0, len(n.Content))
	seen := map[string]bool{}
	for i, item := range n.Content {
		if k.unique && item.Kind == yaml.ScalarNode && seen[item.Value] {
			d.problem(item, "%s has %s twice; keep one", d.name(at), item.Value)
		}
		seen[item.Value] = true
		into := d.fresh(v.Type().Elem())
		if d.value(at.item(i), item, into, k) || into.Kind() == reflect.Struct { // structs are found by their index
			items = reflect.Append(items, into)
		}
	}
	v.Set(items)
	return true
}

// maxProjects bounds the projects of a run.
const maxProjects = 8

// names decodes a mapping of names to values, in the order of the file. The first field of a value is its name.
func (d *decoder) names(at location, n *yaml.Node, v reflect.Value, k key) bool {
	if n.Kind != yaml.MappingNode {
		d.unfit(at, n, "a mapping of keys and values")
		return false
	}
	switch count := len(n.Content) / 2; {
	case k.named == "project" && (count < 1 || count > maxProjects):
		d.problem(n, "%s has too many projects or none; a run has 1 to %d", d.name(at), maxProjects)
	case count < 1:
		d.problem(n, "%s is empty; put something in it or leave the key out", d.name(at))
	}
	items := reflect.MakeSlice(v.Type(), 0, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		if !nameShape.MatchString(name) {
			d.problem(n.Content[i], "%s: %s %q %s", d.name(at), k.named, name, nameAdvice)
		}
		into := d.fresh(v.Type().Elem())
		into.Field(0).SetString(name)
		d.value(at.key(name), n.Content[i+1], into, key{wants: k.wants})
		items = reflect.Append(items, into)
	}
	v.Set(items)
	return true
}

// labelled decodes a mapping with one entry, label: path.
func (d *decoder) labelled(at location, n *yaml.Node, f *File) bool {
	switch {
	case n.Kind != yaml.MappingNode:
		d.unfit(at, n, "one label and its path, such as Rules: grammar/rules.md")
		return false
	case len(n.Content) != 2:
		d.problem(n, "%s needs one label and its path, such as Rules: grammar/rules.md", d.name(at))
		return false
	}
	f.Label = n.Content[0].Value
	d.value(at.key(f.Label), n.Content[1], reflect.ValueOf(&f.Path).Elem(), key{kind: "path"})
	f.Path = path.Clean(f.Path)
	return true
}

// pair decodes two ascending numbers. Bounds of a width may have a fraction, which is dropped.
func (d *decoder) pair(at location, n *yaml.Node, v reflect.Value) bool {
	if n.Kind != yaml.SequenceNode {
		d.unfit(at, n, "a list")
		return false
	}
	pair := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	var last float64
	ok := len(n.Content) == 2
	for i, item := range n.Content {
		f, number := numberOf(item)
		ok = ok && number && (i == 0 || last <= f)
		last = f
		pair.Index(i).Set(reflect.ValueOf(f).Convert(v.Type().Elem()))
	}
	if !ok {
		d.refused(at, n, "is not two ascending numbers; write the lowest and the highest allowed, such as [0, 4]")
		return false
	}
	v.Set(pair)
	return true
}

// words decodes a scalar of any type, or a list of them, into one text. Those of an input are texts.
func (d *decoder) words(at location, n *yaml.Node, v reflect.Value, any bool) bool {
	if n.Kind == yaml.MappingNode || n.Tag == "!!null" || n.Kind == yaml.AliasNode || n.Kind == yaml.ScalarNode && kindOf(n)[0] == '"' {
		d.unfit(at, n, "a text or a list of texts")
		return false
	}
	if n.Kind == yaml.SequenceNode && any && len(n.Content) == 0 {
		d.problem(n, "%s is empty; put something in it or leave the key out", d.name(at))
	}
	for i, item := range n.Content {
		switch {
		case any && item.Kind == yaml.SequenceNode:
			d.unfit(at.item(i), item, "a text or a list of texts")
		case any:
			d.words(at.item(i), item, reflect.New(v.Type()).Elem(), any)
		default:
			d.text(at.item(i), item, reflect.New(v.Type()).Elem(), key{kind: "text"})
		}
	}
	v.SetString(n.Value)
	if n.Kind == yaml.SequenceNode {
		v.SetString(strings.Join(d.texts(at), ", "))
	}
	return true
}

// texts are the scalars of the list at a location.
func (d *decoder) texts(at location) (texts []string) {
	for _, item := range d.items(at) {
		texts = append(texts, item.Value)
	}
	return texts
}
