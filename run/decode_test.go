package run

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// number fills a value so that no two of its fields are equal, as far as their types allow it.
func number(v reflect.Value, n *int, depth int) {
	switch v.Kind() {
	case reflect.Pointer:
		if depth < 8 {
			v.Set(reflect.New(v.Type().Elem()))
			number(v.Elem(), n, depth+1)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(fmt.Sprint(*n)))
		} else if depth < 8 {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			number(v.Index(0), n, depth+1)
			number(v.Index(1), n, depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				number(v.Field(i), n, depth+1)
			}
		}
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *n))
	case reflect.Bool:
		v.SetBool(*n%2 == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	}
	*n++
}

// payloadTypes are those of all event kinds.
func payloadTypes() map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for _, row := range allKinds() {
		all[string(row.kind)] = reflect.TypeOf(row.payload()).Elem()
		all[string(row.kind)+" decoded"] = reflect.TypeOf(row.decodes()).Elem()
	}
	return all
}

// sameDecoded compares a payload that is decoded here with the one that encoding/json decodes, from fresh and from kept
// words.
func sameDecoded(t *testing.T, of reflect.Type, payload string) {
	t.Helper()
	want, quick, whole := reflect.New(of), reflect.New(of), reflect.New(of)
	err := json.Unmarshal([]byte(payload), want.Interface())
	decodeInto([]byte(payload), whole.Elem())
	require.Equal(t, want.Interface(), whole.Interface(), "%s: %v", payload, err)
	d := decoderOf(of)
	if !d.usual || !json.Valid([]byte(payload)) {
		return
	}
	if end := d.value(&words{}, []byte(payload), 0, 1, quick.Elem()); end >= 0 {
		require.Equal(t, len(payload), end, payload)
		require.Equal(t, want.Interface(), quick.Interface(), payload)
	}
}

