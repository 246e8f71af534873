package terminal_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/terminal"
)

var texts = map[string]string{
	"plain\ttext, ünïcode 世界 👩‍🚀\n":    "plain\ttext, ünïcode 世界 👩‍🚀\n",
	"\x1b]0;title\x07":                 `\x1b]0;title\a`,
	"\x1b]52;c;aGk=\x1b\\":             `\x1b]52;c;aGk=\x1b\`,
	"one\rtwo":                         `one\rtwo`,
	"one\r\ntwo\r\n":                   "one\r\ntwo\r\n",
	"C1 \u009b31m \u0085":              `C1 \u009b31m \u0085`,
	"raw C1 \x9b31m":                   `raw C1 \x9b31m`,
	"bidi \u202etxt.exe\u2066 \u200f":  `bidi \u202etxt.exe\u2066 \u200f`,
	"line\u2028paragraph\u2029 \x7f":   `line\u2028paragraph\u2029 \u007f`,
	"Hebrew שלום and Arabic سلام stay": "Hebrew שלום and Arabic سلام stay",
	"cut \xe4\xb8":                     `cut \xe4\xb8`,
	"ends in a return\r":               `ends in a return\r`,
}

func TestSafe(t *testing.T) {
	for text, want := range texts {
		require.Equal(t, want, terminal.Safe(text))
		require.Equal(t, want, terminal.Safe(want), "safe text is unchanged")
	}
}

func TestWriterEscapesAcrossWrites(t *testing.T) {
	for text, want := range texts {
		for size := 1; size <= len(text); size++ {
			var out strings.Builder
			w := terminal.NewWriter(&out)
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				written, err := w.Write([]byte(rest[:n]))
				require.NoError(t, err)
				require.Equal(t, n, written)
				rest = rest[n:]
			}
			require.NoError(t, w.Flush())
			require.Equal(t, want, out.String(), "%d bytes each", size)
		}
	}
}

func TestSafeJSONHasTheSameValue(t *testing.T) {
	const text = "a\x1b\u009b\u202e\x7f\r\u2028"
	raw, err := json.Marshal(text)
	require.NoError(t, err)
	var back string
	require.NoError(t, json.Unmarshal([]byte(terminal.Safe(string(raw))), &back))
	require.Equal(t, text, back)
	require.NotContains(t, terminal.Safe(string(raw)), "\u202e")
}
