package rundir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
)

// object is a JSON object whose keys keep their order and whose values keep their bytes, so that an edit changes what it names and nothing else.
// Of a key that is there twice the last value counts, as everywhere.
type object struct {
	keys   []string
	values map[string]json.RawMessage
}

func parseObject(raw []byte) (*object, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil {
		return nil, err
	} else if t != json.Delim('{') {
		return nil, fmt.Errorf("not a JSON object: it begins with %v", t)
	}
	o := &object{values: map[string]json.RawMessage{}}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		o.set(key.(string), value)
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something stands behind the JSON object")
	}
	return o, nil
}

// objectOf is a value as it would be written.
func objectOf(v any) (*object, error) {
	raw, err := marshal(v)
	if err != nil {
		return nil, err
	}
	return parseObject(raw)
}

// jsonKeys are all keys that a struct can be written with, those that are left out where they are empty included.
func jsonKeys(t reflect.Type) []string {
	var keys []string
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			keys = append(keys, name)
		}
	}
	return keys
}

// set changes a key where it stands, or adds it at the end.
func (o *object) set(key string, value json.RawMessage) {
	if _, there := o.values[key]; !there {
		o.keys = append(o.keys, key)
	}
	o.values[key] = value
}

func (o *object) drop(key string) {
	delete(o.values, key)
	o.keys = slices.DeleteFunc(o.keys, func(k string) bool { return k == key })
}

// text gives a string value; anything else is "".
func (o *object) text(key string) string {
	var s string
	if o == nil || json.Unmarshal(o.values[key], &s) != nil {
		return ""
	}
	return s
}

// bytes writes the object for people, as all JSON files of a directory are written.
func (o *object) bytes() ([]byte, error) {
	var flat, out bytes.Buffer
	flat.WriteByte('{')
	for i, k := range o.keys {
		if i > 0 {
			flat.WriteByte(',')
		}
		name, err := marshal(k)
		if err != nil {
			return nil, err
		}
		flat.Write(bytes.TrimSpace(name))
		flat.WriteByte(':')
		flat.Write(o.values[k])
	}
	flat.WriteByte('}')
	if err := json.Indent(&out, flat.Bytes(), "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// sameJSON compares two values; a key that is missing is null.
func sameJSON(a, b json.RawMessage) bool {
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
