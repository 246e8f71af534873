package rundir

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// ByNumber is a JSON object whose keys are numbers. Its members are written in numeric order, "2" before "10", so that
// diffs are easy to read.
type ByNumber[T any] map[string]T

// MarshalJSON writes the object in the order of its numbers.
func (m ByNumber[T]) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	out.WriteByte('{')
	for i, key := range KeysByNumber(m) {
		if i > 0 {
			out.WriteByte(',')
		}
		if err := enc.Encode(key); err != nil {
			return nil, err
		}
		out.WriteByte(':')
		if err := enc.Encode(m[key]); err != nil {
			return nil, err
		}
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// KeysByNumber returns the keys in the order of their numbers.
func KeysByNumber[M ~map[string]T, T any](m M) []string {
	return slices.SortedFunc(maps.Keys(m), byNumber)
}

func byNumber(a, b string) int {
	x, _ := strconv.Atoi(a)
	y, _ := strconv.Atoi(b)
	return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
}
