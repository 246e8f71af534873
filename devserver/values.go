package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
)

// list is a flag that may be repeated.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(v string) error {
	*l = append(*l, v)
	return nil
}

func unique(names []string) []string {
	var out []string
	for _, n := range names {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// pairs reads key=value; the last one of a key wins.
func (l list) pairs() (map[string]string, error) {
	out := map[string]string{}
	for _, item := range l {
		k, v, ok := strings.Cut(item, "=")
		if !ok || k == "" {
			return nil, fmt.Errorf("%q: want key=value", item)
		}
		out[k] = v
	}
	return out, nil
}

// types reads Name=Type, the type in any case.
func (l list) types() (map[string]enumspb.IndexedValueType, error) {
	pairs, err := l.pairs()
	if err != nil {
		return nil, fmt.Errorf("--search-attribute %w", err)
	}
	out := map[string]enumspb.IndexedValueType{}
	for name, word := range pairs {
		t, ok := attributeType(word)
		if !ok {
			return nil, fmt.Errorf("--search-attribute %s=%s: no such type; want Keyword, KeywordList, Text, Int, "+
				"Double, Bool or Datetime", name, word)
		}
		out[name] = t
	}
	return out, nil
}

func attributeType(word string) (enumspb.IndexedValueType, bool) {
	for name, n := range enumspb.IndexedValueType_shorthandValue {
		if n != 0 && strings.EqualFold(name, word) {
			return enumspb.IndexedValueType(n), true
		}
	}
	return 0, false
}

// values reads key=JSON. Whole numbers become int, the only whole number that dynamic config takes.
func (l list) values() (map[string]any, error) {
	pairs, err := l.pairs()
	if err != nil {
		return nil, fmt.Errorf("--dynamic-config-value %w", err)
	}
	out := map[string]any{}
	for k, text := range pairs {
		v, err := jsonValue(text)
		if err != nil {
			return nil, fmt.Errorf("--dynamic-config-value %s=%s: want JSON (a text in double quotes): %w", k, text,
				err)
		}
		out[k] = v
	}
	return out, nil
}

func jsonValue(text string) (any, error) {
	var v any
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if dec.More() {
		return nil, fmt.Errorf("more than one value")
	}
	if n, ok := v.(json.Number); ok {
		if i, err := n.Int64(); err == nil {
			return int(i), nil
		}
		return n.Float64()
	}
	return v, nil
}
