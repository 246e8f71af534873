package build_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/build"
)

func TestIDOfAnotherProgramFile(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	require.Equal(t, build.Version(), build.ID(program), "there is no file")
	made := time.Unix(1_700_000_000, 0)
	write := func(text string, at time.Time) string {
		require.NoError(t, os.WriteFile(program, []byte(text), 0o700))
		require.NoError(t, os.Chtimes(program, at, at))
		return build.ID(program)
	}
	id := write("one", made)
	require.Equal(t, id, write("two", made), "it is not read")
	require.NotEqual(t, id, write("longer", made))
	require.NotEqual(t, id, write("one", made.Add(time.Nanosecond)))
}
