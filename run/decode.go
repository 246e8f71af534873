package run

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// This file decodes payloads faster than encoding/json, with the same result, and checks them on the way. Whatever is
// unusual in a value (escapes, other types, several members of one name) is left to encoding/json.

// words keeps strings that were decoded, by a hash, because the events of a run repeat most of them. A nil one keeps
// none.
type words [512]string

func (w *words) text(b []byte) string {
	const longest = 80 // a digest and more
	if w == nil || len(b) > longest {
		return string(b)
	}
	h := uint32(len(b))
	for i := len(b) - 1; i >= 0; i -= 3 {
		h = h*31 + uint32(b[i])
	}
	if kept := &w[h%uint32(len(w))]; *kept != string(b) {
		*kept = string(b)
	}
	return w[h%uint32(len(w))]
}

// decodeInto decodes a payload into v, which is zero. Members that do not fit stay zero.
func decodeInto(payload []byte, v reflect.Value) {
	d := decoderOf(v.Type())
	if d.usual && d.value(nil, payload, skipSpace(payload, 0), 1, v) >= 0 {
		return
	}
	v.SetZero()
	if err := json.Unmarshal(payload, v.Addr().Interface()); err != nil {
		return // encoding/json has filled in every field that fits
	}
}

// decoder decodes objects into one struct type.
type decoder struct {
	usual  bool // false: left to encoding/json
	fields []fieldDecoder
	byName map[string]int
}

type fieldDecoder struct {
	name   string
	index  []int
	decode decodeValue
}

// decodeValue checks and decodes the value at i and returns the index after it; -1: it is not JSON, or the whole
// payload is left to encoding/json. depth counts the values around it.
type decodeValue func(w *words, b []byte, i, depth int, to reflect.Value) int

// decoders are those of all payloads. They never change.
var decoders = decodersOf{}

func init() { decoders = payloadDecoders() } // it cannot be the first value, because folds decode payloads

type decodersOf map[reflect.Type]*decoder

func payloadDecoders() decodersOf {
	all := decodersOf{}
	for _, row := range allKinds() {
		all.of(reflect.TypeOf(row.payload()).Elem())
		all.of(reflect.TypeOf(row.decodes()).Elem())
	}
	return all
}

func decoderOf(t reflect.Type) *decoder {
	if d := decoders[t]; d != nil {
		return d
	}
	return decodersOf{}.of(t)
}

// of returns the decoder of a type, and makes it first where there is none.
func (all decodersOf) of(t reflect.Type) *decoder {
	if d := all[t]; d != nil {
		return d
	}
	d := &decoder{usual: t.Kind() == reflect.Struct && !unmarshals(t), byName: map[string]int{}}
	all[t] = d // before its fields: a type may contain itself
	if !d.usual {
		return d
	}
	d.add(all, t, nil, map[string]int{})
	return d
}

// add adds the fields of a struct, those of embedded structs included. reflect.VisibleFields lacks a field that has the
// name of the embedded struct around it. depth has that of each name.
func (d *decoder) add(all decodersOf, t reflect.Type, outer []int, depth map[string]int) {
	for i := range t.NumField() {
		f, index := t.Field(i), append(slices.Clip(outer), i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			d.add(all, f.Type, index, depth) // unexported structs hold exported fields
		case f.Anonymous && name == "":
			d.usual = false // a pointer is set when it is needed
		case f.IsExported() && name != "-":
			d.field(all, cmp.Or(name, f.Name), index, f.Type, depth)
		}
	}
}

func (d *decoder) field(all decodersOf, name string, index []int, t reflect.Type, depth map[string]int) {
	was, there := depth[name]
	if there && was < len(index) {
		return // a field of an outer struct hides it
	}
	d.usual = d.usual && !(there && was == len(index)) && !foldable([]byte(name))
	depth[name] = len(index)
	if !there {
		d.byName[name] = len(d.fields)
		d.fields = append(d.fields, fieldDecoder{})
	}
	d.fields[d.byName[name]] = fieldDecoder{name, index, all.value(t)}
}

// unmarshals reports whether a type decodes itself.
func unmarshals(t reflect.Type) bool {
	self := reflect.TypeFor[json.Unmarshaler]()
	return t.Implements(self) || reflect.PointerTo(t).Implements(self)
}

// value decodes an object into a struct.
func (d *decoder) value(w *words, b []byte, i, depth int, to reflect.Value) int {
	if i >= len(b) || b[i] != '{' || depth >= maxDepth {
		return scanValue(b, i, depth) // null, or what does not fit
	}
	if i = skipSpace(b, i+1); i < len(b) && b[i] == '}' {
		return i + 1
	}
	for next := 0; ; i++ { // next is the field that is likely to come, because our writer keeps their order
		s := scanKey(b, i)
		if s.end < 0 {
			return -1
		}
		f, known := d.find(b[s.key:s.keyEnd], next)
		switch {
		case known:
			next = f + 1
			i = d.fields[f].decode(w, b, s.value, depth+1, d.fields[f].of(to))
		case foldable(b[s.key:s.keyEnd]):
			return -1
		default:
			i = scanValue(b, s.value, depth+1)
		}
		if i < 0 {
			return -1
		}
		if i = skipSpace(b, i); i >= len(b) || b[i] != ',' && b[i] != '}' {
			return -1
		}
		if b[i] == '}' {
			return i + 1
		}
	}
}

