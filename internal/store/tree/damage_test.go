package tree_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
)

// TestDamageIsNamedAndNeverCheckedOut damages one blob after another.
func TestDamageIsNamedAndNeverCheckedOut(t *testing.T) {
	files := map[string]string{"a": "precious", "d/b": "valid", "z": "last"}
	s, from := openStore(t), t.TempDir()
	for path, content := range files {
		lay(t, from, file(path, content))
	}
	saved := save(t, s, from, nil)
	of := map[store.Digest]string{saved.Digest: ""}
	for path, content := range files {
		of[store.DigestOf([]byte(content))] = path
	}
	for d, path := range of {
		blob := filepath.Join(strings.TrimPrefix(s.URL(), "file://"), "blobs", string(d[:2]), string(d[2:]))
		valid := must(os.ReadFile(blob))(t)
		for at := range min(len(valid), 3) {
			bytes := append([]byte{}, valid...)
			bytes[at] ^= 0x20
			require.NoError(t, os.WriteFile(blob, bytes, 0o600))
			to := t.TempDir()
			_, err := tree.Checkout(t.Context(), s, saved.Digest, to, tree.Rules{})
			damage := (*store.DamagedError)(nil)
			require.ErrorAs(t, err, &damage)
			require.Equal(t, d, damage.Digest)
			require.ErrorContains(t, err, path)
			requireOnly(t, to, files, path)
		}
		require.NoError(t, os.Remove(blob))
		_, err := tree.Checkout(t.Context(), s, saved.Digest, t.TempDir(), tree.Rules{})
		require.ErrorIs(t, err, store.ErrMissing)
		require.ErrorContains(t, err, string(d))
		require.NoError(t, os.WriteFile(blob, valid, 0o600))
	}
	must(tree.Checkout(t.Context(), s, saved.Digest, t.TempDir(), tree.Rules{}))(t)
}

// requireOnly compares what was checked out with the valid files.
func requireOnly(t *testing.T, dir string, files map[string]string, damaged string) {
	t.Helper()
	for _, it := range there(t, dir) {
		if it.path == "d/" {
			continue
		}
		require.NotEqual(t, damaged, it.path)
		require.Equal(t, files[it.path], it.content, it.path)
	}
}

// TestManifestWithWrongSize: each blob is valid, and the size of one is not that in the list.
func TestManifestWithWrongSize(t *testing.T) {
	s, to := openStore(t), t.TempDir()
	d := must(s.Put(t.Context(), []byte("hello")))(t)
	manifest, err := s.Put(t.Context(),
		[]byte(
			"{\"version\":1,\n\"entries\":[\n{\"name\":\"a\",\"mode\":\"file\",\"perm\":\"0644\",\"size\":4,\"sha256\":\""+
				string(d)+"\"}\n]}\n",
		))
	require.NoError(t, err)
	_, err = tree.Checkout(t.Context(), s, manifest, to, tree.Rules{})
	require.ErrorContains(t, err, "a: want 4 bytes, got 5")
	require.Empty(t, there(t, to))
}

func TestLargeFilesAreNotHeldInMemory(t *testing.T) {
	const size = 16 << 20
	s, from, to := openStore(t), t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(from, "large"), nil, 0o600))
	require.NoError(t, os.Truncate(filepath.Join(from, "large"), size))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	saved := save(t, s, from, nil)
	must(tree.Checkout(t.Context(), s, saved.Digest, to, tree.Rules{}))(t)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(size/4))
	info := must(os.Stat(filepath.Join(to, "large")))(t)
	require.EqualValues(t, size, info.Size())
}
