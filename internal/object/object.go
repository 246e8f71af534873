// Package object edits a JSON object without changing the bytes of its other values.
package object

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/disk"
)

// Object is a JSON object that keeps the order of its keys and the bytes of its values, so that an edit changes only
// what it names. If a key occurs twice, the last value counts.
type Object struct {
	Keys   []string
	Values map[string]json.RawMessage
}

func ParseObject(raw []byte) (*Object, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil {
		return nil, err
	} else if t != json.Delim('{') {
		return nil, fmt.Errorf("not a JSON object: it begins with %v", t)
	}
	o := &Object{Values: map[string]json.RawMessage{}}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		o.Set(key.(string), value)
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("other data follows the JSON object")
	}
	return o, nil
}

// ObjectOf returns the JSON object of a value.
func ObjectOf(v any) (*Object, error) {
	raw, err := disk.Marshal(v)
	if err != nil {
		return nil, err
	}
	return ParseObject(raw)
}

// JSONKeys returns all keys that a struct can have in JSON, with those that are omitted when empty.
func JSONKeys(t reflect.Type) []string {
	var keys []string
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			keys = append(keys, name)
		}
	}
	return keys
}

// Set changes a key in place or adds it at the end.
func (o *Object) Set(key string, value json.RawMessage) {
	if _, there := o.Values[key]; !there {
		o.Keys = append(o.Keys, key)
	}
	o.Values[key] = value
}

func (o *Object) Drop(key string) {
	delete(o.Values, key)
	o.Keys = slices.DeleteFunc(o.Keys, func(k string) bool { return k == key })
}

// Text returns a string value; "" for any other value.
func (o *Object) Text(key string) string {
	var s string
	if o == nil || json.Unmarshal(o.Values[key], &s) != nil {
		return ""
	}
	return s
}

// Bytes encodes the object like the other JSON files of a directory.
func (o *Object) Bytes() ([]byte, error) {
	var flat, out bytes.Buffer
	flat.WriteByte('{')
	for i, k := range o.Keys {
		if i > 0 {
			flat.WriteByte(',')
		}
		name, err := disk.Marshal(k)
		if err != nil {
			return nil, err
		}
		flat.Write(bytes.TrimSpace(name))
		flat.WriteByte(':')
		flat.Write(o.Values[k])
	}
	flat.WriteByte('}')
	if err := json.Indent(&out, flat.Bytes(), "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// SameJSON compares two values; a missing key is null.
func SameJSON(a, b json.RawMessage) bool {
	return bytes.Equal(a, b) || reflect.DeepEqual(value(a), value(b))
}

func value(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return err
	}
	return v
}

func Quote(s string) json.RawMessage {
	raw, err := disk.Marshal(s)
	if err != nil {
		return nil // a string can be encoded
	}
	return raw[:len(raw)-1]
}

func Truthy(raw []byte) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", "false", "0", `""`, "{}", "[]":
		return false
	}
	return true
}

func IsObject(raw []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) }

// ObjectIn returns a value that is an object; an empty object if it is not. A nil object contains nothing.
func ObjectIn(o *Object, key string) *Object {
	if o != nil && IsObject(o.Values[key]) {
		if inner, err := ParseObject(o.Values[key]); err == nil {
			return inner
		}
	}
	return &Object{}
}

// Sealed adds the digest of a meta.json to it.
func Sealed(raw []byte, digest string) []byte {
	const end = "\n}\n"
	return append(bytes.TrimSuffix(bytes.Clone(raw), []byte(end)), ",\n  \"digest\": \""+digest+"\""+end...)
}

// Seal updates the digest of a meta.json that has one.
func (o *Object) Seal() error {
	if _, has := o.Values["digest"]; !has {
		return nil
	}
	want, err := o.Sum()
	if err != nil {
		return err
	}
	o.Set("digest", Quote(want))
	return nil
}

// Sum returns the digest of a meta.json without the key that contains it.
func (o *Object) Sum() (string, error) {
	bare := Object{Keys: slices.Clone(o.Keys), Values: maps.Clone(o.Values)}
	bare.Drop("digest")
	raw, err := bare.Bytes()
	return disk.Digest(raw), err
}
