package pipeline

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// values adds the differences between two values of one type.
func (c *comparer) values(at []string, a, b any) { c.walk(at, reflect.ValueOf(a), reflect.ValueOf(b)) }

func (c *comparer) walk(at []string, a, b reflect.Value) {
	if reflect.DeepEqual(a.Interface(), b.Interface()) {
		return
	}
	switch {
	case a.Kind() == reflect.Pointer && !a.IsNil() && !b.IsNil():
		c.walk(at, a.Elem(), b.Elem())
	case a.Kind() == reflect.Struct:
		for i := range a.NumField() {
			if key := keyOf(a.Type().Field(i)); key != "" {
				c.walk(under(at, key), a.Field(i), b.Field(i))
			}
		}
	case a.Kind() == reflect.Slice && a.Type().Elem().Kind() == reflect.Struct:
		c.list(at, a, b)
	default:
		c.add(Difference{Path: at, Old: valueText(a), New: valueText(b)})
	}
}

// list compares lists of structs item by item: those with a name by name, whatever their order.
func (c *comparer) list(at []string, a, b reflect.Value) {
	was, is := itemsOf(a), itemsOf(b)
	names := slices.Clone(is.names)
	for _, name := range was.names {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		path := under(at, name)
		if name == "" {
			path = []string{"agent"} // the default one has its own key
		}
		x, y := was.values[name], is.values[name]
		if x.IsValid() && y.IsValid() {
			c.walk(path, x, y)
		} else {
			c.add(Difference{Path: path, Old: valueText(x), New: valueText(y)})
		}
	}
}

// items are those of a list, by name or by number.
type items struct {
	names  []string
	values map[string]reflect.Value
}

func itemsOf(list reflect.Value) items {
	all := items{values: map[string]reflect.Value{}}
	for i := range list.Len() {
		name := strconv.Itoa(i)
		for _, field := range []string{"Name", "ID", "Key", "Label"} {
			if f := list.Index(i).FieldByName(field); f.IsValid() {
				name = f.String()
			}
		}
		all.names = append(all.names, name)
		all.values[name] = list.Index(i)
	}
	return all
}

// keyOf is the key of a field in a definition; empty: it has none.
func keyOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" {
		return ""
	}
	return name
}

// maxValueText bounds the text of one value, in characters.
const maxValueText = 120

// valueText is a value in one line; empty: there is none.
func valueText(v reflect.Value) string {
	switch {
	case !v.IsValid(), v.Kind() == reflect.Pointer && v.IsNil(), v.Kind() == reflect.Slice && v.Len() == 0:
		return ""
	case v.Kind() == reflect.Pointer:
		return valueText(v.Elem())
	case v.Kind() == reflect.Struct:
		return structText(v)
	case v.Kind() == reflect.Slice:
		words := make([]string, v.Len())
		for i := range words {
			words[i] = valueText(v.Index(i))
		}
		return cutValue(strings.Join(words, " "))
	}
	return cutValue(fmt.Sprint(v.Interface()))
}

// structText lists the values of a struct that are set.
func structText(v reflect.Value) string {
	var words []string
	for i := range v.NumField() {
		if key := keyOf(v.Type().Field(i)); key != "" && !v.Field(i).IsZero() {
			words = append(words, key+": "+valueText(v.Field(i)))
		}
	}
	return cutValue("{" + strings.Join(words, ", ") + "}")
}

func cutValue(text string) string {
	if r := []rune(text); len(r) > maxValueText {
		return string(r[:maxValueText]) + "…"
	}
	return text
}
