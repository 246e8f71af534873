package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
)

func openTestFolder(t *testing.T) (*Store, *folder) {
	t.Helper()
	s, err := Open(t.Context(), "file://"+filepath.Join(t.TempDir(), "store"))
	require.NoError(t, err)
	return s, s.medium.(*folder)
}

func TestDamageIsDetectedAndRepaired(t *testing.T) {
	damages := []struct {
		name   string
		damage func(data []byte) []byte
	}{
		{"a flipped byte", func(data []byte) []byte { data[3] ^= 1; return data }},
		{"cut short", func(data []byte) []byte { return data[:3] }},
		{"emptied", func([]byte) []byte { return nil }},
		{"longer", func(data []byte) []byte { return append(data, 'x') }},
	}
	for _, tt := range damages {
		t.Run(tt.name, func(t *testing.T) {
			s, f := openTestFolder(t)
			d, err := s.Put(t.Context(), []byte("precious"))
			require.NoError(t, err)
			path := f.where(d.name())
			require.NoError(t, os.WriteFile(path, tt.damage([]byte("precious")), 0o600))

			_, err = s.Get(t.Context(), d)
			require.ErrorIs(t, err, ErrDamaged)
			damaged := (*DamagedError)(nil)
			require.ErrorAs(t, err, &damaged)
			require.Equal(t, d, damaged.Digest)
			require.Equal(t, path, damaged.Where)

			_, err = s.Put(t.Context(), []byte("precious"))
			require.NoError(t, err)
			got, err := s.Get(t.Context(), d)
			require.NoError(t, err)
			require.Equal(t, "precious", string(got))
		})
	}
}

func TestPutSyncs(t *testing.T) {
	s, f := openTestFolder(t)
	var steps []string
	f.disk.Hook = func(st disk.Step) error {
		if st.Op == disk.OpSync || st.Op == disk.OpSyncFolder || st.Op == disk.OpWrite {
			steps = append(steps, string(st.Op))
		}
		return nil
	}
	put := func(data string) []string {
		steps = nil
		_, err := s.Put(t.Context(), []byte(data))
		require.NoError(t, err)
		return steps
	}
	first, second := twoInOneFolder()
	require.Equal(t, []string{"write", "sync", "sync folder", "sync folder", "sync folder", "sync folder"}, put(first),
		"with two new folders")
	require.Equal(t, []string{"write", "sync", "sync folder", "sync folder"}, put(second))
	require.Empty(t, put(second), "this process made it durable")
	f.knownBlobs = digestSet{}
	require.Equal(t, []string{"sync", "sync folder", "sync folder"}, put(second),
		"a blob that another process left, and the folder that it may have made, are made durable")
	require.Empty(t, put(second))
	require.NoError(t, os.Remove(f.where(DigestOf([]byte(second)).name())))
	require.Equal(t, []string{"write", "sync", "sync folder", "sync folder"}, put(second), "a blob that was lost is written")
}

func TestBatchSyncsEachFolderOnce(t *testing.T) {
	s, f := openTestFolder(t)
	first, second := twoInOneFolder()
	_, err := s.Put(t.Context(), []byte(first))
	require.NoError(t, err)
	f.knownBlobs = digestSet{} // as if another process had left it
	var steps []string
	f.disk.Hook = func(st disk.Step) error {
		if st.Op == disk.OpSync || st.Op == disk.OpSyncFolder || st.Op == disk.OpWrite {
			steps = append(steps, string(st.Op))
		}
		return nil
	}
	b := s.Batch()
	for _, text := range []string{first, second, second, first} {
		require.NoError(
			t, b.PutFrom(t.Context(), DigestOf([]byte(text)),
				func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }),
		)
	}
	require.Equal(t, []string{"sync", "write", "sync"}, steps)
	require.NoError(t, b.End())
	require.NoError(t, b.End())
	require.Equal(t, []string{"sync", "write", "sync", "sync folder", "sync folder"}, steps)
}

// twoInOneFolder returns two texts whose blobs share a folder.
func twoInOneFolder() (string, string) {
	seen := map[string]string{}
	for i := 0; ; i++ {
		text := fmt.Sprint(i)
		key := filepath.Dir(DigestOf([]byte(text)).name())
		if other, ok := seen[key]; ok {
			return other, text
		}
		seen[key] = text
	}
}

func TestFaultAtEveryStepOfPut(t *testing.T) {
	errStop := errors.New("stop")
	for k := 0; ; k++ {
		s, f := openTestFolder(t)
		n := 0
		f.disk.Hook = func(disk.Step) error {
			if n++; n > k {
				return errStop
			}
			return nil
		}
		d, err := s.Put(t.Context(), []byte("precious"))
		if err == nil {
			require.Greater(t, k, 8, "the hook never fired")
			require.Equal(t, k, n)
			return
		}
		require.ErrorIs(t, err, errStop)
		require.Empty(t, d)

		s, err = Open(t.Context(), s.URL())
		require.NoError(t, err)
		d = DigestOf([]byte("precious"))
		if _, err := s.Get(t.Context(), d); err != nil {
			require.ErrorIs(t, err, ErrMissing)
		}
		_, err = s.Put(t.Context(), []byte("precious"))
		require.NoError(t, err)
		_, err = s.Get(t.Context(), d)
		require.NoError(t, err)
	}
}

func TestChangingFileIsNotStored(t *testing.T) {
	_, f := openTestFolder(t)
	opened := 0
	from := func() (io.ReadCloser, error) {
		opened++
		return io.NopCloser(strings.NewReader(fmt.Sprintf("version %d", opened))), nil
	}
	d, _, err := DigestFrom(from)
	require.NoError(t, err)
	require.ErrorIs(t, f.begin().put(t.Context(), d, from), ErrChanged)
	there, err := f.has(t.Context(), d.name())
	require.NoError(t, err)
	require.False(t, there)
}

func TestFolderIsPrivate(t *testing.T) {
	_, f := openTestFolder(t)
	info, err := os.Stat(f.root)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

func TestCrashLeftoversAreNotListed(t *testing.T) {
	s, f := openTestFolder(t)
	_, err := s.Create(t.Context(), "calls/a", nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(f.where("calls/b.tmp.abcdef"), nil, 0o600))
	names, err := s.List(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []string{"calls/a"}, names)
}

func TestHookSeesEveryStep(t *testing.T) {
	var steps []string
	disk := disk.Disk{Hook: func(s disk.Step) error {
		steps = append(steps, strings.TrimSpace(fmt.Sprintf("%s %s", s.Op, s.Data)))
		return nil
	}}
	s, err := OpenOn(t.Context(), disk, "file://"+filepath.Join(t.TempDir(), "store"))
	require.NoError(t, err)
	won, err := s.Create(t.Context(), "claim", []byte("mine"))
	require.NoError(t, err)
	require.True(t, won)
	require.Equal(t, []string{
		"mkdir", "sync folder", "sync folder", // the store's own folder
		"sync folder", "create", "write mine", "sync", "link", "remove", "sync folder", // the name
	}, steps)
}