// of returns the field in a struct.
func (f *fieldDecoder) of(v reflect.Value) reflect.Value {
	for _, i := range f.index {
		v = v.Field(i)
	}
	return v
}

// find returns the field of a name. It compares a few from the likely one on first.
func (d *decoder) find(name []byte, likely int) (int, bool) {
	const few = 4
	for i := likely; i < len(d.fields) && i < likely+few; i++ {
		if d.fields[i].name == string(name) {
			return i, true
		}
	}
	i, known := d.byName[string(name)]
	return i, known
}

// foldable reports whether encoding/json may take a name for another spelling of a field.
func foldable(name []byte) bool {
	for _, c := range name {
		if c >= 0x80 || c == '\\' || 'A' <= c && c <= 'Z' {
			return true
		}
	}
	return false
}

// value returns the function that decodes values of a type.
func (all decodersOf) value(t reflect.Type) decodeValue {
	switch {
	case unmarshals(t):
		return decodeAny
	case t.Kind() == reflect.String:
		return decodeString
	case t.Kind() == reflect.Int || t.Kind() == reflect.Int64:
		return decodeInt
	case t.Kind() == reflect.Float64:
		return decodeFloat
	case t.Kind() == reflect.Bool:
		return decodeBool
	case t.Kind() == reflect.Pointer:
		return pointerDecoder(t, all.value(t.Elem()))
	case t.Kind() == reflect.Struct:
		return structDecoder(all.of(t))
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return sliceDecoder(t, all.value(t.Elem()))
	}
	return decodeAny
}

// decodeAny leaves one value to encoding/json.
func decodeAny(_ *words, b []byte, i, depth int, to reflect.Value) int {
	end := scanValue(b, i, depth)
	if end < 0 {
		return -1
	}
	if err := json.Unmarshal(b[i:end], to.Addr().Interface()); err != nil {
		return end // what fits is filled in
	}
	return end
}

func decodeString(w *words, b []byte, i, depth int, to reflect.Value) int {
	if i >= len(b) || b[i] != '"' {
		return decodeAny(w, b, i, depth, to)
	}
	end := scanString(b, i+1)
	if end < 0 {
		return -1
	}
	text, ok := plain(b[i:end])
	if !ok {
		return decodeAny(w, b, i, depth, to)
	}
	to.SetString(w.text(text))
	return end
}

func decodeInt(w *words, b []byte, i, depth int, to reflect.Value) int {
	end := scanValue(b, i, depth)
	if end < 0 {
		return -1
	}
	n, ok := integer(b[i:end])
	if !ok {
		return decodeAny(w, b, i, depth, to)
	}
	to.SetInt(n)
	return end
}

func decodeFloat(w *words, b []byte, i, depth int, to reflect.Value) int {
	end := scanValue(b, i, depth)
	if end < 0 {
		return -1
	}
	if b[i] != '-' && !isDigit(b[i]) {
		return end // null, or what does not fit
	}
	if n, err := strconv.ParseFloat(string(b[i:end]), 64); err == nil {
		to.SetFloat(n)
	}
	return end
}

func decodeBool(_ *words, b []byte, i, depth int, to reflect.Value) int {
	end := scanValue(b, i, depth)
	if end > i && (b[i] == 't' || b[i] == 'f') {
		to.SetBool(b[i] == 't')
	}
	return end
}

func pointerDecoder(t reflect.Type, elem decodeValue) decodeValue {
	return func(w *words, b []byte, i, depth int, to reflect.Value) int {
		if i < len(b) && b[i] == 'n' {
			to.SetZero()
			return scanWord(b, i, "null")
		}
		if to.IsNil() {
			to.Set(reflect.New(t.Elem()))
		}
		return elem(w, b, i, depth, to.Elem())
	}
}

func structDecoder(d *decoder) decodeValue {
	return func(w *words, b []byte, i, depth int, to reflect.Value) int {
		if d.usual {
			return d.value(w, b, i, depth, to)
		}
		return -1
	}
}

func sliceDecoder(t reflect.Type, elem decodeValue) decodeValue {
	empty := reflect.MakeSlice(t, 0, 0)
	return func(w *words, b []byte, i, depth int, to reflect.Value) int {
		if i >= len(b) || b[i] != '[' || !to.IsNil() || depth >= maxDepth {
			return decodeAny(w, b, i, depth, to)
		}
		if i = skipSpace(b, i+1); i < len(b) && b[i] == ']' {
			to.Set(empty)
			return i + 1
		}
		for n := 0; ; i, n = i+1, n+1 {
			to.Grow(1) // in place: reflect.Append allocates a header for each element
			to.SetLen(n + 1)
			to.Index(n).SetZero()
			i = elem(w, b, skipSpace(b, i), depth+1, to.Index(n))
			if i < 0 {
				return -1
			}
			if i = skipSpace(b, i); i >= len(b) || b[i] != ',' && b[i] != ']' {
				return -1
			}
			if b[i] == ']' {
				return i + 1
			}
		}
	}
}
