package lazyregexp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMistakesAreFoundByTests(t *testing.T) {
	require.Panics(t, func() { New(`(`) })
}
