package operations

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
)

func TestContentsComeFromStoreOfRun(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "store")
	d := projector.At(filepath.Join(t.TempDir(), "run"))
	require.NoError(t, d.Take(run.Claim{Version: 1, RunID: "r", ThreadID: "r", Store: "file://" + folder}))

	missing := OpenContents(t.Context(), d.Dir)
	require.ErrorIs(t, missing.Copy("any", io.Discard), os.ErrNotExist)
	require.NoError(t, missing.Close())
	require.NoFileExists(t, folder, "reading creates no store")

	s, err := store.Open(t.Context(), "file://"+folder)
	require.NoError(t, err)
	digest, err := s.Put(t.Context(), []byte("text"))
	require.NoError(t, err)
	there := OpenContents(t.Context(), d.Dir)
	var got bytes.Buffer
	require.NoError(t, there.Copy(string(digest), &got))
	require.Equal(t, "text", got.String())
	require.NoError(t, there.Close())
}
