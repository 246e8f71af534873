package disk_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
)

func TestFilesOfFolder(t *testing.T) {
	f := disk.Folder{Root: t.TempDir()}
	require.NoError(t, os.WriteFile(filepath.Join(f.Root, "a.json"), []byte(`{"n":3}`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(f.Root, "bad.json"), []byte(`{`), 0o600))
	var v struct{ N int }
	require.NoError(t, f.ReadJSON("a.json", &v))
	require.Equal(t, 3, v.N)
	err := f.ReadJSON("bad.json", &v)
	require.ErrorIs(t, err, disk.ErrDamaged)
	require.ErrorContains(t, err, f.Path("bad.json")+" is damaged: ")
	require.True(t, disk.Missing(err))
	require.False(t, disk.Lost(err))
	err = f.ReadJSON("none", &v)
	require.True(t, disk.Missing(err) && disk.Lost(err))
	require.True(t, disk.Lost(fmt.Errorf("x: %w", fs.ErrInvalid)))
	require.False(t, disk.Missing(errors.New("x")))
	raw, err := f.ReadRaw("none")
	require.NoError(t, err)
	require.Nil(t, raw)
	digest, err := f.DigestOf("a.json")
	require.NoError(t, err)
	require.Equal(t, disk.Digest([]byte(`{"n":3}`)), digest)
	digest, err = f.DigestOf("none")
	require.NoError(t, err)
	require.Empty(t, digest)
	names, err := f.Entries(".")
	require.NoError(t, err)
	require.Equal(t, []string{"a.json", "bad.json"}, names)
	names, err = f.Entries("none")
	require.NoError(t, err)
	require.Empty(t, names)
	for _, read := range []func() error{
		func() error { _, err := f.ReadRaw("."); return err },
		func() error { _, err := f.DigestOf("."); return err },
		func() error { _, err := f.Entries("a.json"); return err },
	} {
		require.Error(t, read())
	}
	text, err := disk.Marshal(map[string]string{"a": "<b>"})
	require.NoError(t, err)
	require.Equal(t, "{\n  \"a\": \"<b>\"\n}\n", string(text))
	_, err = disk.Marshal(func() {})
	require.Error(t, err)
	require.Equal(t, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", disk.Digest([]byte("abc")))
}
