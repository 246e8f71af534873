package watch

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/terminal"
)

// attacked puts text that controls a terminal into every text of a value.
func attacked(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			attacked(v.Elem(), text)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			attacked(v.Field(i), text)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			attacked(v.Index(i), text)
		}
	case reflect.String:
		if v.CanSet() && v.Type() == reflect.TypeFor[string]() {
			v.SetString(v.String() + text)
		}
	}
}

// TestScreenControlsNoTerminal draws runs whose texts try to write to the clipboard, to change colours and to reorder
// characters.
func TestScreenControlsNoTerminal(t *testing.T) {
	for name, s := range map[string]Scene{"at pass 35": at35(), "delivering": delivering()} {
		t.Run(name, func(t *testing.T) {
			attacked(reflect.ValueOf(&s).Elem(), "\x1b]52;c;aGk=\x07\u009b31m\u202e\x1b[8m")
			for _, width := range []int{80, 140} {
				shown := draw(s, width, 200, true)
				require.NotContains(t, shown, "\x1b[8m")
				plain := codes.ReplaceAllString(shown, "")
				require.Equal(t, terminal.Safe(plain), plain)
			}
		})
	}
}

func TestSafeTextsCopiesWhatIsUnsafe(t *testing.T) {
	type word string
	type row struct {
		Name  word
		Lines []string
		Of    *row
		By    map[string]any
		At    time.Time
	}
	at := time.Unix(1, 0)
	bad := row{Name: "a\x1b", Lines: []string{"b", "c\u202e"}, Of: &row{Name: "d\a"},
		By: map[string]any{"e\x9b": "f\u009b"},
		At: at}
	require.Equal(t, row{Name: `a\x1b`, Lines: []string{"b", `c\u202e`}, Of: &row{Name: `d\a`},
		By: map[string]any{`e\x9b`: `f\u009b`}, At: at}, safeTexts(bad))
	require.Equal(t, word("a\x1b"), bad.Name, "the original keeps its text")
	require.Equal(t, "c\u202e", bad.Lines[1])
	require.Equal(t, word("d\a"), bad.Of.Name)
	good := row{Lines: []string{"b"}}
	require.Same(t, &good.Lines[0], &safeTexts(good).Lines[0], "it is not copied")
}
