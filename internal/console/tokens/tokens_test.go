package tokens

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/api"
)

func TestTokenIsFoundUntilItIsRevoked(t *testing.T) {
	state := t.TempDir()
	f := In(state)
	all, err := f.List()
	require.NoError(t, err)
	require.Empty(t, all)
	text, err := f.Create(t.Context(), "ci", api.CanDecide, time.Unix(0, 0))
	require.NoError(t, err)
	other, err := f.Create(t.Context(), "bot", api.CanRead, time.Unix(0, 0))
	require.NoError(t, err)
	require.NotEqual(t, text, other)
	last, err := f.Create(t.Context(), "deploy", api.CanRead, time.Unix(0, 0))
	require.NoError(t, err)

	found, ok, err := f.Find(text)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, Token{"ci", api.CanDecide, digest(text), "1970-01-01T00:00:00Z"}, found)
	for _, wrong := range []string{"", Prefix, text[1:], text + "x", strings.ToUpper(text), digest(text), "ci"} {
		_, ok, err := f.Find(wrong)
		require.NoError(t, err)
		require.False(t, ok, wrong)
	}
	raw, err := os.ReadFile(filepath.Join(state, "console", "tokens.json"))
	require.NoError(t, err)
	require.NotContains(t, string(raw), text[len(Prefix):])
	fi, err := os.Stat(filepath.Join(state, "console", "tokens.json"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), fi.Mode().Perm())

	require.NoError(t, f.Revoke(t.Context(), "ci"))
	_, ok, err = f.Find(text)
	require.NoError(t, err)
	require.False(t, ok, "it was revoked")
	found, ok, err = f.Find(last)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "deploy", found.Name)
	_, ok, err = f.Find(other)
	require.NoError(t, err)
	require.True(t, ok)
	var unknown *NameError
	require.ErrorAs(t, f.Revoke(t.Context(), "ci"), &unknown)
	require.Equal(t, "ci", unknown.Name)
}

func TestConcurrentChangesAreKept(t *testing.T) {
	f := In(t.TempDir())
	var all sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		all.Go(func() { _, errs[i] = f.Create(t.Context(), fmt.Sprint("t", i), api.CanRead, time.Now()) })
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	listed, err := f.List()
	require.NoError(t, err)
	require.Len(t, listed, len(errs))
	_, err = f.Create(t.Context(), "t1", api.CanRead, time.Now())
	var exists *NameError
	require.ErrorAs(t, err, &exists)
	require.Equal(t, "t1", exists.Name)
}

func TestUnusableFilesAreRefused(t *testing.T) {
	for text, mode := range map[string]os.FileMode{
		`{"version":1,"tokens":[]}`: 0o644, `{"version":2}`: 0o600, `{`: 0o600,
	} {
		f := In(t.TempDir())
		_, err := f.Create(t.Context(), "a", api.CanRead, time.Now())
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(f.path, []byte(text), 0o600))
		require.NoError(t, os.Chmod(f.path, mode))
		_, _, err = f.Find("x")
		var unusable *UnusableError
		require.ErrorAs(t, err, &unusable)
		require.Equal(t, f.path, unusable.Path)
		_, err = f.Create(t.Context(), "b", api.CanRead, time.Now())
		require.Error(t, err, "a damaged file is not replaced")
	}
	for _, bad := range []string{"", "-x", "a b", "a/b", "a\n", strings.Repeat("x", 65), "ü"} {
		_, err := In(t.TempDir()).Create(t.Context(), bad, api.CanRead, time.Now())
		var refused *NameError
		require.ErrorAs(t, err, &refused, bad)
		require.Equal(t, bad, refused.Name)
	}
}
