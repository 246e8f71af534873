package object_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/object"
)

// TestObjectKeepsItsOrder: what a program does not know stays where it was.
func TestObjectKeepsItsOrder(t *testing.T) {
	o, err := object.ParseObject([]byte(`{"z":1.50,"a":{"b":"<&>"},"m":null}`))
	require.NoError(t, err)
	o.Set("z", json.RawMessage(`2`))
	o.Set("new", object.Quote("<x>"))
	o.Drop("m")
	require.Equal(t, []string{"z", "a", "new"}, o.Keys)
	raw, err := o.Bytes()
	require.NoError(t, err)
	require.Equal(t, "{\n  \"z\": 2,\n  \"a\": {\n    \"b\": \"<&>\"\n  },\n  \"new\": \"<x>\"\n}\n", string(raw))
	require.Equal(t, "<x>", o.Text("new"))
	require.Empty(t, o.Text("z"), "a number")
	require.Empty(t, o.Text("none"))
	require.Empty(t, (*object.Object)(nil).Text("a"))
	require.Equal(t, "<&>", object.ObjectIn(o, "a").Text("b"))
	require.Empty(t, object.ObjectIn(o, "z").Keys)
	require.Empty(t, object.ObjectIn(nil, "z").Keys)
	_, gone := o.Values["m"]
	require.False(t, gone)
	same, err := object.ObjectOf(struct {
		B int `json:"b"`
		A int `json:"a"`
	}{1, 2})
	require.NoError(t, err)
	require.Equal(t, []string{"b", "a"}, same.Keys)
	_, err = object.ObjectOf(func() {})
	require.Error(t, err)
	o.Set("bad", json.RawMessage(`{`))
	_, err = o.Bytes()
	require.Error(t, err)
	require.Empty(t, object.ObjectIn(o, "bad").Keys)
	for text, want := range map[string]string{`[1]`: "not a JSON object: it begins with [",
		`{"a":1} x`: "other data follows the JSON object", `{"a":1`: "EOF",
		`{"a"`: "EOF", `{"a":`: "EOF", `{"a" 1}`: "colon", ``: "EOF"} {
		_, err := object.ParseObject([]byte(text))
		require.ErrorContains(t, err, want, text)
	}
}

func TestValuesOfJSON(t *testing.T) {
	for _, row := range []struct {
		a, b string
		same bool
	}{
		{`{"a":1,"b":[2]}`, `{ "b": [2], "a": 1 }`, true}, {`1`, `1.0`, false},
		{`9007199254740993`, `9007199254740992`, false},
		{`null`, ``, true}, {`"a"`, `"b"`, false}, {`{`, `{`, true}, {`{"a":null}`, `{}`, false},
	} {
		require.Equal(t, row.same, object.SameJSON(json.RawMessage(row.a), json.RawMessage(row.b)), "%s %s", row.a, row.b)
	}
	for text, want := range map[string]bool{``: false, ` null `: false, `false`: false, `0`: false, `""`: false,
		`{}`: false, `[]`: false, `1`: true, `"x"`: true, `true`: true, `[0]`: true} {
		require.Equal(t, want, object.Truthy([]byte(text)), text)
	}
	require.True(t, object.IsObject([]byte(" {}")))
	require.False(t, object.IsObject([]byte("[{}]")))
	type inner struct {
		C int `json:"c,omitempty"`
	}
	require.Equal(t, []string{"a", "c"}, object.JSONKeys(reflect.TypeFor[struct {
		A int `json:"a"`
		B int `json:"-"`
		inner
		D int
	}]()))
}

// TestSealedObject: the digest is that of the object without it, and changes with every other key.
func TestSealedObject(t *testing.T) {
	bare := []byte("{\n  \"a\": 1\n}\n")
	raw := object.Sealed(bare, disk.Digest(bare))
	require.Equal(t, "{\n  \"a\": 1,\n  \"digest\": \""+disk.Digest(bare)+"\"\n}\n", string(raw))
	require.Equal(t, "{\n  \"a\": 1\n}\n", string(bare))
	o, err := object.ParseObject(raw)
	require.NoError(t, err)
	sum, err := o.Sum()
	require.NoError(t, err)
	require.Equal(t, disk.Digest(bare), sum)
	require.Equal(t, []string{"a", "digest"}, o.Keys, "it is unchanged")
	o.Set("a", json.RawMessage(`2`))
	require.NoError(t, o.Seal())
	require.Equal(t, disk.Digest([]byte("{\n  \"a\": 2\n}\n")), o.Text("digest"))
	o.Drop("digest")
	require.NoError(t, o.Seal())
	require.Equal(t, []string{"a"}, o.Keys, "an object without a digest gets none")
}
