package run

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// scanned is what encoding/json makes of the value at the start of a text: the index behind it, -1 if there is none.
func scanned(text string) int {
	if text == "" || strings.ContainsRune(" \t\r\n", rune(text[0])) {
		return -1
	}
	d := json.NewDecoder(strings.NewReader(text))
	var raw json.RawMessage
	if d.Decode(&raw) != nil {
		return -1
	}
	return int(d.InputOffset())
}

func sameScan(t *testing.T, text string) {
	t.Helper()
	if want, got := scanned(text), scanValue([]byte(text), 0, 0); want != got {
		t.Errorf("scanValue(%.80q) = %d, encoding/json: %d", text, got, want)
	}
}

// Short texts of every form, and longer ones that are damaged at each place.
func TestScanValueEndsWhereJSONEnds(t *testing.T) {
	const alphabet = `{}[]",:\ 10-.e+t`
	var grow func(prefix string, more int)
	grow = func(prefix string, more int) {
		sameScan(t, prefix)
		if more == 0 {
			return
		}
		for _, c := range alphabet {
			grow(prefix+string(c), more-1)
		}
	}
	grow("", 3)
	for _, text := range []string{
		`{"a":1,"b":[true,false,null],"c":{"d":"e"}}x`, "[ 1 ,\t-2.5e+10 ,\r0.25E-3 ,\n{ } , [ ] ,\"\" ]",
		`"\"\\\/\b\f\n\r\t\u00eF\uABcd9"`, `{"k" : "v" , "l" : [ ] }`, `-0`, `12.50`, `1e9`, `true`, `[{},{"":{}}]`,
	} {
		sameScan(t, text)
		for i := range text {
			sameScan(t, text[:i])
			for _, c := range alphabet + "\n\x1f\x7f/ugGfFaAzZ29\u00e9" {
				sameScan(t, text[:i]+string(c)+text[i+1:])
				sameScan(t, text[:i]+string(c)+text[i:])
			}
		}
	}
}

// A string is read eight bytes at a time: what ends or spoils it can be at each of them.
func TestScanStringFindsEveryByte(t *testing.T) {
	for before := range 20 {
		for _, special := range []string{"\"", "\\", "\\n", "\\u12aF", "\\u12", "\\x", "\x00", "\x1f", " ", "!", "#", "[",
			"]",
			"\x7f", "\u0080", "é", "\u2028", "'"} {
			for _, after := range []int{0, 1, 6, 7, 8, 9, 17} {
				text := `"` + strings.Repeat("a", before) + special + strings.Repeat("b", after)
				sameScan(t, text)
				sameScan(t, text+`"`)
				sameScan(t, text+`",`+special)
			}
		}
	}
}

func TestScanValueHasTheDepthOfJSON(t *testing.T) {
	for _, depth := range []int{maxDepth - 1, maxDepth, maxDepth + 1} {
		sameScan(t, strings.Repeat("[", depth)+strings.Repeat("]", depth))
		sameScan(t, strings.Repeat("[", depth-1)+"{}"+strings.Repeat("]", depth-1))
		sameScan(t, strings.Repeat(`{"a":`, depth-1)+"{}"+strings.Repeat("}", depth-1))
		sameScan(t, strings.Repeat(`{"a":`, depth-1)+"[]"+strings.Repeat("}", depth-1))
	}
}

func TestPlainStringsAreLiteral(t *testing.T) {
	for n := range 20 {
		for i := range n {
			for _, c := range []byte{'\\', 0x80, 0xff, '[', ']', 0x7f, ' '} {
				inside := bytes.Repeat([]byte("a"), n)
				inside[i] = c
				got, ok := plain(append(append([]byte(`"`), inside...), '"'))
				require.Equal(t, c != '\\' && c < 0x80, ok, "%q", inside)
				if ok {
					require.Equal(t, string(inside), string(got))
				}
			}
		}
	}
	empty, ok := plain([]byte(`""`))
	require.True(t, ok)
	require.Empty(t, empty)
	for _, value := range []string{"", `"`, "null", "12", "{}"} {
		_, ok := plain([]byte(value))
		require.False(t, ok, value)
	}
}

func TestIntegersThatFit(t *testing.T) {
	for _, text := range []string{"0", "7", "-1", "-0", "90210", "123456789012345678", "-999999999999999999"} {
		want, err := strconv.ParseInt(text, 10, 64)
		require.NoError(t, err)
		got, ok := integer([]byte(text))
		require.True(t, ok, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "-", "1.0", "1e3", "null", `"1"`, "1234567890123456789", "--1", "1-", "1:", "1/"} {
		_, ok := integer([]byte(text))
		require.False(t, ok, text)
	}
}

// The quick checks of names read the members of a payload as encoding/json does.
func TestUsualMembersAreLocalNames(t *testing.T) {
	for payload, want := range map[string]bool{
		`{"step":"a/1","role":"r"}`: true, ` { "dir" : "d" , "x" : [ {"step":"../"} ] } `: true, `{"x":1}`: true,
		`{"member":"m","number":7,"step":"001"}`: true,
		`{"step":"../a"}`:                        false, `{"role":"a/b"}`: false, `{"member":"a/b"}`: false,
		`{"dir":"/a"}`:       false,
		`{"x":1,"dir":".."}`: false, `{"Step":"a"}`: false, `{"\u0073tep":"a"}`: false, `{"step":7}`: false, `[]`: false,
		``: false, ` `: false, `{"step":"a"`: false, `{"x":1,`: false, `{"step":"a"} `: true, `{}`: false, `{"x":`: false,
		`7`: false, `{"step":"a`: false,
	} {
		require.Equal(t, want, usualMembers([]byte(payload)), payload)
	}
	for _, kind := range []Kind{KindPassStart, KindPassAttempt, KindPassEnd} {
		e := Event{Kind: kind, Payload: []byte(`{"step":"a"}`)}
		require.True(t, e.usualPass(), kind)
		e = e.Decoded()
		require.False(t, e.usualPass(), "%s: a decoded payload needs no second reading", kind)
	}
	e := Event{Kind: KindPhaseEnd, Payload: []byte(`{"step":"a"}`)}
	require.False(t, e.usualPass())
}