// Every payload with all its fields, each field with a value of another type, and the same cut off at each place.
func TestDecodeReadsWhatJSONReads(t *testing.T) {
	for name, of := range payloadTypes() {
		v, n := reflect.New(of).Elem(), 1
		number(v, &n, 0)
		raw, err := encode(v.Interface())
		require.NoError(t, err, name)
		sameDecoded(t, of, string(raw))
		if d := decoderOf(of); d.usual && !strings.Contains(string(raw), `"state":{`) {
			into := reflect.New(of)
			require.Equal(t, len(raw), d.value(nil, raw, 0, 1, into.Elem()), "%s has its usual form: %s", name, raw)
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil {
			continue
		}
		for key := range members {
			for _, odd := range []string{`null`, `0`, `-1.5e3`, `9223372036854775807`, `true`, `""`, `"é\u0041\n"`, `[]`, `{}`,
				`[null]`, `[1,"a",{}]`, `{"a":[{}]}`, ` [ "a" , "b" ] `, `[{"digest":"d"},7]`} {
				sameDecoded(t, of, fmt.Sprintf(`{%q:%s}`, key, odd))
				sameDecoded(t, of, fmt.Sprintf(`{%q:%s,%q:%s}`, key, members[key], key, odd))
				sameDecoded(t, of, fmt.Sprintf(`{ "zz":1, %q :%s}`, key, odd))
			}
			sameDecoded(t, of, fmt.Sprintf(`{%q:%s}`, strings.ToUpper(key), members[key]))
		}
	}
}

// What is not JSON is left to encoding/json, wherever it breaks off.
func TestDecodeRefusesWhatIsCutOff(t *testing.T) {
	of := reflect.TypeFor[PassEnd]()
	v, n := reflect.New(of).Elem(), 1
	number(v, &n, 0)
	raw, err := encode(v.Interface())
	require.NoError(t, err)
	d := decoderOf(of)
	for i := range raw {
		into := reflect.New(of).Elem()
		require.Negative(t, d.value(nil, raw[:i], 0, 1, into), "%s", raw[:i])
		for _, c := range `"{}[],:x` {
			changed := append([]byte(nil), raw...)
			changed[i] = byte(c)
			into.SetZero()
			if end := d.value(nil, changed, 0, 1, into); end == len(raw) {
				require.True(t, json.Valid(changed), "%s", changed)
			} else if end >= 0 {
				require.Equal(t, scanned(string(changed)), end, "%s", changed)
			}
		}
	}
	for _, depth := range []int{maxDepth - 3, maxDepth - 2, maxDepth - 1, maxDepth, maxDepth + 1} {
		lists := strings.Repeat("[", depth) + strings.Repeat("]", depth)
		for _, key := range []string{"unknown", "files", "reply", "next", "step", "number", "modified", "score"} {
			payload := []byte(`{"` + key + `":` + lists + `}`)
			into := reflect.New(of).Elem()
			want := scanValue(payload, 0, 1)
			if got := d.value(nil, payload, 0, 1, into); got >= 0 || key == "unknown" {
				require.Equal(t, want, got, "%s, %d deep", key, depth)
			}
		}
	}
}

// Fields of embedded structs, hidden fields and names in capitals: what is not usual is left to encoding/json.
func TestDecodersOfUnusualTypes(t *testing.T) {
	type inner struct {
		A string `json:"a"`
		B string `json:"b"`
	}
	type Other struct {
		A string `json:"a"`
	}
	type hidden struct {
		inner
		B int    `json:"b"`
		C string `json:"-"`
		d string //lint:ignore U1000 the decoder must leave it out
	}
	type capital struct{ Name string }
	type Another struct {
		A string `json:"a"`
	}
	type pointer struct {
		*Other
		X string `json:"x"`
	}
	type bytesOf struct {
		Raw []byte             `json:"raw"`
		Map map[string]float64 `json:"map"`
		Of  json.RawMessage    `json:"of"`
		U   uint8              `json:"u"`
	}
	twice := reflect.StructOf([]reflect.StructField{ // vet refuses it where it is written out
		{Name: "Other", Type: reflect.TypeFor[Other](), Anonymous: true},
		{Name: "Another", Type: reflect.TypeFor[Another](), Anonymous: true},
	})
	for _, row := range []struct {
		of    reflect.Type
		usual bool
	}{
		{reflect.TypeFor[inner](), true}, {reflect.TypeFor[hidden](), true}, {reflect.TypeFor[capital](), false},
		{twice, false}, {reflect.TypeFor[pointer](), false}, {reflect.TypeFor[bytesOf](), true},
		{reflect.TypeFor[json.RawMessage](), false}, {reflect.TypeFor[map[string]int](), false},
		{reflect.TypeFor[QuestionRequested](), false},
	} {
		require.Equal(t, row.usual, decoderOf(row.of).usual, "%s", row.of)
		for _, payload := range []string{`{"a":"1","b":2,"-":"3","C":"4","d":"5"}`, `{"b":"2","a":"1"}`,
			`{"name":"n","Name":"m","x":"y","a":"z"}`, `{"raw":"AQI=","map":{"a":1},"of":{"b":2},"u":3}`, `{}`, `null`, `7`} {
			sameDecoded(t, row.of, payload)
		}
	}
	require.Equal(t, hidden{inner: inner{A: "1"}, B: 2}, decode[hidden]([]byte(`{"a":"1","b":2,"d":"5"}`)))
}

// Strings that repeat are kept once, also when others come between them.
func TestRepeatedWordsAreKept(t *testing.T) {
	var w words
	data := func(s string) *byte { return unsafe.StringData(w.text([]byte(s))) }
	long := strings.Repeat("a", 80)
	for _, text := range []string{"a", "agent", long} {
		require.Same(t, data(text), data(text), text)
	}
	require.NotSame(t, data(long+"b"), data(long+"b"), "longer ones are not worth a search")
	roles := []string{"builder", "buildes", "auilder", "verifier", "cuilder"}
	var first []*byte
	for _, role := range roles {
		first = append(first, data(role))
	}
	for i, role := range roles {
		require.Same(t, first[i], data(role), role)
		require.Equal(t, role, w.text([]byte(role)))
	}
	var none *words
	require.Equal(t, "agent", none.text([]byte("agent")))
}
