package tree_test

import (
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"

	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
)

// bucketOf opens what a store is made of, past the store.
func bucketOf(t *testing.T, s *store.Store) *blob.Bucket {
	t.Helper()
	u, err := url.Parse(s.URL())
	require.NoError(t, err)
	var b *blob.Bucket
	if u.Scheme == "file" {
		b, err = fileblob.OpenBucket(u.Path, &fileblob.Options{Metadata: fileblob.MetadataDontWrite})
	} else {
		b, err = blob.OpenBucket(t.Context(), s.URL())
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

// TestDamageIsNamedAndNeverLaidDown hurts one blob after another.
func TestDamageIsNamedAndNeverLaidDown(t *testing.T) {
	files := map[string]string{"a": "precious", "d/b": "sound", "z": "last"}
	onEach(t, func(t *testing.T, s *store.Store) {
		from := t.TempDir()
		for path, content := range files {
			lay(t, from, file(path, content))
		}
		saved, bucket := save(t, s, from, nil), bucketOf(t, s)
		of := map[store.Digest]string{saved.Digest: ""}
		for path, content := range files {
			of[store.DigestOf([]byte(content))] = path
		}
		for d, path := range of {
			key := "blobs/" + string(d[:2]) + "/" + string(d[2:])
			sound, err := bucket.ReadAll(t.Context(), key)
			require.NoError(t, err)
			for at := range min(len(sound), 20) {
				hurt := append([]byte{}, sound...)
				hurt[at] ^= 0x20
				require.NoError(t, bucket.WriteAll(t.Context(), key, hurt, nil))
				to := t.TempDir()
				_, err = tree.Checkout(t.Context(), s, saved.Digest, to, tree.Rules{})
				damage := (*store.DamagedError)(nil)
				require.ErrorAs(t, err, &damage)
				require.Equal(t, d, damage.Digest)
				require.ErrorContains(t, err, path)
				requireOnly(t, to, files, path)
			}
			require.NoError(t, bucket.Delete(t.Context(), key))
			_, err = tree.Checkout(t.Context(), s, saved.Digest, t.TempDir(), tree.Rules{})
			require.ErrorIs(t, err, store.ErrMissing)
			require.ErrorContains(t, err, string(d))
			require.NoError(t, bucket.WriteAll(t.Context(), key, sound, nil))
		}
		_, err := tree.Checkout(t.Context(), s, saved.Digest, t.TempDir(), tree.Rules{})
		require.NoError(t, err)
	})
}

// requireOnly holds all that was laid down to the sound files.
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

// What is right in every blob but adds up to a lie is refused too.
func TestManifestWithWrongSize(t *testing.T) {
	s, to := openStore(t), t.TempDir()
	d, err := s.Put(t.Context(), []byte("hello"))
	require.NoError(t, err)
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
	const size = 64 << 20
	s, from, to := openStore(t), t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(from, "large"), nil, 0o600))
	require.NoError(t, os.Truncate(filepath.Join(from, "large"), size))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	saved := save(t, s, from, nil)
	_, err := tree.Checkout(t.Context(), s, saved.Digest, to, tree.Rules{})
	require.NoError(t, err)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(size/8))
	info, err := os.Stat(filepath.Join(to, "large"))
	require.NoError(t, err)
	require.EqualValues(t, size, info.Size())
}
