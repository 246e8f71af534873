package pipeline

import (
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"
)

// key is a key of a mapping: a field, described by its tags. See Definition.
type key struct {
	name, eg, initial, wants string
	kind                     string
	index                    []int
	required, short, unique  bool
	single                   bool
	singles, choices, in     []string
	least                    int
	named                    string
	from, to                 string
	above                    bool // the bound from itself is not allowed
}

var keysByType sync.Map

// keysOf lists the keys of a struct, in the order of its fields.
func keysOf(t reflect.Type) []key {
	if known, ok := keysByType.Load(t); ok {
		return append([]key{}, known.([]key)...)
	}
	var keys []key
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name == "" {
			name = strings.TrimSuffix(strings.Split(f.Tag.Get("json")+",", ",")[0], "-")
		}
		switch {
		case name == "-" || f.Anonymous || !f.IsExported():
		case f.Tag.Get("yaml") == ",inline":
			for _, k := range keysOf(f.Type) {
				k.index = append(append([]int{}, f.Index...), k.index...)
				keys = append(keys, k)
			}
		default:
			if name == "" {
				name = strings.ToLower(f.Name)
			}
			keys = append(keys, readTags(name, f))
		}
	}
	keysByType.Store(t, keys)
	return append([]key{}, keys...)
}

func readTags(name string, f reflect.StructField) key {
	k := key{name: name, index: f.Index, eg: f.Tag.Get("eg"), initial: f.Tag.Get("default"), wants: f.Tag.Get("wants"), least: 1}
	for _, word := range strings.Fields(f.Tag.Get("is")) {
		option, value, has := strings.Cut(word, "=")
		switch {
		case option == "named":
			k.named = value
		case option == "min":
			k.least, _ = strconv.Atoi(value)
		case option == "in":
			k.in = strings.Split(value, ",")
		case option == "single":
			k.single = true
			if has {
				k.singles = strings.Split(value, "|")
			}
		case option == "":
			k.choices = []string{value}
		case word == "required":
			k.required = true
		case word == "short":
			k.short = true
		case word == "unique":
			k.unique = true
		case strings.Contains(word, "|"):
			k.choices = strings.Split(word, "|")
		case strings.Contains(word, ".."):
			k.from, k.to, _ = strings.Cut(word, "..")
			k.from, k.above = strings.CutSuffix(k.from, "<")
		default:
			k.kind = word
		}
	}
	return k
}

// kindOf is the kind of the texts of a key: the tag's, or that of the type.
func (k key) kindOf(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "wait"
	case t == reflect.TypeFor[Bytes]():
		return "size"
	}
	return k.kind
}

func (k key) bounds() (from, to float64) {
	if k.to == "" {
		return math.Inf(-1), math.Inf(1)
	}
	from, _ = strconv.ParseFloat(k.from, 64)
	to, _ = strconv.ParseFloat(k.to, 64)
	return from, to
}

// example shows how to write the key.
func (k key) example() string {
	switch n := len(k.choices); {
	case k.eg != "":
		return k.name + ": " + k.eg
	case n == 0:
		return "it"
	case n == 1:
		return k.name + ": " + k.choices[0]
	default:
		return k.name + ": " + strings.Join(k.choices[:n-1], ", ") + " or " + k.choices[n-1]
	}
}

// defaultsByType are values with the defaults of their keys.
var defaultsByType sync.Map

// setDefaults sets the defaults of a struct and of the structs in it.
func setDefaults(v reflect.Value) {
	t := v.Type()
	if made, ok := defaultsByType.Load(t); ok {
		v.Set(made.(reflect.Value))
		return
	}
	into := reflect.New(t).Elem()
	for _, k := range keysOf(t) {
		field := into.FieldByIndex(k.index)
		var doc yaml.Node
		switch {
		case k.initial != "":
			if err := yaml.Unmarshal([]byte(k.initial), &doc); err != nil {
				panic(err) // a tag of the program
			}
			(&decoder{}).value(nil, doc.Content[0], field, k)
		case field.Kind() == reflect.Struct:
			setDefaults(field)
		}
	}
	defaultsByType.Store(t, into)
	v.Set(into)
}
