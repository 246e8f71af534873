package process

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzParseStat(f *testing.F) {
	rest := strings.Repeat(" 1", 18) + " 4711 1 1"
	for _, name := range []string{"sh", "a b", ") Z (", "\n", ""} {
		f.Add([]byte("12 (" + name + ") S" + rest))
		f.Add([]byte("12 (" + name + ") Z" + rest))
	}
	f.Add([]byte("12 (sh"))
	f.Fuzz(func(t *testing.T, stat []byte) {
		_, _ = parseStat(stat) // must not panic
	})
}

func TestParseStat(t *testing.T) {
	rest := strings.Repeat(" 1", 18) + " 4711 1 1"
	for name, row := range map[string]struct {
		stat string
		want entry
	}{
		"plain":              {"12 (sh) S" + rest, entry{start: "4711", parent: 1}},
		"zombie":             {"12 (sh) Z" + rest, entry{start: "4711", parent: 1, zombie: true}},
		"a name with traps":  {"12 () Z 1 (\n) S" + rest, entry{start: "4711", parent: 1}},
		"dead, not yet gone": {"12 (sh) X" + rest, entry{start: "4711", parent: 1, zombie: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseStat([]byte(row.stat))
			require.NoError(t, err)
			require.Equal(t, row.want, got)
		})
	}
	_, err := parseStat([]byte("12 (sh) S 1 2"))
	require.ErrorContains(t, err, "cannot read")
}
