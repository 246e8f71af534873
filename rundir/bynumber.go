package rundir

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	json1 "github.com/go-json-experiment/json/v1"
)

// ByNumber is a JSON object whose keys are numbers. Its members are written in numeric order, "2" before "10", so that
// diffs are easy to read.
type ByNumber[T any] map[string]T

// MarshalJSONTo writes the object in the order of its numbers.
func (m ByNumber[T]) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, key := range KeysByNumber(m) {
		if err := enc.WriteToken(jsontext.String(key)); err != nil {
			return err
		}
		if err := json2.MarshalEncode(enc, m[key]); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}

// MarshalJSON is MarshalJSONTo for encoding/json.
func (m ByNumber[T]) MarshalJSON() ([]byte, error) {
	return json2.Marshal(m, json1.DefaultOptionsV1(), jsontext.EscapeForHTML(false))
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
