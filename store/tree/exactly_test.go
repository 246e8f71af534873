package tree

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExactlyFitsOnePath(t *testing.T) {
	for _, name := range []string{"a", "a b ", "#a", "!a", "a*b?", "[x]", `back\slash`, "{a,b}", "sub/a", "über"} {
		s, err := Rules{Ignore: []string{Exactly(name)}, IncludeSecrets: true}.compile()
		require.NoError(t, err, name)
		require.True(t, matches(s.ignore, name, false), name)
		for _, other := range []string{"ab", "sub/" + name + "x", "other/" + name, "x", "aXbY", "a,b", "b"} {
			require.False(t, matches(s.ignore, other, false), "%q ignores %q", name, other)
		}
	}
	s, err := Rules{Ignore: []string{Exactly("out/")}}.compile()
	require.NoError(t, err)
	require.True(t, matches(s.ignore, "out", true))
	require.False(t, matches(s.ignore, "out", false), "a file of that name is none")
}
