package run

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSenderNamesTheToken(t *testing.T) {
	require.Equal(t, "ci (token)", Sender("ci", "token ci"))
	require.Equal(t, "ada (token ci)", Sender("ada", "token ci"))
	require.Equal(t, "ada (signed)", Sender("ada", "key ada"))
	require.Equal(t, "ada (not signed)", Sender("ada", "none"))
}
